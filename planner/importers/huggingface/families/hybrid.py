"""Hybrids: attention in some layers, and linear attention, a state space or a convolution in the others."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.families.llama_like import llama_attention
from planner.importers.huggingface.parts.basics import (
    always,
    build,
    choose,
    each,
    every,
    kinds,
    layer_count,
)
from planner.importers.huggingface.parts.latent import latent
from planner.importers.huggingface.parts.networks import Experts, after_dense, dense, several, sparse_where
from planner.importers.huggingface.parts.recurrent import (
    Mamba2Reader,
    expanded,
    gated_delta,
    lightning,
    mamba,
    short_convolution,
)
from planner.importers.huggingface.parts.softmax import fixed, softmax
from planner.model import DeltaAttention, FeedForward

KINDS = ("linear_attention", "full_attention")
_plain = softmax()


# ---- Jamba, Bamba, Falcon-H1, Granite 4 ------------------------------------------------------------------------------


def _jamba_rule(config: Config, index: int) -> str:
    """Jamba: one attention layer in `attn_layer_period`, at `attn_layer_offset`."""
    period, offset = config.integer("attn_layer_period", 8), config.integer("attn_layer_offset", 4, least=0)
    return "full_attention" if index % period == offset else "linear_attention"


def _jamba_sparse(config: Config, index: int) -> bool:
    period, offset = config.integer("expert_layer_period", 2), config.integer("expert_layer_offset", 1, least=0)
    return config.integer("num_experts") > 1 and index % period == offset


def _bamba_rule(config: Config, index: int) -> str:
    listed = config.integers("attn_layer_indices") or ()
    return "full_attention" if index in listed else "linear_attention"


_heads_of_mamba = expanded("mamba_n_heads", "mamba_d_head")
_bamba_mamba = Mamba2Reader(head_dim=_heads_of_mamba)
_falcon_mamba = Mamba2Reader(
    head_dim=expanded("mamba_n_heads", "mamba_d_head", inner="mamba_d_ssm"),
    output_bias="projectors_bias",
    gated_norm="mamba_rms_norm",
)
_falcon_attention = softmax(bias="attention_bias", output_bias="attention_bias")


def _falcon_h1(config: Config, index: int) -> tuple[Any, ...]:
    """Falcon-H1: attention and a state space side by side in every layer."""
    return (_falcon_mamba(config, index), _falcon_attention(config, index))


_granite_ffn = Experts(number="num_local_experts", width="intermediate_size", shared="shared_intermediate_size")


def _granite(config: Config, index: int) -> Any:
    """Granite 4: experts and a shared network, or with no experts the shared network alone."""
    if config.optional("num_local_experts", 0, least=0):
        return _granite_ffn(config, index)
    for name in ("num_experts_per_tok", "intermediate_size"):
        config.get(name)
    return build(config, FeedForward, kind="gated", intermediate_size=config.integer("shared_intermediate_size"))


# ---- MiniMax-01, LFM2, Kimi Linear, OLMo hybrid, Alice AI -------------------------------------------------------------


def _minimax_rule(config: Config, index: int) -> str:
    """MiniMax: `attn_type_list` marks the layers of softmax attention with 1; else every other one is linear."""
    listed = config.integers("attn_type_list")
    if listed is not None and index < len(listed):
        return "full_attention" if listed[index] else "linear_attention"
    return "linear_attention" if index % 2 else "full_attention"


def _lfm_rule(config: Config, index: int) -> str:
    """LFM2: `full_attn_idxs` lists the attention layers; the class takes every layer for one where it is absent."""
    listed = config.integers("full_attn_idxs")
    return "full_attention" if listed is None or index in listed else "conv"


_LFM_NOISE = (
    "block_dim",
    "block_mlp_init_scale",
    "block_norm_eps",
    "block_out_init_scale",
    "block_use_swiglu",
    "block_use_xavier_init",
    "conv_dim",
    "conv_dim_out",
    "conv_use_xavier_init",
    "use_pos_enc",
)
"""Fields of LFM2's files that restate others, or that its class does not heed."""


def _lfm_width(config: Config, index: int) -> int:
    """LFM2: the width is cut to two thirds and rounded up, unless told otherwise."""
    width = config.integer("intermediate_size")
    if not config.flag("block_auto_adjust_ff_dim", default=True):
        return width
    width = int(config.real("block_ffn_dim_multiplier", 1.0) * int(2 * width / 3))
    multiple = config.integer("block_multiple_of", 256)
    return max(multiple * -(-width // multiple), 1)


_lfm_kinds = kinds(_lfm_rule, known=("full_attention", "conv"))
_lfm_mixers = choose(_lfm_kinds, {"conv": short_convolution, "full_attention": softmax(qk_norm="head")}, "layer_types")


def _kimi_rule(config: Config, index: int) -> str:
    """Kimi Linear: `linear_attn_config` lists the layers, counted from 1; else every fourth but the first is full."""
    lists = config.part("linear_attn_config")
    full, linear = lists.integers("full_attn_layers"), lists.integers("kda_layers")
    if full is not None and linear is not None:
        if index + 1 not in full and index + 1 not in linear:
            config.fault("linear_attn_config", f"layer {index + 1} is in neither full_attn_layers nor kda_layers")
            config.raise_faults()
        return "full_attention" if index + 1 in full else "linear_attention"
    return "full_attention" if index and index % 4 == 0 else "linear_attention"


def _kimi_delta(config: Config, index: int) -> DeltaAttention:
    """Kimi Linear: sizes stand in `linear_attn_config`, or at the top."""
    own = config.part("linear_attn_config")
    number = own.optional("num_heads") or config.integer("linear_num_heads")
    size = own.optional("head_dim") or config.integer("linear_head_dim")
    return build(
        config,
        DeltaAttention,
        kind="kda",
        num_key_heads=number,
        num_value_heads=number,
        key_head_dim=size,
        value_head_dim=size,
        conv_kernel=own.optional("short_conv_kernel_size") or config.integer("linear_conv_kernel_dim", 4),
        decay_rank=size,
        gate_rank=None if own.flag("use_full_rank_gate", default=False) else size,
    )


def _kimi_gate(config: Config, index: int) -> dict[str, Any]:
    """Kimi K3: a gate for each element of the result."""
    return {"output_gate": "element" if config.flag("mla_use_output_gate", default=False) else None}


def _kimi_layer(config: Config, index: int) -> dict[str, Any]:
    """Kimi K3: a norm of what experts read and write in, and each half reads a mixture of the results of earlier blocks."""
    narrow = config.optional("routed_expert_hidden_size")
    normed = narrow if config.flag("latent_moe_use_norm", default=False) and _kimi_sparse(config, index) else None
    return {"other_parameters": (normed or 0) + (2 if config.given("attn_res_block_size") else 0) * _mixture(config)}


def _mixture(config: Config) -> int:
    """Return what mixes the results of earlier blocks (Attention Residuals): a vector and a norm."""
    return 2 * config.integer("hidden_size")


def _kimi_model(config: Config) -> dict[str, Any]:
    return {"other_parameters": _mixture(config) if config.given("attn_res_block_size") else 0}


_kimi_sparse = sparse_where(after_dense(default=1))


def _olmo_delta(config: Config, index: int) -> DeltaAttention:
    """OLMo hybrid: heads as in softmax attention, keys three quarters of their share, values twice the keys."""
    heads = config.integer("num_attention_heads")
    keys = config.integer("linear_num_key_heads", heads)
    size = config.optional("linear_key_head_dim") or max(int(0.75 * config.integer("hidden_size") / keys), 1)
    return build(
        config,
        DeltaAttention,
        kind="gated_delta",
        num_key_heads=keys,
        num_value_heads=config.integer("linear_num_value_heads", heads),
        key_head_dim=size,
        value_head_dim=config.optional("linear_value_head_dim") or 2 * size,
        conv_kernel=config.integer("linear_conv_kernel_dim"),
    )


def _olmo_rule(config: Config, index: int) -> str:
    last = layer_count(config) - 1
    short = last < 3 and index == last  # a stack with no fourth layer still ends with attention
    return "full_attention" if index % 4 == 3 or short else "linear_attention"  # every fourth


_olmo_attention = softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="full")

# ---- Alice AI --------------------------------------------------------------------------------------------------------


def _alice_delta(config: Config, index: int) -> DeltaAttention:
    """Alice AI: Kimi Delta Attention under Qwen's field names, with as many heads of keys as of values."""
    heads, size = config.integer("linear_num_key_heads"), config.integer("linear_key_head_dim")
    for field, expected in (("linear_num_value_heads", heads), ("linear_value_head_dim", size)):
        if config.integer(field, expected) != expected:
            config.fault(field, f"{config.integer(field)} is not the {expected} of the keys")
            config.raise_faults()
    return build(
        config,
        DeltaAttention,
        kind="kda",
        num_key_heads=heads,
        num_value_heads=heads,
        key_head_dim=size,
        value_head_dim=size,
        conv_kernel=config.integer("linear_conv_kernel_dim", 4),
        decay_rank=size,
        gate_rank=size,
    )


def _alice_layer(config: Config, index: int) -> dict[str, Any]:
    """Alice AI: each half reads a mixture of the results of earlier blocks, chosen by a vector and a norm (Attention Residuals)."""
    return {"other_parameters": (2 if index else 1) * _mixture(config)}


def _alice_model(config: Config) -> dict[str, Any]:
    return {"other_parameters": _mixture(config)}


_alice_kinds = kinds(every("full_attention_interval", 4, other="linear_attention"), known=KINDS)

_LARA = ("linear_attention", "sliding_attention", "linear_attention", "full_attention", "sliding_attention")
"""Lara: the pattern of the class, where the file lists no layers."""

FAMILIES: dict[str, Family] = {
    "jamba": Family(
        attention=choose(
            kinds(_jamba_rule, "layers_block_type", KINDS),
            {"linear_attention": mamba("mamba_", inner_norms=True, bias="mamba_proj_bias"), "full_attention": _plain},
            "layers_block_type",
        ),
        ffn=Experts(width="intermediate_size", sparse=_jamba_sparse),
    ),
    "bamba": Family(
        attention=choose(
            kinds(_bamba_rule, "layer_types", KINDS),
            {"linear_attention": _bamba_mamba, "full_attention": llama_attention},
            "attn_layer_indices",
        ),
        ffn=dense(bias="mlp_bias"),
    ),
    "falcon_h1": Family(
        attention=_falcon_h1,
        ffn=dense(bias="mlp_bias"),
        ignored=("mamba_use_mlp", "mamba_expand", "attn_layer_indices"),
    ),
    "granitemoehybrid": Family(
        attention=choose(
            kinds(always("linear_attention"), known=KINDS),
            {"linear_attention": _bamba_mamba, "full_attention": llama_attention},
            "layer_types",
        ),
        ffn=_granite,
    ),
    "minimax": Family(
        attention=choose(
            kinds(_minimax_rule, known=KINDS), {"linear_attention": lightning, "full_attention": _plain}, "layer_types"
        ),
        ffn=Experts(width="intermediate_size"),
    ),
    "lfm2": Family(
        attention=_lfm_mixers,
        ffn=dense(width=_lfm_width),
        tied=True,
        aliases={"intermediate_size": "block_ff_dim", "tie_word_embeddings": "tie_embedding"},
        ignored=_LFM_NOISE,
    ),
    "lfm2_moe": Family(
        attention=_lfm_mixers,
        ffn=Experts(sparse=lambda config, index: index >= config.integer("num_dense_layers", 0, least=0)),
        tied=True,
        aliases={"tie_word_embeddings": "tie_embedding"},
        ignored=("use_expert_bias",),
    ),
    "kimi_linear": Family(
        attention=choose(
            kinds(_kimi_rule, known=KINDS),
            {"linear_attention": _kimi_delta, "full_attention": latent(more=_kimi_gate)},
            "layer_types",
        ),
        ffn=Experts(shared=several("n_shared_experts"), sparse=_kimi_sparse, latent="routed_expert_hidden_size"),
        layer=_kimi_layer,
        model=_kimi_model,
        tied="never",
        ignored=(
            "activation_situ_beta",
            "activation_situ_linear_beta",
            "mla_use_nope",
            "moe_router_activation_func",
            "use_grouped_topk",
        ),
        # Kimi K3: bf16 in the files (sgl-project/sglang pull request 35406), and not in the block's list.
        plain=("latent_in_proj", "latent_out_proj"),
    ),
    "alice_ai": Family(
        attention=choose(
            _alice_kinds,
            {
                "linear_attention": _alice_delta,
                "full_attention": softmax(qk_norm="head", more=fixed(output_gate="element")),
            },
            "layer_types",
        ),
        ffn=Experts(shared="shared_expert_intermediate_size", shared_gate=True),
        layer=_alice_layer,
        model=_alice_model,
        ignored=(
            "attn_output_gate",
            "block_attn_res_block_size",
            "decoder_sparse_step",
            "full_attention_interval",
            "intermediate_size",
            "kda_allow_negative_eigenvalues",
            "mlp_only_layers",
            "number_of_conv_states",
            "router_bias_correction",
            "router_score_function",
        ),
    ),
    "olmo_hybrid": Family(
        attention=choose(
            kinds(_olmo_rule, known=KINDS),
            {"linear_attention": _olmo_delta, "full_attention": _olmo_attention},
            "layer_types",
        ),
        ffn=dense(),
    ),
    "lara_mini": Family(
        attention=choose(
            kinds(lambda config, index: _LARA[index % len(_LARA)]),  # the signature of every rule
            {
                "linear_attention": gated_delta,
                "full_attention": softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="head"),
                "sliding_attention": softmax(
                    bias="attention_bias",
                    output_bias="attention_bias",
                    qk_norm="head",
                    window=each(lambda config: config.optional("sliding_window")),
                ),
            },
            "layer_types",
        ),
        ffn=Experts(shared="shared_expert_intermediate_size"),
    ),
}
