"""T5 and its relatives: encoder-decoders with a learned bias by distance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import build, each
from planner.importers.huggingface.stack import group_layers
from planner.model import (
    CrossAttention,
    Encoder,
    FeedForward,
    LayerGroup,
    MixtureOfExperts,
    SoftmaxAttention,
    Table,
)
from planner.model.stack import MAX_LAYERS


def stack_length(config: Config, field: str, default: str = "") -> int:
    """Return the number of layers of one of the stacks."""
    count = config.integer(field, config.integer(default) if default else None or config.integer(field))
    if count > MAX_LAYERS:
        config.fault(field, f"{count} layers are more than make sense (at most {MAX_LAYERS})")
        config.raise_faults()
    return count


def _t5_self(config: Config) -> SoftmaxAttention:
    return build(
        config,
        SoftmaxAttention,
        kind="mha",
        num_attention_heads=config.integer("num_attention_heads"),
        head_dim=config.integer("d_kv"),
    )


def _t5_cross(config: Config) -> CrossAttention:
    heads, dim = config.integer("num_attention_heads"), config.integer("d_kv")
    return build(config, CrossAttention, kind="cross", num_attention_heads=heads, head_dim=dim)


def _t5_ffn(config: Config) -> FeedForward:
    """T5: `feed_forward_proj` names the activation, with a prefix where it is gated, unless `is_gated_act` says otherwise."""
    gated = config.flag("is_gated_act", default=config.text("feed_forward_proj", "relu").startswith("gated"))
    kind = "gated" if gated else "plain"
    return build(config, FeedForward, kind=kind, intermediate_size=config.integer("d_ff"))


def _buckets(config: Config, index: int) -> int:
    """Return the parameters of the relative position bias, which the first layer of a stack holds."""
    if index and not config.derived("bias_everywhere", lambda: False):
        return 0
    return config.integer("relative_attention_num_buckets", 32) * config.integer("num_attention_heads")


def t5_encoder(config: Config) -> Encoder:
    """Return T5's encoder."""
    layers = [
        build(config, LayerGroup, attention=_t5_self(config), ffn=_t5_ffn(config), other_parameters=_buckets(config, i))
        for i in range(stack_length(config, "num_layers"))
    ]
    config.raise_faults()
    return Encoder(layers=group_layers(layers))


def _t5_model(config: Config) -> dict[str, Any]:
    return {"encoder": t5_encoder(config)}


def _t5_bias(config: Config, index: int) -> dict[str, Any]:
    return {"norms": 3, "other_parameters": _buckets(config, index)}


def _everywhere(config: Config, index: int) -> dict[str, Any]:
    """UMT5: every layer has a relative position bias of its own."""
    config.derived("bias_everywhere", lambda: True)
    return _t5_bias(config, index)


def _t5_layers(config: Config) -> int:
    return stack_length(config, "num_decoder_layers", "num_layers")


def _t5_attention(config: Config, index: int) -> tuple[Any, ...]:  # the signature of every reader
    return (_t5_self(config), _t5_cross(config))


T5_NAMES = {
    "hidden_size": "d_model",
    "num_attention_heads": "num_heads",
    "d_kv": "head_dim",
}
T5 = Family(
    attention=_t5_attention,
    ffn=each(_t5_ffn),
    layer=_t5_bias,
    model=_t5_model,
    layers=_t5_layers,
    tied="always",
    aliases=T5_NAMES,
    ignored=(
        "num_hidden_layers",
        "is_encoder_decoder",
        "dense_act_fn",
        "relative_attention_max_distance",
    ),
)


def _switch_ffn(config: Config, index: int, *, decoder: bool) -> FeedForward | MixtureOfExperts:
    """Switch: every n-th layer of a stack has experts, of which a token is sent to one."""
    side = "decoder" if decoder else "encoder"
    layers = _t5_layers(config) if decoder else stack_length(config, "num_layers")
    sparse = config.integer(f"num_sparse_{side}_layers", 3, least=0)
    step = layers // sparse if sparse else layers
    if step < 1 or not (index % step == 1 or step == 1):
        return build(config, FeedForward, kind="plain", intermediate_size=config.integer("d_ff"))
    return build(
        config,
        MixtureOfExperts,
        kind="moe",
        num_experts=config.integer("num_experts"),
        num_experts_per_tok=1,
        moe_intermediate_size=config.integer("d_ff"),
        gated=False,
        router_bias=config.flag("router_bias", default=False),
    )


def _switch_encoder(config: Config) -> dict[str, Any]:
    layers = [
        build(
            config,
            LayerGroup,
            attention=_t5_self(config),
            ffn=_switch_ffn(config, i, decoder=False),
            other_parameters=_buckets(config, i),
        )
        for i in range(stack_length(config, "num_layers"))
    ]
    config.raise_faults()
    return {"encoder": Encoder(layers=group_layers(layers), tables=own_embeddings(config, 2))}


def _pop_model(config: Config) -> dict[str, Any]:
    """Pop2Piano: the source is a spectrum of the hidden width, with a row for the composer before it; notes come out."""
    rows, width = config.integer("composer_vocab_size", 21), config.integer("hidden_size")
    composers = Table(name="mel_conditioner", rows=rows, width=width)
    return {"encoder": t5_encoder(config).model_copy(update={"tables": (composers,)})}


def own_embeddings(config: Config, copies: int) -> tuple[Table, ...]:
    """Return the token embeddings that the sides have of their own where nothing is tied; else they are one."""
    if config.flag("tie_word_embeddings", default=True):
        return ()
    rows, width = config.integer("vocab_size"), config.integer("hidden_size")
    return tuple(Table(name=f"embed_tokens.{i}", rows=rows, width=width) for i in range(copies))


FAMILIES: dict[str, Family] = {
    "t5": T5,
    "mt5": T5,
    "umt5": replace(T5, layer=_everywhere),
    "longt5": replace(T5, ignored=(*T5.ignored, "local_radius", "global_block_size", "encoder_attention_type")),
    "pop2piano": replace(T5, model=_pop_model, tied="never"),
    "switch_transformers": replace(
        T5,
        ffn=lambda config, index: _switch_ffn(config, index, decoder=True),
        model=_switch_encoder,
        tied=True,
        ignored=(*T5.ignored, "encoder_sparse_step", "decoder_sparse_step", "expert_capacity"),
    ),
}
