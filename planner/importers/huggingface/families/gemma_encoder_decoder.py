"""T5Gemma: Gemma's layers in an encoder and a decoder, each described by a part of the file; and ProphetNet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.encoder_decoder import BART_NAMES, bart_like, bart_model
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import SLIDING, build, every, kinds, layer_count
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.softmax import softmax, window_on
from planner.importers.huggingface.stack import group_layers
from planner.model import CrossAttention, Encoder, LayerGroup, Projection, SoftmaxAttention, Table

_alternate = kinds(every(2, other="sliding_attention"), known=SLIDING)
_one_in_six = kinds(every(6, other="sliding_attention"), known=SLIDING)
_gemma2 = softmax(window=window_on(_alternate), bias="attention_bias", output_bias="attention_bias")
_gemma3 = softmax(window=window_on(_one_in_six), bias="attention_bias", output_bias="attention_bias", qk_norm="head")
_network = dense()


# ---- T5Gemma ---------------------------------------------------------------------------------------------------------


def _flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the decoder's part with the encoder's text part in it; the whole says whether the embeddings are tied."""
    decoder, encoder = data.get("decoder"), data.get("encoder")
    flat = dict(decoder) if isinstance(decoder, Mapping) else {}
    if isinstance(encoder, Mapping):
        text = encoder.get("text_config")
        flat["encoder"] = text if isinstance(text, Mapping) else encoder
    flat.pop("tie_word_embeddings", None)
    stated = data.get("tie_word_embeddings")
    return flat if stated is None else {**flat, "tie_word_embeddings": stated}


def _cross_of(config: Config, own: SoftmaxAttention, *, merged: bool) -> CrossAttention:
    """Return cross-attention of the shape of a layer's self-attention, over the encoder's output."""
    source = _encoder_part(config).integer("hidden_size", config.integer("hidden_size"))
    return build(
        config,
        CrossAttention,
        kind="cross",
        num_attention_heads=own.num_attention_heads,
        num_key_value_heads=own.kv_heads,
        head_dim=own.head_dim,
        source_size=source,
        qkv_bias=own.qkv_bias,
        output_bias=own.output_bias,
        shared_weights=merged,
        merged=merged,
    )


def _encoder_part(config: Config) -> Config:
    return config.part("encoder", defaults=_ENCODER_DEFAULTS)


_ENCODER_DEFAULTS = {
    "hidden_size": 2304,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "intermediate_size": 9216,
    "sliding_window": 4096,
}


def _crossed(config: Config, index: int) -> tuple[Any, ...]:
    """T5Gemma: cross-attention after self-attention, with weights of its own."""
    own = _gemma2(config, index)
    return (own, _cross_of(config, own, merged=False))


def _merged(config: Config, index: int) -> tuple[Any, ...]:
    """T5Gemma 2: a token attends to earlier ones and to the source at once, by one set of weights."""
    own = _gemma3(config, index)
    return (own, _cross_of(config, own, merged=True))


def _encoder(config: Config, attention: Any, **more: Any) -> Encoder:
    part = _encoder_part(config)
    layers = [
        build(part, LayerGroup, attention=attention(part, i), ffn=_network(part, i), norms=4)
        for i in range(layer_count(part))
    ]
    config.raise_faults()
    return Encoder(layers=group_layers(layers), hidden_size=part.integer("hidden_size"), **more)


def _own_table(config: Config) -> Table:
    """Return the encoder's token embedding."""
    part = _encoder_part(config)
    rows = part.integer("vocab_size", config.integer("vocab_size"))
    return Table(name="encoder.embed_tokens", rows=rows, width=part.integer("hidden_size"))


def _t5gemma_model(config: Config) -> dict[str, Any]:
    """T5Gemma: both sides have an embedding; the head is tied to the decoder's."""
    return {"encoder": _encoder(config, _gemma2, tables=(_own_table(config),))}


def _t5gemma2_model(config: Config) -> dict[str, Any]:
    """T5Gemma 2: one embedding where it is tied; each has a row for the end of an image beside it."""
    hidden, tied = config.integer("hidden_size"), config.flag("tie_word_embeddings", default=True)
    own = () if tied else (_own_table(config),)
    encoder = _encoder(config, _gemma3, tables=own, other_parameters=_encoder_part(config).integer("hidden_size"))
    return {"encoder": encoder, "other_parameters": 0 if tied else hidden}


# ---- ProphetNet ------------------------------------------------------------------------------------------------------


def _prophet_layer(config: Config, index: int) -> dict[str, Any]:  # the signature of every reader
    """ProphetNet: a bias by relative position that is projected from the token."""
    width = config.integer("num_buckets", 32) * config.integer("decoder_attention_heads")
    bias = Projection(
        name="relative_pos_embeddings", input_size=config.integer("hidden_size"), output_size=width, bias=True
    )
    return {"norms": 3, "projections": (bias,)}


def _prophet_model(config: Config) -> dict[str, Any]:
    """ProphetNet: learned positions, and a vector for each of the tokens that it predicts at once."""
    streams = Table(name="ngram_embeddings", rows=config.integer("ngram", 2), width=config.integer("hidden_size"))
    return {**bart_model(extra=0)(config), "tables": (streams,)}


_SIDES = {
    f"{side}_{name}": f"num_{side}_{name}" for side in ("encoder", "decoder") for name in ("layers", "attention_heads")
}

FAMILIES: dict[str, Family] = {
    "t5gemma": Family(
        attention=_crossed,
        ffn=_network,
        norms=6,
        model=_t5gemma_model,
        flat=_flat,
        tied=True,
        ignored=("cross_attention_hidden_size", "is_decoder", "model_type"),
    ),
    "t5gemma2": Family(
        attention=_merged,
        ffn=_network,
        norms=4,
        model=_t5gemma2_model,
        flat=_flat,
        towers=True,
        tied=True,
        ignored=("is_decoder", "model_type"),
    ),
    "prophetnet": bart_like(
        _prophet_model,
        layer=_prophet_layer,
        aliases={
            **BART_NAMES,
            "hidden_size": "hidden_size",
            "num_attention_heads": "num_decoder_attention_heads",
            **_SIDES,
        },
        ignored=(
            "is_encoder_decoder",
            "num_hidden_layers",
            "disable_ngram_loss",
            "relative_max_distance",
            "eps",
            "add_cross_attention",
        ),
    ),
}
