"""Encoder-decoders over sound, and Dia from text to sound: Speech2Text, Moonshine, Cohere ASR, Canary, SeamlessM4T.

The encoder reads frames of sound, whose number depends on the length of the recording: it counts as the prompt, in frames after the
convolutions. Convolutions stand as matrices, which run so many times for each of those frames as the later ones cut the length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.encoder_decoder import BART_NAMES, bart_encoder, bart_like, m2m_model
from planner.importers.huggingface.families.encoders import frames
from planner.importers.huggingface.families.family import LAYER, LAYER_SCALE, Family
from planner.importers.huggingface.parts.basics import Fact, build, flag, layer_count
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.softmax import head_dim, heads_of, shared_out, softmax_kind
from planner.importers.huggingface.stack import group_layers
from planner.model import CrossAttention, Encoder, FeedForward, LayerGroup, Projection, SoftmaxAttention, Table

MAX_CONVOLUTIONS = 64
"""More convolutions than this are a slip in the file."""


def attend(
    config: Config, *, prefix: str = "", bias: Fact = "attention_bias", output_bias: Fact = False, **more: Any
) -> SoftmaxAttention:
    """Return self-attention; `prefix` stands before the fields that count its heads, `more` are further fields of it."""
    heads, kv_heads = heads_of(config, f"{prefix}num_attention_heads", f"{prefix}num_key_value_heads")
    return build(
        config,
        SoftmaxAttention,
        kind=softmax_kind(heads, kv_heads),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim(config, heads),
        qkv_bias=flag(config, bias),
        output_bias=flag(config, output_bias),
        **more,
    )


def crossed(config: Config, own: SoftmaxAttention, **more: Any) -> tuple[SoftmaxAttention, CrossAttention]:
    """Return self-attention and cross-attention of its shape; `more` are fields in which the latter differs."""
    fields: dict[str, Any] = {
        "kind": "cross",
        "num_attention_heads": own.num_attention_heads,
        "num_key_value_heads": own.kv_heads,
        "head_dim": own.head_dim,
        "qkv_bias": own.qkv_bias,
        "output_bias": own.output_bias,
    }
    return own, build(config, CrossAttention, **fields | more)


# ---- Speech2Text -----------------------------------------------------------------------------------------------------


def _s2t_model(config: Config) -> dict[str, Any]:
    """Speech2Text: gated convolutions, each of which halves the length; positions are computed."""
    count, hidden = config.integer("num_conv_layers", 2), config.integer("hidden_size")
    sizes, middle = (
        config.integers("conv_kernel_sizes", count, least=1) or (5, 5),
        config.integer("conv_channels"),
    )
    if count > MAX_CONVOLUTIONS:
        config.fault("num_conv_layers", f"{count} convolutions are more than make sense (at most {MAX_CONVOLUTIONS})")
        config.raise_faults()
    first = config.integer("input_feat_per_channel", 80) * config.integer("input_channels", 1)
    widths = [first, *[max(middle // 2, 1)] * (len(sizes) - 1)]
    results = [*[middle] * (len(sizes) - 1), 2 * hidden]
    convolutions = tuple(
        Projection(
            name=f"conv_layers.{i}",
            input_size=size * width,
            output_size=result,
            bias=True,
            times=2 ** (len(sizes) - 1 - i),
        )
        for i, (size, width, result) in enumerate(zip(sizes, widths, results, strict=True))
    )
    return {
        "encoder": bart_encoder(config, norms=1, projections=convolutions),
        "max_position_embeddings": config.optional("max_target_positions"),
    }


# ---- SpeechT5 --------------------------------------------------------------------------------------------------------


def _speecht5_model(config: Config) -> dict[str, Any]:
    """SpeechT5: from speech to text; wav2vec's frames, and keys by distance in the encoder; positions are computed."""
    into, vectors = frames(config)
    heads, far = config.integer("encoder_attention_heads"), config.integer("encoder_max_relative_position", 160)
    distances = Table(name="embed_positions", rows=2 * far, width=shared_out(config, heads))
    return {
        "encoder": bart_encoder(config, norms=1, projections=into, tables=(distances,), other_parameters=vectors),
        "final_norm": False,
    }


# ---- Moonshine -------------------------------------------------------------------------------------------------------


def _moonshine_attention(config: Config, index: int) -> tuple[Any, ...]:  # the signature of every reader
    return crossed(config, attend(config, prefix=""))


def _encoder_layer(config: Config, attention: SoftmaxAttention) -> LayerGroup:
    """Return a layer of Moonshine's encoder: its network is plain, where the decoder's is gated."""
    network = build(config, FeedForward, kind="plain", intermediate_size=config.integer("intermediate_size"), bias=True)
    return build(config, LayerGroup, attention=attention, ffn=network)


def _moonshine_model(config: Config) -> dict[str, Any]:
    """Moonshine: three convolutions over samples; a norm over groups of channels after the first."""
    hidden = config.integer("hidden_size")
    attention = attend(config, prefix="encoder_")
    layers = [_encoder_layer(config, attention)] * layer_count(config, "encoder_num_hidden_layers")
    config.raise_faults()
    convolutions = (
        # Strides of 64, 3 and 2 samples.
        Projection(name="conv1", input_size=127, output_size=hidden, times=6),
        Projection(name="conv2", input_size=7 * hidden, output_size=2 * hidden, bias=True, times=2),
        Projection(name="conv3", input_size=3 * 2 * hidden, output_size=hidden, bias=True),
    )
    return {"encoder": Encoder(layers=group_layers(layers), projections=convolutions, other_parameters=2 * hidden)}


def _streaming_window(part: Config, index: int, length: int) -> int | None:
    """Moonshine Streaming: `sliding_windows` lists tokens on the left, the own one among them, and on the right and itself."""
    listed = part.listed("sliding_windows")
    if listed is None:
        return None
    pair = listed[index] if len(listed) >= length else None
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(type(n) is int and n >= 0 for n in pair):
        part.fault("sliding_windows", f"lists no pair of whole numbers for each of the {length} layers")
        part.raise_faults()
        return None
    left, right = int(pair[0]), int(pair[1])
    return max(left + max(right - 1, 0), 1)


def _streaming_model(config: Config) -> dict[str, Any]:
    """Moonshine Streaming: frames of samples, two convolutions, and an embedding of positions that is added to the source."""
    part = config.typed_part("encoder_config", "moonshine_streaming_encoder")
    width, hidden, length = part.integer("hidden_size"), config.integer("hidden_size"), layer_count(part)
    frame = max(round(part.integer("sample_rate", 16000) * part.real("frame_ms", 5.0) / 1000), 1)
    layers = [
        _encoder_layer(
            part, attend(part, output_bias="attention_bias", sliding_window=_streaming_window(part, i, length))
        )
        for i in range(length)
    ]
    config.raise_faults()
    into = [
        Projection(name="embedder.linear", input_size=frame, output_size=width, times=4),
        Projection(name="embedder.conv1", input_size=5 * width, output_size=2 * width, bias=True, times=2),
        Projection(name="embedder.conv2", input_size=5 * 2 * width, output_size=width, bias=True),
    ]
    if width != hidden:
        into.append(Projection(name="decoder.proj", input_size=width, output_size=hidden))
    positions = Table(name="decoder.pos_emb", rows=config.integer("max_position_embeddings"), width=width)
    return {
        "encoder": Encoder(
            layers=group_layers(layers),
            hidden_size=width,
            projections=tuple(into),
            tables=(positions,),
            # The exponent that compresses the samples.
            other_parameters=1,
        )
    }


# ---- Cohere ASR, Canary: Parakeet's encoder --------------------------------------------------------------------------


def _parakeet_layer(part: Config) -> LayerGroup:
    """Return a Conformer layer: half a network, attention with relative positions, a convolution, half a network."""
    hidden, biased = part.integer("hidden_size"), flag(part, "attention_bias")
    attention = attend(part, output_bias="attention_bias")
    inner, convolved = attention.num_attention_heads * attention.head_dim, flag(part, "convolution_bias")
    network = build(part, FeedForward, kind="plain", intermediate_size=part.integer("intermediate_size"), bias=biased)
    depthwise = hidden * (part.integer("conv_kernel_size", 9) + convolved)
    return build(
        part,
        LayerGroup,
        attention=attention,
        ffn=(network, network),
        norms=5,
        projections=(
            Projection(name="relative_k_proj", input_size=hidden, output_size=inner),
            Projection(name="pointwise_conv1", input_size=hidden, output_size=2 * hidden, bias=convolved),
            Projection(name="pointwise_conv2", input_size=hidden, output_size=hidden, bias=convolved),
        ),
        # Two biases by content and position, the convolution of each channel, and its norm.
        other_parameters=2 * inner + depthwise + 2 * hidden,
    )


def parakeet(part: Config, further: tuple[Projection, ...] = ()) -> Encoder:
    """Return Parakeet's encoder; `further` matrices stand after it."""
    hidden, bins = part.integer("hidden_size"), part.integer("num_mel_bins", 80)
    kernel, channels = part.integer("subsampling_conv_kernel_size", 3), part.integer("subsampling_conv_channels", 256)
    stages, stride = part.integer("subsampling_factor", 8).bit_length() - 1, part.integer("subsampling_conv_stride", 2)
    left = max(bins // stride**stages, 1)
    # Frames and bins that a stage works on, for each frame that is left after all of them.
    times = [stride ** (stages - i) * max(bins // stride**i, 1) for i in range(1, stages + 1)]
    layers = [_parakeet_layer(part)] * layer_count(part)
    part.raise_faults()
    pointwise = [
        Projection(
            name=f"subsampling.pointwise{i}", input_size=channels, output_size=channels, bias=True, times=times[i]
        )
        for i in range(1, stages)
    ]
    return Encoder(
        layers=group_layers(layers),
        hidden_size=hidden,
        norms=0,
        projections=(
            Projection(
                name="subsampling.conv",
                input_size=kernel**2,
                output_size=channels,
                bias=True,
                times=max(times[:1], default=1),
            ),
            *pointwise,
            Projection(name="subsampling.linear", input_size=channels * left, output_size=hidden, bias=True),
            *further,
        ),
        other_parameters=len(pointwise) * channels * (kernel**2 + 1),
    )


def _parakeet_attention(config: Config, index: int) -> tuple[Any, ...]:
    return crossed(config, attend(config, output_bias="attention_bias"))


def _cohere_model(config: Config) -> dict[str, Any]:
    """Cohere ASR: learned positions, a norm of the embedding, and a matrix from the encoder's width to the decoder's."""
    part, hidden = config.typed_part("encoder_config", "parakeet_encoder"), config.integer("hidden_size")
    narrowed = Projection(name="decoder.proj", input_size=part.integer("hidden_size"), output_size=hidden, bias=True)
    return {
        "encoder": parakeet(part, (narrowed,)),
        "learned_positions": config.integer("max_position_embeddings"),
        "other_parameters": 2 * hidden,
        "lm_head_bias": True,
    }


def _canary_model(config: Config) -> dict[str, Any]:
    """Canary: as Cohere ASR, with computed positions and one width for both sides."""
    encoder = parakeet(config.typed_part("encoder_config", "parakeet_encoder"))
    return {"encoder": encoder, "other_parameters": 2 * config.integer("hidden_size"), "lm_head_bias": True}


# ---- Dia -------------------------------------------------------------------------------------------------------------


def _dia_attention(config: Config, index: int) -> tuple[Any, ...]:
    """Dia: cross-attention has heads of its own."""
    heads, kv_heads = heads_of(config, "cross_num_attention_heads", "cross_num_key_value_heads")
    return crossed(
        config,
        attend(config, bias=False),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=config.integer("cross_head_dim", 128),
        source_size=config.integer("cross_hidden_size"),
    )


def _dia_model(config: Config) -> dict[str, Any]:
    """Dia: text goes in as bytes, sound comes out in channels, of which each step makes a token: the vocabulary is all of theirs."""
    part, network = config.typed_part("encoder_config", "dia_encoder"), dense()
    length, width = layer_count(part), part.integer("hidden_size")
    layers = [build(part, LayerGroup, attention=attend(part, bias=False), ffn=network(part, i)) for i in range(length)]
    config.raise_faults()
    table = Table(name="encoder.embedding", rows=part.integer("vocab_size", 256), width=width)
    encoder = Encoder(layers=group_layers(layers), hidden_size=width, tables=(table,))
    return {"encoder": encoder, "vocab_size": config.integer("vocab_size") * config.integer("num_channels", 9)}


# ---- SeamlessM4T -----------------------------------------------------------------------------------------------------


def _joined(decoder: str) -> Any:
    """Return a function that puts the encoder's part, and what the whole says of the LM head, into the decoder's."""

    def flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
        found = data.get(decoder)
        part = dict(found) if isinstance(found, Mapping) else {}
        part.pop("tie_word_embeddings", None)
        kept = {name: data[name] for name in ("encoder_config", "tie_word_embeddings") if name in data}
        return {**part, **kept}

    return flat


_plain = dense(kind="plain", bias=True)
_gated = dense(bias=True)

FAMILIES: dict[str, Family] = {
    "speech_to_text": bart_like(
        _s2t_model, ignored=("is_encoder_decoder", "num_hidden_layers", "max_source_positions")
    ),
    "speecht5": bart_like(_speecht5_model, towers=True, aliases={**BART_NAMES, "hidden_size": "hidden_size"}),
    "moonshine": Family(
        attention=_moonshine_attention,
        ffn=_gated,
        model=_moonshine_model,
        layers=layer_count,
        norm=LAYER_SCALE,
        norms=3,
        tied=True,
        aliases={
            "num_hidden_layers": "decoder_num_hidden_layers",
            "num_attention_heads": "decoder_num_attention_heads",
            "num_key_value_heads": "decoder_num_key_value_heads",
        },
        ignored=("is_encoder_decoder", "pad_head_dim_to_multiple_of", "encoder_hidden_act", "decoder_hidden_act"),
    ),
    "moonshine_streaming": Family(
        attention=_moonshine_attention,
        ffn=_gated,
        model=_streaming_model,
        norm=LAYER_SCALE,
        norms=3,
        ignored=("is_encoder_decoder", "pad_head_dim_to_multiple_of"),
    ),
    "cohere_asr": Family(
        attention=_parakeet_attention,
        ffn=_plain,
        model=_cohere_model,
        norm=LAYER,
        norms=3,
        ignored=("is_encoder_decoder",),
    ),
    "canary": Family(
        attention=_parakeet_attention,
        ffn=_plain,
        model=_canary_model,
        norm=LAYER,
        norms=3,
        flat=_joined("decoder_config"),
        flat_prefix="decoder_config.",
        text="canary_decoder",
        tied=True,
    ),
    "dia": Family(
        attention=_dia_attention,
        ffn=dense(),
        model=_dia_model,
        norms=3,
        tied="never",
        flat=_joined("decoder_config"),
        flat_prefix="decoder_config.",
        text="dia_decoder",
    ),
    **dict.fromkeys(
        ("seamless_m4t", "seamless_m4t_v2"),
        bart_like(m2m_model, towers=True, aliases={**BART_NAMES, "hidden_size": "hidden_size"}),
    ),
}
