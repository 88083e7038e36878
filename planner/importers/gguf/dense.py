"""Architectures of GGUF with softmax attention and dense networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.gguf.architecture import Architecture
from planner.importers.gguf.facts import (
    BIASES,
    KV_HEADS,
    LATENT,
    ONE_BIAS,
    WINDOWED,
    Fields,
    count,
    fixed,
    has,
    lacks,
    ratio,
    rows,
    sliding,
)
from planner.importers.gguf.source import Source

_NO_WINDOW: Fields = {"sliding_window": None}
_EMBEDDED: Fields = {
    "hidden_size_per_layer_input": "embedding_length_per_layer_input",
    "vocab_size_per_layer_input": rows("per_layer_token_embd.weight"),
    "num_kv_shared_layers": count("attention.shared_kv_layers"),
}
_POSITIONS: Fields = {"max_position_embeddings": rows("position_embd.weight")}
_INNER: Fields = {"n_inner": "feed_forward_length", "intermediate_size": None, "num_key_value_heads": None}
_STATED = ("context_length", KV_HEADS)


def _falcon_norms(source: Source) -> int:
    return 2 if source.has("attn_norm_2.weight") else 1


def _mpt_attention(source: Source) -> dict[str, Any]:
    return {"kv_n_heads": source.get(KV_HEADS), "alibi": not source.has("position_embd.weight")}


def _blocks(source: Source) -> list[dict[str, Any]]:
    """Nemotron NAS: 0 query heads stand for a layer without attention, 0 KV heads alone for a linear map in its place."""
    heads, kv_heads = source.each("attention.head_count"), source.each(KV_HEADS)
    widths = source.each("feed_forward_length")
    return [
        {
            "attention": {
                "no_op": not n,
                "replace_with_linear": bool(n and not k),
                "n_heads_in_group": n // k if k else None,
            },
            "ffn": {"no_op": not width, "intermediate_size": width or None},
        }
        for n, k, width in zip(heads, kv_heads, widths, strict=False)
    ]


def _gated(source: Source) -> str:
    return "gated-gelu" if source.has("ffn_gate.weight") else "relu"


# llama.cpp knows no window of these: a file that states one has it told.
_QWEN2: Fields = {"use_sliding_window": fixed(value=False)}
_QWEN3: Fields = {**_QWEN2, "attention_bias": has("attn_q.bias")}
_SIX: Fields = {**WINDOWED, "layer_types": sliding(6)}
_T5: Fields = {
    "num_layers": "block_count",
    "num_decoder_layers": lambda source: source.get("decoder_block_count") or source.get("block_count"),
    "d_kv": "attention.key_length",
    "d_ff": "feed_forward_length",
    "relative_attention_num_buckets": "attention.relative_buckets_count",
    "feed_forward_proj": _gated,
    **dict.fromkeys(("head_dim", "intermediate_size", "num_key_value_heads", "num_hidden_layers")),
}
_T5_AGAIN = ("attention.value_length", KV_HEADS)

DENSE: Mapping[str, Architecture] = {
    # ---- Llama and its relatives
    "llama": Architecture(model_type="llama", fields=BIASES),
    "llama-embed": Architecture(model_type="llama", fields=BIASES),
    "mistral3": Architecture(model_type="llama", fields=BIASES),
    "granite": Architecture(model_type="granite", fields=BIASES),
    "arcee": Architecture(model_type="arcee", fields=BIASES),
    "smollm3": Architecture(
        model_type="smollm3", fields={**BIASES, **_NO_WINDOW, "use_sliding_window": fixed(value=False)}
    ),
    "exaone": Architecture(model_type="exaone", fields=BIASES),
    "exaone4": Architecture(model_type="exaone4", fields={**WINDOWED, "layer_types": sliding(4)}),
    "seed_oss": Architecture(model_type="seed_oss", fields={**BIASES, "attention_out_bias": has("attn_output.bias")}),
    "ernie4_5": Architecture(model_type="ernie4_5", fields=ONE_BIAS),
    "paddleocr": Architecture(model_type="paddleocr_vl_text", fields=ONE_BIAS),
    "hunyuan-dense": Architecture(model_type="hunyuan_v1_dense", fields=BIASES),
    "hunyuan_vl": Architecture(model_type="hunyuan_v1_dense", fields=BIASES),
    "pangu-embedded": Architecture(
        model_type="pangu_embedded",
        fields={"bias": has("attn_output.bias"), "qkv_bias": has("attn_q.bias"), "mlp_bias": has("ffn_up.bias")},
    ),
    "nemotron": Architecture(model_type="nemotron", fields=BIASES),
    "deci": Architecture(
        model_type="nemotron-nas",
        fields={**BIASES, "block_configs": _blocks, "num_key_value_heads": None, "intermediate_size": None},
    ),
    "apertus": Architecture(model_type="apertus", fields=BIASES),
    "bitnet": Architecture(model_type="bitnet", fields=BIASES),
    "baichuan": Architecture(model_type="baichuan"),
    "xverse": Architecture(model_type="xverse"),
    "internlm2": Architecture(model_type="internlm2", fields={"bias": has("attn_q.bias")}),
    "orion": Architecture(model_type="orion", fields={"attention_bias": has("attn_q.bias")}),
    "minicpm": Architecture(model_type="minicpm", fields=BIASES),
    "minicpm3": Architecture(
        model_type="minicpm3",
        fields={**LATENT, "v_head_dim": ratio("embedding_length", "attention.head_count")},
        heeded=(KV_HEADS,),
    ),
    "openelm": Architecture(model_type="qwen3", fields={**_QWEN3, "attention_bias": has("attn_qkv.bias")}),
    "olmo": Architecture(model_type="olmo", fields=BIASES),
    "olmo2": Architecture(model_type="olmo2", fields=BIASES),
    "olmo2 with windows": Architecture(model_type="olmo3", fields={**BIASES, **WINDOWED, "layer_types": sliding(4)}),
    "stablelm": Architecture(
        model_type="stablelm",
        fields={
            "use_qkv_bias": has("attn_q.bias"),
            "qk_layernorm": has("attn_q_norm.weight"),
            "use_parallel_residual": lacks("ffn_norm.weight"),
        },
    ),
    "starcoder2": Architecture(model_type="starcoder2", fields={**ONE_BIAS, **WINDOWED}),
    "plamo3": Architecture(model_type="plamo3", fields={**WINDOWED, "layer_types": sliding(8)}),
    # ---- Qwen, GLM, Gemma, Command, Phi
    "qwen": Architecture(model_type="qwen", fields={"no_bias": lacks("attn_output.bias")}),
    "qwen2": Architecture(model_type="qwen2", fields=_QWEN2),
    "qwen2vl": Architecture(model_type="qwen2_vl_text", fields=_QWEN2),
    "qwen3": Architecture(model_type="qwen3", fields=_QWEN3),
    "qwen3vl": Architecture(model_type="qwen3_vl_text", fields=_QWEN3),
    "chatglm": Architecture(
        model_type="chatglm",
        fields={
            "multi_query_attention": fixed(value=True),
            "multi_query_group_num": KV_HEADS,
            "num_key_value_heads": None,
            "add_qkv_bias": has("attn_qkv.bias", "attn_q.bias"),
            "add_bias_linear": has("attn_output.bias"),
        },
    ),
    "glm4": Architecture(
        model_type="glm4",
        fields={
            "attention_bias": has("attn_q.bias", "attn_qkv.bias"),
            "num_nextn_predict_layers": "nextn_predict_layers",
        },
    ),
    "gemma": Architecture(model_type="gemma", fields={"attention_bias": has("attn_q.bias")}),
    "gemma2": Architecture(model_type="gemma2", fields={**WINDOWED, "layer_types": sliding(2)}),
    "gemma3": Architecture(model_type="gemma3_text", fields=_SIX),
    "gemma3n": Architecture(
        model_type="gemma3n_text",
        fields={
            **WINDOWED,
            **_EMBEDDED,
            "layer_types": sliding(5),
            "altup_num_inputs": "altup.num_inputs",
            "laurel_rank": rows("laurel_l.weight"),
        },
    ),
    "gemma4": Architecture(
        model_type="gemma4_text",
        fields={
            **WINDOWED,
            **_EMBEDDED,
            "layer_types": sliding(6),
            "head_dim": lambda source: source.get("attention.key_length_swa") or source.get("attention.key_length"),
            "global_head_dim": "attention.key_length",
            "num_global_key_value_heads": KV_HEADS,
            "attention_k_eq_v": lambda source: (
                source.with_tensor("attn_v.weight") != source.with_tensor("attn_k.weight")
            ),
            "enable_moe_block": lambda source: bool(source.get("expert_count")),
            "num_experts": "expert_count",
            "num_experts_per_tok": "expert_used_count",
            "moe_intermediate_size": "expert_feed_forward_length",
            "use_double_wide_mlp": fixed(value=False),
        },
        heeded=("attention.value_length_swa",),
    ),
    "command-r": Architecture(
        model_type="cohere", fields={**BIASES, "mlp_bias": None, "use_qk_norm": has("attn_q_norm.weight")}
    ),
    "cohere2": Architecture(
        model_type="cohere2", fields={**BIASES, **WINDOWED, "mlp_bias": None, "layer_types": sliding(4)}
    ),
    "phi2": Architecture(model_type="phi", fields={"qk_layernorm": fixed(value=False)}),
    "phi3": Architecture(model_type="phi3", fields=WINDOWED),
    # ---- GPT-2 and its relatives
    "gpt2": Architecture(model_type="gpt2", fields={**_INNER, **_POSITIONS}, heeded=_STATED),
    "starcoder": Architecture(
        model_type="gpt_bigcode",
        fields={**_INNER, **_POSITIONS, "multi_query": lambda source: source.get(KV_HEADS) == 1},
        heeded=_STATED,
    ),
    "gptneox": Architecture(
        model_type="gpt_neox",
        fields={"attention_bias": has("attn_qkv.bias"), "num_key_value_heads": None, "head_dim": None},
        heeded=_STATED,
    ),
    "bloom": Architecture(
        model_type="bloom",
        fields={"intermediate_size": None, "num_key_value_heads": None},
        heeded=("feed_forward_length", KV_HEADS),
    ),
    "falcon": Architecture(
        model_type="falcon",
        fields={
            "new_decoder_architecture": fixed(value=True),
            "num_ln_in_parallel_attn": _falcon_norms,
            "num_kv_heads": KV_HEADS,
            "ffn_hidden_size": "feed_forward_length",
            "bias": has("attn_qkv.bias"),
            "intermediate_size": None,
            "num_key_value_heads": None,
        },
        heeded=("tensor_data_layout",),
    ),
    "mpt": Architecture(
        model_type="mpt",
        fields={
            "expansion_ratio": ratio("feed_forward_length", "embedding_length"),
            "attn_config": _mpt_attention,
            "learned_pos_emb": has("position_embd.weight"),
            "intermediate_size": None,
            "num_key_value_heads": None,
        },
    ),
    "jais": Architecture(model_type="jais", fields=_INNER, heeded=_STATED),
    "jais2": Architecture(model_type="jais2", fields=BIASES),
    # ---- encoder-decoders
    "t5": Architecture(model_type="t5", fields=_T5, heeded=_T5_AGAIN),
    "umt5": Architecture(model_type="umt5", fields=_T5, heeded=_T5_AGAIN),
}
"""By ``general.architecture``."""
