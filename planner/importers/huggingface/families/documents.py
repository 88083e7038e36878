"""Encoder-decoders over pictures of documents: Pix2Struct, UDOP, PP-FormulaNet; and BLIP's captioner.

Each layer of the decoder attends to the encoder's output. Pix2Struct and UDOP read as many patches and words as there are, so that
the source counts as the prompt; PP-FormulaNet and BLIP read pictures of one size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.bert import Bert, bert_ffn, bert_self, crossed_like, require_decoder
from planner.importers.huggingface.families.encoder_decoder import bart_like
from planner.importers.huggingface.families.encoders import matrices_alone, patches, sides, vit
from planner.importers.huggingface.families.family import LAYER, Family
from planner.importers.huggingface.families.t5 import T5, t5_encoder
from planner.importers.huggingface.parts.basics import build, layer_count
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.softmax import shared_out
from planner.importers.huggingface.stack import group_layers
from planner.model import Encoder, LayerGroup, Projection, SoftmaxAttention, Table

VISION = "vision_config"
"""What files call the part that describes the encoder."""


def _joined(*, either: bool = False) -> Any:
    """Return a function that puts the encoder's part into the decoder's; `either` says that both may tie the embeddings."""

    def flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
        found = data.get("text_config")
        part = dict(found) if isinstance(found, Mapping) else {}
        nested, whole = part.pop("tie_word_embeddings", None), data.get("tie_word_embeddings")
        tied = whole if not either else None if None in (whole, nested) else bool(whole or nested)
        kept = {VISION: data[VISION]} if VISION in data else {}
        return {**part, **kept, **({} if tied is None else {"tie_word_embeddings": tied})}

    return flat


# ---- Pix2Struct ------------------------------------------------------------------------------------------------------

_gated = dense(width="d_ff")


def _pix_attention(config: Config, index: int) -> tuple[Any, ...]:  # the signature of every reader
    """Pix2Struct: projections are square, whatever `d_kv` says."""
    heads = config.integer("num_attention_heads")
    own = build(config, SoftmaxAttention, kind="mha", num_attention_heads=heads, head_dim=shared_out(config, heads))
    return (own, crossed_like(config, own))


def _pix_layer(config: Config, index: int) -> dict[str, Any]:
    """Pix2Struct: the first layer holds the bias by distance."""
    buckets = config.integer("relative_attention_num_buckets", 32) * config.integer("num_attention_heads")
    return {"norms": 3, "other_parameters": 0 if index else buckets}


def _pix_model(config: Config) -> dict[str, Any]:
    """Pix2Struct: patches of one number of pixels, with embeddings of their row and column."""
    part = config.typed_part(VISION, "pix2struct_vision_model")
    hidden, pixels = part.integer("hidden_size"), part.integer("patch_embed_hidden_size", 768)
    attention = build(
        part,
        SoftmaxAttention,
        kind="mha",
        num_attention_heads=part.integer("num_attention_heads"),
        head_dim=part.integer("d_kv", 64),
    )
    layers = [build(part, LayerGroup, attention=attention, ffn=_gated(part, i)) for i in range(layer_count(part))]
    config.raise_faults()
    rows = part.integer("seq_len")
    encoder = Encoder(
        layers=group_layers(layers),
        hidden_size=hidden,
        tables=tuple(Table(name=f"{name}_embedder", rows=rows, width=hidden) for name in ("row", "column")),
        projections=(Projection(name="patch_projection", input_size=pixels, output_size=hidden, bias=True),),
    )
    return {"encoder": encoder}


# ---- UDOP ------------------------------------------------------------------------------------------------------------


def _udop_biases(config: Config) -> int:
    """UDOP: each stack holds biases by distance on the page, all but the first, which is that of its first layer."""
    listed = config.listed("relative_bias_args")
    further = list(listed)[1:] if listed is not None else [{}, {}]
    heads, found = config.integer("num_attention_heads"), 0
    for facts in further:
        buckets = facts.get("relative_attention_num_buckets", 32) if isinstance(facts, Mapping) else None
        if type(buckets) is not int or buckets < 1:
            config.fault("relative_bias_args", "lists no mappings with whole numbers of buckets")
            config.raise_faults()
            break
        found += buckets * heads
    return found


def _udop_model(config: Config) -> dict[str, Any]:
    """UDOP: words with their place on the page, and patches of the picture; the decoder stores the patches' matrix again."""
    hidden, rows = config.integer("hidden_size"), config.integer("max_2d_position_embeddings")
    pixels = config.integer("num_channels", 3) * prod(sides(config, "patch_size", 16))
    biases = _udop_biases(config)
    encoder = t5_encoder(config).model_copy(
        update={
            "tables": tuple(Table(name=f"{axis}_position_embeddings", rows=rows, width=hidden) for axis in "xy"),
            "projections": (Projection(name="patch_embed", input_size=pixels, output_size=hidden, bias=True),),
            "other_parameters": biases,
        }
    )
    return {"encoder": encoder, "other_parameters": biases + pixels * hidden + hidden}


# ---- PP-FormulaNet ---------------------------------------------------------------------------------------------------


def _formula_layer(part: Config, index: int, times: int) -> LayerGroup:
    """Return a layer of the picture's encoder, whose tokens are more than those that it leaves: its matrices, no scores."""
    hidden, heads, inner = part.integer("hidden_size"), part.integer("num_attention_heads"), part.integer("mlp_dim")
    whole = index in (part.integers("global_attn_indexes") or ())
    shown, window = sides(part, "image_size", 512), part.integer("window_size", 14)
    cut = sides(part, "patch_size", 16)
    seen = (shown[0] // cut[0], shown[1] // cut[1]) if whole else (window, window)
    distances = sum(2 * side - 1 for side in seen) * shared_out(part, heads)
    bias = distances if part.flag("use_rel_pos", default=True) else 0
    return matrices_alone(part, hidden, inner, times, bias, network=("lin1", "lin2"))


def _formula_neck(part: Config, times: int) -> tuple[Projection, ...]:
    """Return the convolutions after the layers, the last two of which halve height and width."""
    hidden, narrow = part.integer("hidden_size"), part.integer("output_channels", 256)
    into, middle, out = (part.integer(f"post_conv_{name}_channels") for name in ("in", "mid", "out"))
    return (
        Projection(name="neck.conv1", input_size=hidden, output_size=narrow, times=times),
        Projection(name="neck.conv2", input_size=9 * narrow, output_size=narrow, times=times),
        Projection(name="projector.conv1", input_size=9 * into, output_size=middle, times=4),
        Projection(name="projector.conv2", input_size=9 * middle, output_size=out),
        Projection(name="projector.linear_1", input_size=out, output_size=out, bias=True),
        Projection(
            name="projector.linear_2", input_size=out, output_size=part.integer("decoder_hidden_size"), bias=True
        ),
    )


def _formula_model(config: Config) -> dict[str, Any]:
    """PP-FormulaNet: the encoder's layers run over sixteen patches for each token that the decoder sees."""
    part, hidden, times = config.typed_part(VISION, "pp_formulanet_vision"), config.integer("hidden_size"), 16
    width, cut = part.integer("hidden_size"), patches(part, image=512)
    pixels = prod(sides(part, "patch_size", 16)) * part.integer("num_channels", 3)
    layers = [_formula_layer(part, i, times) for i in range(layer_count(part))]
    config.raise_faults()
    absolute = part.flag("use_abs_pos", default=True)
    encoder = Encoder(
        layers=group_layers(layers),
        source_positions=max(cut // times, 1),
        norms=0,
        tables=(Table(name="pos_embed", rows=cut, width=width),) if absolute else (),
        projections=(
            Projection(name="patch_embed", input_size=pixels, output_size=width, bias=True, times=times),
            *_formula_neck(part, times),
        ),
        other_parameters=4 * part.integer("output_channels", 256),
    )
    return {
        "encoder": encoder,
        "learned_positions": config.integer("max_position_embeddings") + 2,
        "other_parameters": 2 * hidden,
    }


# ---- BLIP ------------------------------------------------------------------------------------------------------------


def _blip_attention(config: Config, index: int) -> tuple[Any, ...]:
    """BLIP: a decoder of BERT's kind, which attends to the picture."""
    require_decoder(config)
    own = bert_self(config)
    return (own, crossed_like(config, own, config.typed_part(VISION, "blip_vision_model").integer("hidden_size")))


_blip_text = Bert(segments=False)
_blip_picture = vit(pooler=False)


def _blip_model(config: Config) -> dict[str, Any]:
    part = config.typed_part(VISION, "blip_vision_model")
    return {**_blip_text(config), "encoder": _blip_picture(part)}


# ---- Nemotron Parse --------------------------------------------------------------------------------------------------


def _parse_flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the decoder's part; the whole says whether the embeddings are tied."""
    decoder = data.get("decoder")
    part = dict(decoder) if isinstance(decoder, Mapping) else {}
    part.pop("tie_word_embeddings", None)
    return {**part, **{name: data[name] for name in ("tie_word_embeddings",) if name in data}}


def _parse_model(config: Config) -> dict[str, Any]:
    """Nemotron Parse: mBART's decoder without positions (vLLM's nemotron_parse.py); its encoder is named, not described."""
    return {"other_parameters": 2 * config.integer("hidden_size")}


def _prefix_flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the decoder's part; the whole or the part says that the embeddings are tied."""
    flat, decoder = _parse_flat(data), data.get("decoder")
    stated = decoder.get("tie_word_embeddings") if isinstance(decoder, Mapping) else None
    return {**flat, "tie_word_embeddings": True} if stated is True else flat


def _prefix_attention(config: Config, index: int) -> SoftmaxAttention:
    """Nemotron Parse 3.5: the page stands before the text, so the decoder attends to itself alone (vLLM's nemotron_parse3_5.py)."""
    heads = config.integer("decoder_attention_heads")
    return build(
        config,
        SoftmaxAttention,
        kind="gqa",
        num_attention_heads=heads,
        num_key_value_heads=config.optional("self_attention_kv_heads") or heads,
        head_dim=shared_out(config, heads),
        qkv_bias=True,
        output_bias=True,
    )


PARSE = replace(
    bart_like(_parse_model),
    flat=_parse_flat,
    text="nemotron_parse_text",
    tied=False,
    towers=True,
    ignored=(
        "add_cross_attention",
        "classifier_dropout",
        "encoder_attention_heads",
        "encoder_ffn_dim",
        "encoder_layers",
        "hidden_size",
        "is_encoder_decoder",
        "num_attention_heads",
        "num_hidden_layers",
    ),
)

FAMILIES: dict[str, Family] = {
    "nemotron_parse": PARSE,
    "nemotron_parse3_5": replace(
        PARSE,
        attention=_prefix_attention,
        flat=_prefix_flat,
        norms=2,
        ignored=(*PARSE.ignored, "causal_vision_prefix"),
    ),
    "pix2struct": Family(
        attention=_pix_attention,
        ffn=_gated,
        layer=_pix_layer,
        model=_pix_model,
        flat=_joined(),
        flat_prefix="text_config.",
        text="pix2struct_text_model",
        defaults={"tie_word_embeddings": False},
        ignored=("d_kv", "is_encoder_decoder", "add_cross_attention"),
    ),
    "udop": replace(
        T5, model=_udop_model, ignored=(*T5.ignored, "image_size", "add_cross_attention", "num_hidden_layers")
    ),
    "pp_formulanet": replace(
        bart_like(_formula_model), flat=_joined(), flat_prefix="text_config.", text="pp_formulanet_text", tied="never"
    ),
    "blip": Family(
        attention=_blip_attention,
        ffn=bert_ffn,
        norm=LAYER,
        norms=3,
        model=_blip_model,
        flat=_joined(either=True),
        flat_prefix="text_config.",
        text="blip_text_model",
        tied=True,
        defaults={"is_decoder": True},
        ignored=("encoder_hidden_size", "label_smoothing", "projection_dim"),
    ),
}
