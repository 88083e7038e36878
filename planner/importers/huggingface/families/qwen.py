"""Qwen: dense, mixtures of experts, and the hybrids with gated delta attention."""

from __future__ import annotations

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import always, choose, each, every, kinds
from planner.importers.huggingface.parts.networks import Experts, dense, qwen_sparse
from planner.importers.huggingface.parts.recurrent import gated_delta
from planner.importers.huggingface.parts.softmax import (
    after_first_full,
    fixed,
    softmax,
    window_everywhere,
    window_if_used,
)


def _alternate_early(config: Config, index: int) -> str:
    """Qwen2-MoE: every other one of the first `max_window_layers` layers has the window."""
    early = index < config.integer("max_window_layers", 28, least=0)
    return "sliding_attention" if early and index % 2 == 0 else "full_attention"


SLIDING = ("full_attention", "sliding_attention")
qwen_window = window_if_used(kinds(after_first_full, known=SLIDING))
_qwen2 = softmax(window=qwen_window, bias=True)
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

QWEN2 = Family(attention=_qwen2, ffn=dense())
QWEN3 = Family(attention=_qwen3, ffn=dense())

FAMILIES: dict[str, Family] = {
    "qwen2": QWEN2,
    "qwen2_vl_text": QWEN2,
    "qwen2_5_vl_text": QWEN2,
    "qwen2_5_omni_text": QWEN2,
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
