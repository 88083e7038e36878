"""Architectures of GGUF with mixtures of experts, and those of latent attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.gguf.architecture import Architecture
from planner.importers.gguf.facts import (
    DENSE,
    EXPERT_WIDTH,
    EXPERTS,
    INDEXED,
    KV_HEADS,
    LATENT,
    LOCAL,
    ONE_BIAS,
    PATTERN,
    ROUTED,
    SHARED,
    SHARED_WIDTH,
    WINDOWED,
    Fields,
    count,
    first,
    fixed,
    has,
    sliding,
    sparse_layers,
)
from planner.importers.gguf.source import NEXTN, Source

_QWEN: Fields = {**ROUTED, "decoder_sparse_step": fixed(1), "use_sliding_window": fixed(value=False)}
_AGAIN = (SHARED_WIDTH,)
_MLA_AGAIN = ("attention.key_length", "attention.value_length", KV_HEADS)


def _dbrx_attention(source: Source) -> dict[str, Any]:
    return {"kv_n_heads": source.get(KV_HEADS)}


def _dbrx_experts(source: Source) -> dict[str, Any]:
    return {
        "ffn_hidden_size": source.get("feed_forward_length"),
        "moe_num_experts": source.get(EXPERTS),
        "moe_top_k": source.get("expert_used_count"),
    }


def _sparse_by_layer(source: Source) -> list[int]:
    return [int(found) for found in source.with_tensor("ffn_gate_inp.weight")]


def _windowed_layers(source: Source) -> list[int] | None:
    listed = source.each(PATTERN)
    return [int(bool(item)) for item in listed[: source.layers]] or None


def _ling(qk_norm: str) -> Fields:
    return {
        **SHARED,
        "use_qkv_bias": has("attn_qkv.bias", "attn_q.bias"),
        "use_bias": has("ffn_up_exps.bias"),
        "use_qk_norm": has(qk_norm),
    }


SPARSE: Mapping[str, Architecture] = {
    # ---- experts in every layer
    "llama with experts": Architecture(model_type="mixtral", fields={**LOCAL, "sliding_window": None}),
    "qwen2moe": Architecture(
        model_type="qwen2_moe",
        fields={**_QWEN, "shared_expert_intermediate_size": SHARED_WIDTH, "qkv_bias": has("attn_q.bias")},
    ),
    "qwen3moe": Architecture(model_type="qwen3_moe", fields=_QWEN),
    "qwen3vlmoe": Architecture(model_type="qwen3_vl_moe_text", fields={**ROUTED, "decoder_sparse_step": fixed(1)}),
    "phimoe": Architecture(
        model_type="phimoe",
        fields={**LOCAL, **WINDOWED, "attention_bias": has("attn_q.bias"), "lm_head_bias": has("output.bias")},
        heeded=(EXPERT_WIDTH,),
    ),
    "olmoe": Architecture(
        model_type="olmoe",
        fields={
            "num_experts": EXPERTS,
            "num_experts_per_tok": "expert_used_count",
            "intermediate_size": first(EXPERT_WIDTH, "feed_forward_length"),
        },
        heeded=("feed_forward_length",),
    ),
    "granitemoe": Architecture(model_type="granitemoe", fields={**LOCAL, "attention_bias": has("attn_q.bias")}),
    "granitemoe with shared experts": Architecture(
        model_type="granitemoeshared",
        fields={**LOCAL, "attention_bias": has("attn_q.bias"), "shared_intermediate_size": SHARED_WIDTH},
    ),
    "dbrx": Architecture(
        model_type="dbrx",
        fields={
            "attn_config": _dbrx_attention,
            "ffn_config": _dbrx_experts,
            "intermediate_size": None,
            "num_key_value_heads": None,
        },
    ),
    "grok": Architecture(
        model_type="grok-2",
        fields={**LOCAL, "moe_intermediate_size": EXPERT_WIDTH, "residual_moe": has("ffn_up.weight")},
    ),
    "arctic": Architecture(
        model_type="arctic",
        fields={**LOCAL, "use_residual": fixed(value=True), "moe_layer_frequency": fixed(1), "sliding_window": None},
    ),
    "gpt-oss": Architecture(
        model_type="gpt_oss",
        fields={
            **LOCAL,
            **WINDOWED,
            "intermediate_size": EXPERT_WIDTH,
            "attention_bias": has("attn_q.bias"),
            "layer_types": sliding(2),
        },
        heeded=("feed_forward_length",),
    ),
    "minimax-m2": Architecture(
        model_type="minimax_m2",
        fields={
            **LOCAL,
            "intermediate_size": first(EXPERT_WIDTH, "feed_forward_length"),
            "use_qk_norm": has("attn_q_norm.weight"),
        },
        heeded=("feed_forward_length",),
    ),
    "hunyuan-moe": Architecture(
        model_type="hunyuan_v1_moe",
        fields={
            "num_experts": EXPERTS,
            "num_experts_per_tok": "expert_used_count",
            "intermediate_size": first(EXPERT_WIDTH, "feed_forward_length"),
            "attention_bias": has("attn_q.bias"),
        },
        heeded=("feed_forward_length", SHARED_WIDTH, "expert_shared_count"),
    ),
    # ---- dense layers among them
    "llama4": Architecture(
        model_type="llama4_text",
        fields={
            **LOCAL,
            "intermediate_size": EXPERT_WIDTH,
            "intermediate_size_mlp": "feed_forward_length",
            "moe_layers": sparse_layers,
            "attention_bias": has("attn_q.bias"),
        },
        heeded=("interleave_moe_layer_step",),
    ),
    "ernie4_5-moe": Architecture(
        model_type="ernie4_5_moe",
        fields={
            **ONE_BIAS,
            **ROUTED,
            "n_shared_experts": count("expert_shared_count"),
            "moe_layer_start_index": count(DENSE),
            "moe_layer_interval": lambda source: source.get("interleave_moe_layer_step") or 1,
            "moe_layer_end_index": None,
        },
        heeded=_AGAIN,
    ),
    "deepseek": Architecture(
        model_type="deepseek", fields={**SHARED, "attention_bias": has("attn_q.bias"), "num_nextn_predict_layers": None}
    ),
    "dots1": Architecture(
        model_type="dots1", fields={**SHARED, "attention_bias": has("attn_q.bias"), "sliding_window": None}
    ),
    "glm4moe": Architecture(
        model_type="glm4_moe",
        fields={**SHARED, "use_qk_norm": has("attn_q_norm.weight"), "attention_bias": has("attn_q.bias")},
        heeded=_AGAIN,
    ),
    "bailingmoe": Architecture(model_type="bailing_moe", fields=_ling("attn_q_norm.weight")),
    "bailingmoe2": Architecture(model_type="bailing_moe_v2", fields=_ling("attn_q_norm.weight"), heeded=_AGAIN),
    "exaone-moe": Architecture(
        model_type="exaone_moe", fields={**SHARED, **WINDOWED, "layer_types": sliding(4)}, heeded=_AGAIN
    ),
    "afmoe": Architecture(
        model_type="afmoe",
        fields={
            **ROUTED,
            **WINDOWED,
            "n_shared_experts": count("expert_shared_count"),
            "num_dense_layers": count(DENSE),
            "layer_types": sliding(4),
            "attention_bias": has("attn_q.bias"),
        },
    ),
    "mimo2": Architecture(
        model_type="mimo_v2_flash",
        fields={
            **ROUTED,
            **WINDOWED,
            "hybrid_layer_pattern": _windowed_layers,
            "moe_layer_freq": _sparse_by_layer,
            "swa_num_key_value_heads": KV_HEADS,
            "swa_num_attention_heads": "attention.head_count",
            "swa_head_dim": "attention.key_length",
            "v_head_dim": "attention.value_length",
            "swa_v_head_dim": "attention.value_length",
            "add_swa_attention_sink_bias": has("attn_sinks.weight"),
            "attention_bias": has("attn_q.bias", "attn_qkv.bias"),
            "num_nextn_predict_layers": NEXTN,
        },
        heeded=(DENSE,),
    ),
    "step35": Architecture(
        model_type="step3p5",
        fields={
            **ROUTED,
            **WINDOWED,
            "layer_types": sliding(4),
            "moe_layers_enum": lambda source: ",".join(map(str, sparse_layers(source))),
            "share_expert_dim": SHARED_WIDTH,
            "num_sliding_attention_heads": "attention.head_count",
            "num_nextn_predict_layers": NEXTN,
        },
        heeded=(DENSE, "expert_shared_count"),
    ),
    # ---- latent attention
    "deepseek2": Architecture(model_type="deepseek_v2", fields={**LATENT, **SHARED}, heeded=_MLA_AGAIN),
    "deepseek2 with corrected scores": Architecture(
        model_type="deepseek_v3", fields={**LATENT, **SHARED}, heeded=_MLA_AGAIN
    ),
    "deepseek2-ocr": Architecture(
        model_type="deepseek_v2", fields={**SHARED, "use_mla": fixed(value=False)}, heeded=("attention.key_length",)
    ),
    "mistral4": Architecture(model_type="mistral4", fields={**LATENT, **SHARED}, heeded=_MLA_AGAIN),
    "deepseek32": Architecture(model_type="deepseek_v32", fields={**LATENT, **SHARED, **INDEXED}, heeded=_MLA_AGAIN),
    "glm-dsa": Architecture(model_type="glm_moe_dsa", fields={**LATENT, **SHARED, **INDEXED}, heeded=_MLA_AGAIN),
}
"""By ``general.architecture``."""
