"""Shapes that differ from layer to layer."""

from __future__ import annotations

from typing import Any

from gguf_cases.shapes import (
    DIM,
    FOUR,
    HEADS,
    HIDDEN,
    KV,
    LAYERS,
    VOCABULARY,
    WIDTH,
    WINDOW,
    Shapes,
    attention,
    matrix,
    network,
    norms,
    plain,
)


def nas(heads: int, kv_heads: int, width: int) -> Shapes:
    """One layer of Nemotron NAS: without attention where it has no query heads, with a matrix in its place where it has no KV heads."""
    mixer = attention(k=kv_heads * DIM) if kv_heads else matrix("attn_output", HIDDEN)
    found = norms("attn_norm") | mixer if heads else {}
    return found | (norms("ffn_norm") | network(width) if width else {})


def block(heads: int, kv_heads: int, width: int) -> dict[str, Any]:
    return {
        "attention": {
            "no_op": not heads,
            "replace_with_linear": bool(heads and not kv_heads),
            "n_heads_in_group": heads // kv_heads if kv_heads else None,
        },
        "ffn": {"no_op": not width, "replace_with_linear": False, "intermediate_size": width or None},
    }


NAS = ((HEADS, 4, 512), (HEADS, 2, 256), (0, 0, 512), (HEADS, 0, 512), (HEADS, 4, 0), (0, 0, 0))
EMBEDDED = matrix("inp_gate", 16) | matrix("proj", HIDDEN, 16) | norms("post_norm")
PER_LAYER = {
    "per_layer_token_embd.weight": (VOCABULARY, LAYERS * 16),
    "per_layer_model_proj.weight": (LAYERS * 16, HIDDEN),
    "per_layer_proj_norm.weight": (16,),
}
GEMMA3N = (
    FOUR
    | attention(dim=DIM)
    | network()
    | EMBEDDED
    | matrix("altup_router", 4)
    | {"altup_correct_coef.weight": (4, 4), "altup_predict_coef.weight": (16, 4)}
    | norms("altup_correct_scale", "altup_router_norm", "laurel_post_norm")
    | matrix("laurel_l", 24)
    | matrix("laurel_r", HIDDEN, 24)
)
STREAMS = {"altup_proj.weight": (3, HIDDEN, HIDDEN), "altup_unembd_proj.weight": (3, HIDDEN, HIDDEN)}
LOCAL_GLOBAL = ["sliding_attention", "sliding_attention", "full_attention"] * 2
PATTERN = [True, True, False] * 2


def gemma4(*, full: bool) -> Shapes:
    """One layer of Gemma 4: full attention has heads of its own size, and values that are its keys."""
    if not full:
        return FOUR | attention(dim=DIM) | network() | {"layer_output_scale.weight": (1,)}
    wide = attention(q=HEADS * 64, k=64, dim=64)
    return FOUR | {k: v for k, v in wide.items() if "attn_v" not in k} | network() | {"layer_output_scale.weight": (1,)}


LAYERED = (
    plain(
        "deci",
        "nemotron-nas",
        *[nas(*one) for one in NAS],
        config={
            "block_configs": [block(*one) for one in NAS],
            "num_key_value_heads": "absent",
            "intermediate_size": "absent",
        },
        fields={
            "attention.head_count": [n for n, _, _ in NAS],
            "attention.head_count_kv": [k for _, k, _ in NAS],
            "feed_forward_length": [w for _, _, w in NAS],
            "attention.key_length": DIM,
            "attention.value_length": DIM,
        },
    ),
    plain(
        "gemma3n",
        "gemma3n_text",
        GEMMA3N,
        tied=True,
        outer=PER_LAYER | STREAMS,
        config={
            "head_dim": DIM,
            "hidden_size_per_layer_input": 16,
            "vocab_size_per_layer_input": VOCABULARY,
            "altup_num_inputs": 4,
            "laurel_rank": 24,
            "num_kv_shared_layers": 0,
            "layer_types": LOCAL_GLOBAL,
            "sliding_window": 128,
        },
        fields={
            **WINDOW,
            "attention.sliding_window_pattern": PATTERN,
            "attention.key_length": DIM,
            "attention.value_length": DIM,
            "altup.num_inputs": 4,
            "altup.active_idx": 0,
            "embedding_length_per_layer_input": 16,
            "attention.shared_kv_layers": 0,
            "feed_forward_length": [WIDTH] * LAYERS,
            "activation_sparsity_scale": [1.5] * LAYERS,
        },
    ),
    plain(
        "gemma4",
        "gemma4_text",
        *[gemma4(full=kind == "full_attention") for kind in LOCAL_GLOBAL],
        tied=True,
        config={
            "head_dim": DIM,
            "global_head_dim": 64,
            "num_global_key_value_heads": 1,
            "attention_k_eq_v": True,
            "layer_types": LOCAL_GLOBAL,
            "sliding_window": 128,
            "hidden_size_per_layer_input": 0,
            "num_kv_shared_layers": 0,
            "enable_moe_block": False,
        },
        fields={
            **WINDOW,
            "attention.sliding_window_pattern": PATTERN,
            "attention.key_length": 64,
            "attention.value_length": 64,
            "attention.key_length_swa": DIM,
            "attention.value_length_swa": DIM,
            "attention.head_count_kv": [KV, KV, 1] * 2,
            "embedding_length_per_layer_input": 0,
            "attention.shared_kv_layers": 0,
            "rope.dimension_count_swa": DIM,
        },
    ),
)
