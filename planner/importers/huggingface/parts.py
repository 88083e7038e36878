"""Readers of the parts of a layer: each takes a config and a layer's index, and returns a block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from planner.importers.huggingface.config import Config
from planner.model.attention import AnyAttention, LatentAttention, SoftmaxAttention
from planner.model.feedforward import AnyFeedForward, FeedForward, MixtureOfExperts

AttentionReader = Callable[[Config, int], AnyAttention | None]
FeedForwardReader = Callable[[Config, int], AnyFeedForward | None]
WindowReader = Callable[[Config, int], int | None]


# ---- windows ---------------------------------------------------------------------------------------------------------


def no_window(config: Config, index: int) -> int | None:  # noqa: ARG001 - the signature of every window reader
    """Every layer attends to everything."""
    return None


def window_everywhere(config: Config, index: int) -> int | None:  # noqa: ARG001
    """`sliding_window` holds for every layer, null for none."""
    return config.optional("sliding_window")


def window_if_used(config: Config, index: int) -> int | None:
    """Qwen: `use_sliding_window` must be true; the first `max_window_layers` layers attend to everything."""
    window = config.optional("sliding_window")
    first = config.optional("max_window_layers", 28, least=0) or 0
    if not config.flag("use_sliding_window", default=False):
        return None
    return window_by_layer_types(config, index) if config.has("layer_types") else window if index >= first else None


def window_by_layer_types(config: Config, index: int) -> int | None:
    """`layer_types` names the layers with a window."""
    types = config.listed("layer_types", config.integer("num_hidden_layers"))
    window = config.optional("sliding_window")
    return window if types and types[index] == "sliding_attention" else None


# ---- attention -------------------------------------------------------------------------------------------------------


def softmax_kind(heads: int, kv_heads: int) -> Literal["mha", "mqa", "gqa"]:
    """Return the name of the sharing of KV heads."""
    if kv_heads == heads:
        return "mha"
    return "mqa" if kv_heads == 1 else "gqa"


def head_dim(config: Config, heads: int) -> int:
    """Return `head_dim`, or the hidden size shared out over the heads."""
    stated = config.optional("head_dim")
    if stated is not None:
        return stated
    hidden = config.integer("hidden_size")
    if hidden % heads:
        config.fault("num_attention_heads", f"{heads} does not divide hidden_size {hidden}, and head_dim is not given")
        return 1
    return hidden // heads


def grouped_query(
    *,
    window: WindowReader = no_window,
    qkv_bias: bool | str = False,
    output_bias: bool | str = False,
    qk_norm: Literal["head", "full"] | None = None,
) -> AttentionReader:
    """Return a reader of softmax attention; a bias is a fixed fact of the architecture, or the name of the field that says so."""

    def read(config: Config, index: int) -> SoftmaxAttention:
        heads = config.integer("num_attention_heads")
        kv_heads = config.integer("num_key_value_heads", heads)
        if heads % kv_heads:
            config.fault("num_key_value_heads", f"{kv_heads} does not divide num_attention_heads {heads}")
            kv_heads = heads
        return SoftmaxAttention(
            kind=softmax_kind(heads, kv_heads),
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim(config, heads),
            qkv_bias=_fact(config, qkv_bias),
            output_bias=_fact(config, output_bias),
            qk_norm=qk_norm,
            sliding_window=window(config, index),
        )

    return read


def latent(config: Config, index: int) -> LatentAttention:  # noqa: ARG001 - the signature of every attention reader
    """Read multi-head latent attention. `num_key_value_heads` and `head_dim` in such files mean nothing."""
    config.get("num_key_value_heads")
    config.get("head_dim")
    return LatentAttention(
        kind="mla",
        num_attention_heads=config.integer("num_attention_heads"),
        q_lora_rank=config.optional("q_lora_rank"),
        kv_lora_rank=config.integer("kv_lora_rank"),
        qk_nope_head_dim=config.integer("qk_nope_head_dim"),
        qk_rope_head_dim=config.integer("qk_rope_head_dim"),
        v_head_dim=config.integer("v_head_dim"),
        attention_bias=config.flag("attention_bias", default=False),
    )


def _fact(config: Config, fact: bool | str) -> bool:
    return config.flag(fact, default=False) if isinstance(fact, str) else fact


# ---- feed-forward ----------------------------------------------------------------------------------------------------


def dense(
    *, kind: Literal["gated", "plain"] = "gated", bias: bool | str = False
) -> Callable[[Config, int], FeedForward]:
    """Return a reader of a dense network."""

    def read(config: Config, index: int) -> FeedForward:  # noqa: ARG001
        return FeedForward(kind=kind, intermediate_size=config.integer("intermediate_size"), bias=_fact(config, bias))

    return read


def _experts(config: Config, count: int, width: int, *, shared: int = 0) -> MixtureOfExperts:
    chosen = config.integer("num_experts_per_tok")
    if chosen > count:
        config.fault("num_experts_per_tok", f"{chosen} is more than the {count} experts")
        chosen = count
    return MixtureOfExperts(
        kind="moe",
        num_experts=count,
        num_experts_per_tok=chosen,
        moe_intermediate_size=width,
        shared_intermediate_size=shared or None,
    )


def mixtral_experts(config: Config, index: int) -> MixtureOfExperts:  # noqa: ARG001
    """Every layer has experts, of `intermediate_size`."""
    return _experts(config, config.integer("num_local_experts"), config.integer("intermediate_size"))


def qwen_experts(config: Config, index: int) -> AnyFeedForward:
    """Every `decoder_sparse_step`-th layer has experts, but for those in `mlp_only_layers`."""
    count = config.integer("num_experts", least=0)
    step = config.integer("decoder_sparse_step", 1)
    dense_layers = config.listed("mlp_only_layers") or []
    if index in dense_layers or count == 0 or (index + 1) % step:
        return dense()(config, index)
    config.get("intermediate_size")
    return _experts(config, count, config.integer("moe_intermediate_size"))


def deepseek_experts(config: Config, index: int) -> AnyFeedForward:
    """Read DeepSeek's: the first `first_k_dense_replace` layers are dense, the others have routed and shared experts."""
    first = config.optional("first_k_dense_replace", 0, least=0) or 0
    every = config.integer("moe_layer_freq", 1)
    if index < first or index % every:
        return dense()(config, index)
    width = config.integer("moe_intermediate_size")
    shared = width * (config.optional("n_shared_experts", 0, least=0) or 0)
    return _experts(config, config.integer("n_routed_experts"), width, shared=shared)
