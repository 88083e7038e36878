"""Ling (Bailing), and what was built on its code: Param2.

Facts are those of vLLM's model files (bailing_moe, bailing_moe_linear, bailing_moe_v3, param2moe; 0.33.0), and of the
transformers library's class where it has one (bailing_hybrid, 5.24.0).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import choose, each, every, first_layers, flag, kinds
from planner.importers.huggingface.parts.latent import latent
from planner.importers.huggingface.parts.networks import Experts, after_dense, dense, sparse_by_type
from planner.importers.huggingface.parts.recurrent import kimi_delta, lightning
from planner.importers.huggingface.parts.softmax import softmax
from planner.model import DeltaAttention, LightningAttention

KINDS = ("linear_attention", "full_attention")


def _shared(config: Config, index: int) -> int:  # the signature of every reader
    """Shared experts have a width of their own where `moe_shared_expert_intermediate_size` says so."""
    number = config.optional("n_shared_experts", 0, least=0) or 0
    width = config.optional("moe_shared_expert_intermediate_size") or config.integer("moe_intermediate_size")
    return number * width


def _param_shared(config: Config, index: int) -> int:
    """Param2: `moe_shared_expert_intermediate_size` is the width of all shared experts together."""
    number = config.optional("n_shared_experts", 1, least=0) or 0
    stated = config.optional("moe_shared_expert_intermediate_size")
    return number and (stated or number * config.integer("moe_intermediate_size"))


def _inputs(config: Config, index: int) -> bool:
    return flag(config, "use_qkv_bias") or flag(config, "use_bias")


_qk_norm = each(lambda config: "head" if flag(config, "use_qk_norm") else None)
_NOISE = (
    "moe_router_enable_expert_bias",
    "moe_router_enable_routed_scaling",
    "moe_router_enable_shared_expert",
    "norm_head",
    "norm_softmax",
    "max_window_layers",
    "output_dropout",
    "rotary_dim",
    "score_function",
    "use_rmsnorm",
)

LING = Family(
    attention=softmax(bias=_inputs, output_bias="use_bias", qk_norm=_qk_norm),
    ffn=Experts(
        shared=_shared,
        sparse=after_dense(),
        bias="use_bias",
        shared_bias="use_bias",
        otherwise=dense(bias="use_bias"),
    ),
    ignored=_NOISE,
)

# ---- Ling 2.5 and 3: linear attention in most layers ------------------------------------------------------------------

_bailing_kinds = kinds(every("layer_group_size", 6, other="linear_attention"), known=KINDS)
_kimi = kimi_delta("num_attention_heads", "head_dim", "short_conv_kernel_size", low_rank=False)


def _is_lightning(config: Config) -> bool:
    """Ling 2.5 and 3 share a type; the older has lightning attention, whose norm is in groups, and no short convolution."""
    return config.given("group_norm_size") and not config.given("short_conv_kernel_size")


def _linear(config: Config, index: int) -> DeltaAttention | LightningAttention:
    return lightning(config, index) if _is_lightning(config) else _kimi(config, index)


def _gate(config: Config, index: int) -> dict[str, Any]:
    """Return the gate of latent attention: as the file says, for each head where Ling 3 does not say it."""
    known = {"head_wise": "head", "element_wise": "element"}
    stated = config.text("gated_attention_proj_granularity_type")
    if stated and stated not in known:
        config.fault("gated_attention_proj_granularity_type", f"{stated[:20]!r} is not one of {', '.join(known)}")
        config.raise_faults()
    return {"output_gate": known[stated] if stated else None if _is_lightning(config) else "head"}


def _lightning_norms(config: Config, index: int) -> dict[str, Any]:
    """Ling 2.5: norms of queries and keys in linear attention."""
    if not _is_lightning(config) or _bailing_kinds(config, index) != "linear_attention" or not _qk_norm(config, index):
        return {}
    return {"other_parameters": 2 * config.integer("head_dim")}


_HYBRID = Family(
    attention=choose(
        _bailing_kinds, {"linear_attention": _linear, "full_attention": latent(more=_gate)}, "layer_types"
    ),
    ffn=Experts(
        shared=_shared,
        sparse=sparse_by_type(first_layers("first_k_dense_replace", 1)),
    ),
    layer=_lightning_norms,
    tied="never",
    ignored=(
        *_NOISE,
        "linear_conv_kernel_dim",
        "linear_num_heads",
        "layer_group_size",
        "linear_silu",
        "use_linear_silu",
        "linear_rope",
        "no_kda_lora",
        "expert_swiglu_limit_list",
        "share_expert_swiglu_limit_list",
        "layers_block_type",
        "rope_interleave",
    ),
)

FAMILIES: dict[str, Family] = {
    "bailing_moe": LING,
    "bailing_moe_v2": LING,
    "bailing_hybrid": _HYBRID,
    "bailing_moe_linear": _HYBRID,
    "bailing_moe_v3": _HYBRID,
    "bailing_moe_v3_vl": Family(text="bailing_hybrid"),
    "param2moe": replace(
        LING,
        attention=softmax(bias="use_qkv_bias", output_bias="use_bias", qk_norm=_qk_norm),
        ffn=Experts(shared=_param_shared, sparse=after_dense(default=1)),
    ),
}
