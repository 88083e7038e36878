"""Encoders that a file of two models may name: of text (BERT's kind), of pictures (ViT, DeiT, Swin) and of sound (wav2vec 2.0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.bert import KINDS, Bert, bert_ffn, bert_self
from planner.importers.huggingface.parts.basics import Fact, build, flag, layer_count
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.softmax import shared_out
from planner.importers.huggingface.stack import group_layers
from planner.model import Encoder, FeedForward, LayerGroup, Projection, SoftmaxAttention, Table
from planner.model.stack import MAX_LAYERS

EncoderReader = Callable[[Config], Encoder]
"""Reads an encoder from its part of the file."""

MAX_STAGES = 16
"""More stages of pictures or convolutions of sound than this are a slip in the file."""


# ---- text ------------------------------------------------------------------------------------------------------------


def bert_encoder(kind: Bert, *, pooler: bool = True, bias: Fact = True) -> EncoderReader:
    """Return a reader of an encoder of BERT's kind, with the pooler that its class stores."""

    def read(part: Config) -> Encoder:
        hidden, width = part.integer("hidden_size"), kind.width(part)
        words = Table(name="word_embeddings", rows=part.integer("vocab_size"), width=width)
        layers = [
            build(part, LayerGroup, attention=bert_self(part, bias=bias), ffn=bert_ffn(part, i))
            for i in range(layer_count(part))
        ]
        part.raise_faults()
        return Encoder(
            layers=group_layers(layers),
            hidden_size=hidden,
            norms=int(flag(part, kind.final_norm)),
            tables=(words, *kind.tables(part)),
            projections=kind.inward(part),
            other_parameters=kind.vectors(part) + (hidden * hidden + hidden if pooler else 0),
        )

    return read


# ---- pictures --------------------------------------------------------------------------------------------------------


def sides(part: Config, field: str, default: int) -> tuple[int, int]:
    """Return height and width, which a file gives as one number or as two."""
    if isinstance(part.get(field), list):
        pair = part.integers(field, 2, least=1) or (default, default)
        return pair[0], pair[1]
    side = part.integer(field, default)
    return side, side


def patches(part: Config, *, image: int = 224, patch: int = 16) -> int:
    """Return into how many patches a picture is cut."""
    (height, width), (rows, columns) = sides(part, "image_size", image), sides(part, "patch_size", patch)
    return max(height // rows, 1) * max(width // columns, 1)


def patch_projection(part: Config, width: int, *, patch: int = 16) -> Projection:
    """Return the matrix that turns a patch's pixels into a token."""
    pixels = prod(sides(part, "patch_size", patch)) * part.integer("num_channels", 3)
    return Projection(name="patch_embeddings", input_size=pixels, output_size=width, bias=True)


def picture_attention(part: Config, heads: int, **more: Any) -> SoftmaxAttention:
    """Return attention among patches; `more` are further fields of it."""
    fields: dict[str, Any] = {
        "kind": "mha",
        "num_attention_heads": heads,
        "qkv_bias": part.flag("qkv_bias", default=True),
        "output_bias": True,
    }
    return build(part, SoftmaxAttention, **fields | more)


def vit(*, marks: int = 1, pooler: bool = True) -> EncoderReader:
    """Return a reader of a vision transformer: `marks` learned tokens stand beside the patches."""
    network = dense(kind="plain", bias=True)

    def read(part: Config) -> Encoder:
        hidden = part.integer("hidden_size")
        tokens, pooled = patches(part) + marks, part.optional("pooler_output_size") or hidden
        heads = part.integer("num_attention_heads")
        attention = picture_attention(part, heads, head_dim=shared_out(part, heads))
        layers = [build(part, LayerGroup, attention=attention, ffn=network(part, i)) for i in range(layer_count(part))]
        part.raise_faults()
        return Encoder(
            layers=group_layers(layers),
            hidden_size=hidden,
            source_positions=tokens,
            tables=(Table(name="position_embeddings", rows=tokens, width=hidden),),
            projections=(patch_projection(part, hidden),),
            other_parameters=marks * hidden + (pooled * (hidden + 1) if pooler else 0),
        )

    return read


_DERIVED = ("num_layers", "out_features", "out_indices", "path_norm", "stage_names")
"""Fields of Swin that follow from the others, or that older versions of the library wrote and that changed nothing."""


def _swin_network(part: Config, width: int) -> int:
    return max(int(part.real("mlp_ratio", 4.0) * width), 1)


def matrices_alone(
    part: Config, width: int, inner: int, times: int, bias: int, network: tuple[str, str] = ("fc1", "fc2")
) -> LayerGroup:
    """Return an early layer of an encoder, which has more tokens than the last: its matrices, no scores.

    Parameters
    ----------
    part : Config
        The encoder's part of the file.
    width, inner : int
        Elements of a token, and within the feed-forward network.
    times : int
        Tokens here for each one that the encoder leaves.
    bias : int
        Parameters of a bias by distance.
    network : tuple of str
        What checkpoints call the matrices of the feed-forward network.
    """
    up, down = network
    shapes = (
        ("qkv", width, 3 * width, part.flag("qkv_bias", default=True)),
        ("proj", width, width, True),
        (up, width, inner, True),
        (down, inner, width, True),
    )
    return build(
        part,
        LayerGroup,
        norms=0,
        projections=tuple(
            Projection(name=name, input_size=into, output_size=out, bias=has_bias, times=times)
            for name, into, out, has_bias in shapes
        ),
        other_parameters=4 * width + bias,
    )


def _swin_block(part: Config, width: int, heads: int, times: int) -> LayerGroup:
    """Return a block of an early stage, narrower and with more tokens than the last: its matrices alone, no scores."""
    return matrices_alone(part, width, _swin_network(part, width), times, _swin_bias(part, heads))


def _swin_bias(part: Config, heads: int) -> int:
    """Return the parameters of a bias by distance within a window."""
    return (2 * part.integer("window_size", 7) - 1) ** 2 * heads


def _swin_last(part: Config, width: int, heads: int) -> LayerGroup:
    """Return a block of the last stage, which has the encoder's width and tokens."""
    if width % heads:
        part.fault("num_heads", f"{heads} does not divide the {width} channels of the last stage")
        part.raise_faults()
    window = part.integer("window_size", 7)
    attention = picture_attention(part, heads, head_dim=width // heads, attention_chunk_size=window**2)
    network = build(part, FeedForward, kind="plain", intermediate_size=_swin_network(part, width), bias=True)
    return build(part, LayerGroup, attention=attention, ffn=network, other_parameters=_swin_bias(part, heads))


def swin(*, final_norm: bool, marks: int = 0) -> EncoderReader:
    """Return a reader of Swin: stages of windows, between which each four tokens become one of twice the width.

    `marks` are rows of the position embedding beside those of the patches.
    """

    def read(part: Config) -> Encoder:
        for name in _DERIVED:
            part.get(name)
        depths, heads = part.integers("depths", least=1) or (2, 2, 6, 2), part.integers("num_heads", least=1)
        heads = heads or (3, 6, 12, 24)
        if len(depths) != len(heads) or len(depths) > MAX_STAGES:
            part.fault("num_heads", f"has {len(heads)} items, one for each of the {len(depths)} stages is expected")
            part.raise_faults()
        if sum(depths) > MAX_LAYERS:
            part.fault("depths", f"lists {sum(depths)} layers, more than make sense (at most {MAX_LAYERS})")
            part.raise_faults()
        narrow, last, cut = part.integer("embed_dim", 96), len(depths) - 1, patches(part, patch=4)
        hidden = part.optional("hidden_size", narrow * 2**last)
        if hidden != narrow * 2**last:
            part.fault("hidden_size", f"{hidden} is not the width of the last stage, {narrow * 2**last}")
        layers: list[LayerGroup] = []
        for stage in range(last):
            width, times = narrow * 2**stage, 4 ** (last - stage)
            layers += [_swin_block(part, width, heads[stage], times)] * depths[stage]
            layers.append(_swin_merge(part, width, times // 4))
        layers += [_swin_last(part, narrow * 2**last, heads[last])] * depths[last]
        part.raise_faults()
        absolute = flag(part, "use_absolute_embeddings")
        return Encoder(
            layers=group_layers(layers),
            hidden_size=narrow * 2**last,
            source_positions=max(cut // 4**last, 1),
            norms=int(final_norm),
            tables=(Table(name="position_embeddings", rows=cut + marks, width=narrow),) if absolute else (),
            projections=(patch_projection(part, narrow, patch=4).model_copy(update={"times": 4**last}),),
            other_parameters=2 * narrow,
        )

    return read


def _swin_merge(part: Config, width: int, times: int) -> LayerGroup:
    """Return what makes one token of four; it runs on the tokens of the next stage."""
    merged = Projection(name="reduction", input_size=4 * width, output_size=2 * width, times=times)
    return build(part, LayerGroup, norms=0, projections=(merged,), other_parameters=8 * width)


# ---- sound -----------------------------------------------------------------------------------------------------------


def _convolutions(part: Config) -> tuple[tuple[Projection, ...], int]:
    """Return wav2vec's convolutions over samples, and the parameters of their norms."""
    widths = part.integers("conv_dim", least=1) or (512,) * 7
    count = part.integer("num_feat_extract_layers", len(widths))
    if count != len(widths) or count > MAX_STAGES:
        part.fault("conv_dim", f"has {len(widths)} items for {count} convolutions (at most {MAX_STAGES} make sense)")
        part.raise_faults()
    kernels = part.integers("conv_kernel", count, least=1) or (1,) * count
    strides = part.integers("conv_stride", count, least=1) or (1,) * count
    found = tuple(
        Projection(
            name=f"conv_layers.{i}",
            input_size=kernels[i] * (widths[i - 1] if i else 1),
            output_size=widths[i],
            bias=flag(part, "conv_bias"),
            times=prod(strides[i + 1 :]),
        )
        for i in range(count)
    )
    everywhere = part.text("feat_extract_norm", "group") == "layer"
    return found, 2 * (sum(widths) if everywhere else widths[0])


def _adapter(part: Config) -> tuple[tuple[Projection, ...], int]:
    """Return the convolutions after the encoder that shorten its result, and the parameters of their norm."""
    if not flag(part, "add_adapter"):
        return (), 0
    hidden = part.integer("hidden_size")
    width, count = part.optional("output_hidden_size") or hidden, part.integer("num_adapter_layers", 3)
    if count > MAX_STAGES:
        part.fault("num_adapter_layers", f"{count} are more than make sense (at most {MAX_STAGES})")
        part.raise_faults()
    size = part.integer("adapter_kernel_size", 3) * width
    layers = [Projection(name=f"adapter.{i}", input_size=size, output_size=2 * width, bias=True) for i in range(count)]
    if width != hidden:
        layers.insert(0, Projection(name="adapter.proj", input_size=hidden, output_size=width, bias=True))
    return tuple(layers), 2 * width if width != hidden else 0


def _masked(part: Config) -> bool:
    """Whether there is an embedding of masked frames, which training alone uses."""
    chances = (part.get("mask_time_prob", 0.05), part.get("mask_feature_prob", 0.0))
    return any(isinstance(chance, int | float) and chance > 0 for chance in chances)


def frames(part: Config) -> tuple[tuple[Projection, ...], int]:
    """Return what wav2vec 2.0 makes frames of sound by, and its parameters beside matrices.

    Convolutions over samples, a projection to the hidden size, and positions by a convolution over frames, with norms.
    """
    hidden, kernel = part.integer("hidden_size"), part.integer("num_conv_pos_embeddings", 128)
    convolutions, norms = _convolutions(part)
    grouped = max(hidden // part.integer("num_conv_pos_embedding_groups", 16), 1) * kernel
    last = convolutions[-1].output_size
    found = (
        *convolutions,
        Projection(name="feature_projection", input_size=last, output_size=hidden, bias=True),
        Projection(name="pos_conv_embed", input_size=grouped, output_size=hidden, bias=True),
    )
    # Norms before the projection and of the convolution's weights.
    return found, norms + 2 * last + kernel + (hidden if _masked(part) else 0)


def wav2vec(part: Config) -> Encoder:
    """Return wav2vec 2.0's encoder: frames as many as the recording has.

    An adapter, which shortens the result, is counted as if it ran for every frame.
    """
    if part.given("adapter_attn_dim"):
        part.fault("adapter_attn_dim", "is not supported")
    into, vectors = frames(part)
    adapter, adapted = _adapter(part)
    layers = [
        build(part, LayerGroup, attention=bert_self(part), ffn=bert_ffn(part, i)) for i in range(layer_count(part))
    ]
    part.raise_faults()
    return Encoder(
        layers=group_layers(layers),
        hidden_size=part.integer("hidden_size"),
        projections=(*into, *adapter),
        other_parameters=vectors + adapted,
    )


TEXT: Mapping[str, EncoderReader] = {
    **{name: bert_encoder(kind) for name, kind in KINDS.items() if name not in ("electra", "roformer")},
    "electra": bert_encoder(KINDS["electra"], pooler=False),
    "roformer": bert_encoder(KINDS["roformer"], pooler=False),
    "bert-generation": bert_encoder(KINDS["bert-generation"], pooler=False),
    "big_bird": bert_encoder(Bert(), bias="use_bias"),
}
PICTURES: Mapping[str, EncoderReader] = {
    "vit": vit(),
    "deit": vit(marks=2),
    "swin": swin(final_norm=True),
    "donut-swin": swin(final_norm=False, marks=1),
}
SOUND: Mapping[str, EncoderReader] = {"wav2vec2": wav2vec}
