"""Architectures of GGUF whose layers are recurrent, or partly so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.gguf.architecture import Architecture
from planner.importers.gguf.facts import (
    BIASES,
    DELTA,
    DENSE,
    EXPERTS,
    HEADS_OF_STATE,
    INNER,
    KV_HEADS,
    LATENT,
    LOCAL,
    MAMBA2,
    ROUTED,
    SHARED,
    SHARED_WIDTH,
    Fields,
    count,
    fixed,
    has,
    kinds,
    ratio,
    recurrent,
    sparse_layers,
)
from planner.importers.gguf.source import NEXTN, Source

_NO_ATTENTION: Fields = dict.fromkeys(("intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim"))
_RWKV: Fields = dict.fromkeys(("num_attention_heads", "num_key_value_heads", "head_dim"))
_MIXES = ("time_mix_extra_dim", "time_decay_extra_dim")
_INTERVAL = ("full_attention_interval",)
_CONVOLVED: Fields = {
    "layer_types": recurrent("full_attention", "conv"),
    "conv_L_cache": "shortconv.l_cache",
    "conv_bias": has("shortconv.conv.bias", "shortconv.in_proj.bias"),
}


def _jamba_period(source: Source) -> int:
    """Jamba: the distance between layers of experts; more than there are layers where there is but one."""
    found = sparse_layers(source)
    return found[1] - found[0] if len(found) > 1 else max(source.layers, 1) + 1


def _jamba_offset(source: Source) -> int:
    return next(iter(sparse_layers(source)), source.layers)


def _plamo_step(source: Source) -> int:
    """PLaMo 2: attention is the middle layer of each run of so many."""
    found = [layer for layer, has_it in enumerate(source.with_tensor("attn_output.weight")) if has_it]
    if len(found) > 1:
        return found[1] - found[0]
    return 2 * max(found[0] if found else source.layers, 1) + 1


def _letters(source: Source) -> str:
    """Nemotron-H: what each layer is, by the tensors that it has."""
    marks = (("ssm_in.weight", "M"), ("attn_q.weight", "*"), ("ffn_up_exps.weight", "E"), ("ffn_up.weight", "-"))
    found = ["?"] * source.layers
    for name, letter in reversed(marks):
        found = [letter if has_it else old for has_it, old in zip(source.with_tensor(name), found, strict=True)]
    return "".join(found)


def _kimi_layers(source: Source) -> dict[str, Any]:
    heads = source.each(KV_HEADS)[: source.layers]
    return {
        "full_attn_layers": [layer for layer, n in enumerate(heads, 1) if n],
        "kda_layers": [layer for layer, n in enumerate(heads, 1) if not n],
        "num_heads": source.get("attention.head_count"),
        "head_dim": source.get("kda.head_dim"),
        "short_conv_kernel_size": source.get("ssm.conv_kernel"),
    }


HYBRID: Mapping[str, Architecture] = {
    # ---- state spaces alone
    "mamba": Architecture(
        model_type="mamba",
        fields={
            **_NO_ATTENTION,
            "state_size": "ssm.state_size",
            "conv_kernel": "ssm.conv_kernel",
            "time_step_rank": HEADS_OF_STATE,
            "expand": ratio(INNER, "embedding_length"),
            "use_bias": has("ssm_in.bias"),
            "use_conv_bias": has("ssm_conv1d.bias"),
        },
    ),
    "mamba2": Architecture(
        model_type="mamba2",
        fields={
            **_NO_ATTENTION,
            "state_size": "ssm.state_size",
            "conv_kernel": "ssm.conv_kernel",
            "num_heads": HEADS_OF_STATE,
            "head_dim": ratio(INNER, HEADS_OF_STATE),
            "n_groups": "ssm.group_count",
            "use_bias": has("ssm_in.bias"),
            "use_conv_bias": has("ssm_conv1d.bias"),
        },
    ),
    # ---- inputs mixed with those of the token before
    "rwkv6": Architecture(model_type="rwkv6", fields={**_RWKV, "head_size": "wkv.head_size"}, heeded=_MIXES),
    "rwkv6qwen2": Architecture(
        model_type="rwkv6qwen2",
        fields={
            "num_attention_heads": ratio("embedding_length", "wkv.head_size"),
            "attention_bias": has("time_mix_key.bias"),
            "lora_rank_tokenshift": "time_mix_extra_dim",
            "lora_rank_decay": "time_decay_extra_dim",
            "head_dim": None,
        },
        heeded=("token_shift_count",),
    ),
    "rwkv7": Architecture(
        model_type="rwkv7",
        fields={
            **_RWKV,
            "head_size": "wkv.head_size",
            "lora_rank_decay": "attention.decay_lora_rank",
            "lora_rank_iclr": "attention.iclr_lora_rank",
            "lora_rank_value_residual_mix": "attention.value_residual_mix_lora_rank",
            "lora_rank_gate": "attention.gate_lora_rank",
        },
    ),
    # ---- state spaces and attention
    "plamo2": Architecture(
        model_type="plamo2",
        fields={
            "mamba_step": _plamo_step,
            "mamba_num_heads": HEADS_OF_STATE,
            "mamba_d_state": "ssm.state_size",
            "mamba_d_conv": "ssm.conv_kernel",
            "hidden_size_per_head": "attention.key_length",
            "attention_window_size": None,
            "head_dim": None,
        },
        heeded=(INNER, "ssm.group_count"),
    ),
    "jamba": Architecture(
        model_type="jamba",
        fields={
            "num_experts": EXPERTS,
            "num_experts_per_tok": "expert_used_count",
            "layers_block_type": kinds("ssm_in.weight", "linear_attention", "full_attention"),
            "expert_layer_period": _jamba_period,
            "expert_layer_offset": _jamba_offset,
            "mamba_d_state": "ssm.state_size",
            "mamba_d_conv": "ssm.conv_kernel",
            "mamba_dt_rank": HEADS_OF_STATE,
            "mamba_expand": ratio(INNER, "embedding_length"),
            "mamba_conv_bias": has("ssm_conv1d.bias"),
            "mamba_proj_bias": has("ssm_in.bias"),
        },
    ),
    "falcon-h1": Architecture(
        model_type="falcon_h1",
        fields={
            **BIASES,
            **MAMBA2,
            "mamba_d_ssm": INNER,
            "mamba_rms_norm": has("ssm_norm.weight"),
            "projectors_bias": has("ssm_out.bias"),
        },
    ),
    "granitehybrid": Architecture(
        model_type="granitemoehybrid",
        fields={
            **MAMBA2,
            **LOCAL,
            "shared_intermediate_size": SHARED_WIDTH,
            "attention_bias": has("attn_q.bias"),
            "layer_types": kinds("ssm_in.weight", "linear_attention", "full_attention"),
        },
    ),
    "bamba": Architecture(
        model_type="bamba",
        fields={**BIASES, **MAMBA2, "layer_types": kinds("ssm_in.weight", "linear_attention", "full_attention")},
    ),
    **dict.fromkeys(
        ("nemotron_h", "nemotron_h_moe"),
        Architecture(
            model_type="nemotron_h",
            fields={
                **ROUTED,
                "n_shared_experts": count("expert_shared_count"),
                "moe_shared_expert_intermediate_size": SHARED_WIDTH,
                "moe_latent_size": "moe_latent_size",
                "hybrid_override_pattern": _letters,
                "mamba_num_heads": HEADS_OF_STATE,
                "mamba_head_dim": ratio(INNER, HEADS_OF_STATE),
                "n_groups": "ssm.group_count",
                "ssm_state_size": "ssm.state_size",
                "conv_kernel": "ssm.conv_kernel",
                "use_conv_bias": has("ssm_conv1d.bias"),
                "use_bias": has("ssm_in.bias"),
                "mlp_bias": has("ffn_up.bias"),
                "num_nextn_predict_layers": NEXTN,
            },
        ),
    ),
    # ---- linear attention, convolutions
    "qwen3next": Architecture(
        model_type="qwen3_next",
        fields={**ROUTED, **DELTA, "shared_expert_intermediate_size": SHARED_WIDTH, "num_nextn_predict_layers": NEXTN},
        heeded=_INTERVAL,
    ),
    "qwen35": Architecture(
        model_type="qwen3_5_text", fields={**DELTA, "num_nextn_predict_layers": NEXTN}, heeded=_INTERVAL
    ),
    "qwen35moe": Architecture(
        model_type="qwen3_5_moe_text",
        fields={**ROUTED, **DELTA, "shared_expert_intermediate_size": SHARED_WIDTH, "num_nextn_predict_layers": NEXTN},
        heeded=_INTERVAL,
    ),
    "kimi-linear": Architecture(
        model_type="kimi_linear",
        fields={**LATENT, **SHARED, "linear_attn_config": _kimi_layers},
        heeded=("attention.key_length", "attention.value_length"),
    ),
    "lfm2": Architecture(model_type="lfm2", fields={**_CONVOLVED, "block_auto_adjust_ff_dim": fixed(value=False)}),
    "lfm2moe": Architecture(model_type="lfm2_moe", fields={**_CONVOLVED, **ROUTED, "num_dense_layers": count(DENSE)}),
}
"""By ``general.architecture``."""
