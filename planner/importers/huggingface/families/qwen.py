"""Qwen: dense, mixtures of experts, and the hybrids with gated delta attention."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import SLIDING, always, choose, each, every, flag, kinds
from planner.importers.huggingface.parts.networks import Experts, dense, qwen_sparse
from planner.importers.huggingface.parts.recurrent import gated_delta
from planner.importers.huggingface.parts.softmax import (
    after_first_full,
    fixed,
    softmax,
    window_everywhere,
    window_if_used,
)
from planner.model import Projection


def _alternate_early(config: Config, index: int) -> str:
    """Qwen2-MoE: every other one of the first `max_window_layers` layers has the window."""
    early = index < config.integer("max_window_layers", 28, least=0)
    return "sliding_attention" if early and index % 2 == 0 else "full_attention"


qwen_window = window_if_used(kinds(after_first_full, known=SLIDING))
_qwen2 = softmax(
    window=qwen_window, bias=True, qk_norm=each(lambda config: "head" if flag(config, "qk_norm") else None)
)
_qwen3 = softmax(window=qwen_window, bias="attention_bias", output_bias="attention_bias", qk_norm="head")
_hybrid = kinds(every("full_attention_interval", 4, other="linear_attention"))
_gated = softmax(
    bias="attention_bias",
    output_bias="attention_bias",
    qk_norm="head",
    more=fixed(output_gate=each(lambda config: "element" if config.flag("attn_output_gate", default=True) else None)),
)
_next = choose(_hybrid, {"linear_attention": gated_delta, "full_attention": _gated}, "layer_types")
_shared = Experts(shared="shared_expert_intermediate_size", shared_gate=True, sparse=qwen_sparse)

_whole = window_if_used(kinds(always("sliding_attention"), known=SLIDING))
_moe = softmax(window=_whole, bias="attention_bias", output_bias="attention_bias", qk_norm="head")
_omni = softmax(window=window_everywhere, bias="attention_bias", output_bias="attention_bias", qk_norm="head")
_vl_moe = softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="head")

# ---- Intern-S1-Pro, Intern-S2-Mobius -----------------------------------------------------------------------------------


def _interns1_pro(config: Config, index: int) -> Any:
    """Intern-S1-Pro: Qwen3-MoE, with a rotary embedding that learns how its frequencies mix."""
    config.tell("the learned mixture of the rotary embedding's frequencies, some ten thousand numbers, is not counted")
    return _vl_moe(config, index)


_mobius_shared = dense(width="shared_expert_intermediate_size")
_mobius_experts = Experts()


def _mobius_ffn(config: Config, index: int) -> tuple[Any, Any]:
    """Intern-S2-Mobius: a network of the layer's own, and experts that every `num_blocks`-th layer has in common."""
    routed = _mobius_experts(config, index)
    if index >= config.integer("num_blocks"):
        routed = routed.model_copy(update={"shared_weights": True})
    return (_mobius_shared(config, index), routed)


def _mobius_layer(config: Config, index: int) -> dict[str, Any]:
    """Intern-S2-Mobius: a number that weighs the layer's own network, and where asked for a scale of each half's result."""
    hidden = config.integer("hidden_size")
    gate = Projection(name="shared_expert_gate", input_size=hidden, output_size=1)
    scaled = config.flag("layer_scale", default=False)
    return {"projections": (gate,), "other_parameters": 2 * hidden if scaled else 0}


QWEN2 = Family(attention=_qwen2, ffn=dense())
QWEN3 = Family(attention=_qwen3, ffn=dense())

FAMILIES: dict[str, Family] = {
    "qwen2": QWEN2,
    "qwen2_vl_text": QWEN2,
    "qwen2_5_vl_text": QWEN2,
    "qwen2_5_omni_text": QWEN2,
    "interns1_pro_text": Family(attention=_interns1_pro, ffn=Experts(sparse=qwen_sparse), ignored=("router_n_groups",)),
    "interns2_mobius_text": Family(
        attention=_next, ffn=_mobius_ffn, layer=_mobius_layer, ignored=("full_attention_interval",)
    ),
    "qwen2_moe": Family(
        attention=softmax(window=window_if_used(kinds(_alternate_early, known=SLIDING)), bias="qkv_bias"), ffn=_shared
    ),
    "qwen3": QWEN3,
    "qwen3_vl_text": QWEN3,
    "qwen3_moe": Family(
        attention=_moe,
        ffn=Experts(sparse=qwen_sparse),
        ignored=("use_qk_norm", "shared_expert_intermediate_size", "max_window_layers"),
    ),
    "qwen3_vl_moe_text": Family(attention=_vl_moe, ffn=Experts(sparse=qwen_sparse)),
    "qwen3_omni_moe_text": Family(attention=_omni, ffn=Experts(sparse=qwen_sparse)),
    "qwen3_next": Family(
        attention=_next, ffn=_shared, ignored=("full_attention_interval", "mlp_only_layers", "decoder_sparse_step")
    ),
    "qwen3_5_text": Family(
        attention=_next, ffn=dense(), ignored=("full_attention_interval", "mlp_only_layers", "decoder_sparse_step")
    ),
    "qwen3_5_moe_text": Family(
        attention=_next,
        ffn=Experts(shared="shared_expert_intermediate_size", shared_gate=True),
        ignored=("full_attention_interval", "mlp_only_layers", "decoder_sparse_step"),
    ),
}
