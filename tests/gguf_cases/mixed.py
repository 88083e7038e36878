"""Mixtures of experts after dense layers."""

from __future__ import annotations

from gguf_cases.shapes import (
    CORRECTED,
    DIM,
    FIRST,
    FIRST_CONFIG,
    FOUR,
    HEADS,
    HIDDEN,
    KV,
    LAYERS,
    LOCAL_CONFIG,
    NARROW,
    PAIR,
    ROUTED,
    ROUTED_CONFIG,
    SHARING,
    VOCABULARY,
    WIDTH,
    WINDOW,
    Q,
    after_first,
    attention,
    experts,
    fused,
    matrix,
    network,
    norms,
    plain,
)

MTP = matrix("nextn.eh_proj", HIDDEN, 2 * HIDDEN) | norms("nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm")


MIXED = (
    plain(
        "llama4",
        "llama4_text",
        *[PAIR | attention() | network(), PAIR | attention() | experts(8, 64, shared=64)] * 3,
        config={
            **LOCAL_CONFIG,
            "intermediate_size": 64,
            "intermediate_size_mlp": WIDTH,
            "num_experts_per_tok": 1,
            "interleave_moe_layer_step": 2,
            "head_dim": DIM,
        },
        fields={
            **ROUTED,
            "expert_used_count": 1,
            "interleave_moe_layer_step": 2,
            "attention.key_length": DIM,
            "attention.value_length": DIM,
        },
    ),
    plain(
        "ernie4_5-moe",
        "ernie4_5_moe",
        *after_first(PAIR | attention() | network(), PAIR | attention() | SHARING | CORRECTED),
        tied=True,
        config={
            "moe_num_experts": 8,
            "moe_k": 2,
            "moe_intermediate_size": 64,
            "moe_num_shared_experts": 1,
            "moe_layer_start_index": 1,
            "moe_layer_interval": 1,
            "use_bias": False,
        },
        fields={**FIRST, "interleave_moe_layer_step": 1, "expert_shared_feed_forward_length": WIDTH // KV},
    ),
    plain(
        "deepseek",
        "deepseek",
        *after_first(PAIR | attention() | network(), PAIR | attention() | SHARING),
        config=FIRST_CONFIG,
        fields=FIRST,
    ),
    plain(
        "dots1",
        "dots1",
        *after_first(PAIR | attention(dim=DIM) | network(), PAIR | attention(dim=DIM) | SHARING | CORRECTED),
        config=FIRST_CONFIG,
        fields=FIRST,
    ),
    plain(
        "bailingmoe",
        "bailing_moe",
        *[PAIR | attention() | SHARING] * LAYERS,
        config={**FIRST_CONFIG, "first_k_dense_replace": 0, "use_qkv_bias": False, "use_bias": False},
        fields={**FIRST, "leading_dense_block_count": 0},
    ),
    plain(
        "bailingmoe2",
        "bailing_moe_v2",
        *after_first(
            PAIR | fused() | norms("attn_q_norm", "attn_k_norm", size=DIM) | network(),
            PAIR | fused() | norms("attn_q_norm", "attn_k_norm", size=DIM) | SHARING | CORRECTED,
        ),
        config={**FIRST_CONFIG, "use_qk_norm": True, "use_qkv_bias": False, "use_bias": False},
        fields={**FIRST, "expert_shared_feed_forward_length": 64, "nextn_predict_layers": 0},
    ),
    plain(
        "exaone-moe",
        "exaone_moe",
        *after_first(PAIR | attention(dim=DIM) | network(), PAIR | attention(dim=DIM) | SHARING | CORRECTED),
        config={**FIRST_CONFIG, "sliding_window": 128, "sliding_window_pattern": "LLLG"},
        fields={
            **FIRST,
            **WINDOW,
            "attention.sliding_window_pattern": [True, True, True, False, True, False],
            "nextn_predict_layers": 0,
            "expert_shared_feed_forward_length": 64,
        },
    ),
    plain(
        "afmoe",
        "afmoe",
        *after_first(
            FOUR | attention(dim=DIM) | matrix("attn_gate", Q) | network(),
            FOUR | attention(dim=DIM) | matrix("attn_gate", Q) | SHARING | CORRECTED,
        ),
        config={
            **ROUTED_CONFIG,
            "num_shared_experts": 1,
            "num_dense_layers": 1,
            "sliding_window": 128,
            "head_dim": DIM,
        },
        fields={**FIRST, **WINDOW, "attention.key_length": DIM, "attention.value_length": DIM},
    ),
    plain(
        "glm4moe",
        "glm4_moe",
        *after_first(PAIR | attention(bias=True) | network(), PAIR | attention(bias=True) | SHARING | CORRECTED),
        PAIR
        | attention(bias=True)
        | SHARING
        | CORRECTED
        | MTP
        | matrix("nextn.embed_tokens", VOCABULARY)
        | matrix("nextn.shared_head_head", VOCABULARY),
        config={
            **FIRST_CONFIG,
            "attention_bias": True,
            "use_qk_norm": False,
            "num_nextn_predict_layers": 1,
            "head_dim": DIM,
        },
        fields={
            **FIRST,
            "block_count": LAYERS + 1,
            "nextn_predict_layers": 1,
            "attention.key_length": DIM,
            "attention.value_length": DIM,
        },
    ),
    plain(
        "mimo2",
        "mimo_v2_flash",
        *[
            PAIR
            | attention(k=kv * DIM)
            | {"attn_v.weight": (kv * 16, HIDDEN), "attn_output.weight": (HIDDEN, HEADS * 16)}
            | part
            for kv, part in (
                (2, network()),
                (4, NARROW | CORRECTED | {"attn_sinks.weight": (HEADS,)}),
                (2, NARROW | CORRECTED),
            )
            * 1
        ]
        * 2,
        config={
            **ROUTED_CONFIG,
            "n_routed_experts": 8,
            "num_experts": "absent",
            "hybrid_layer_pattern": [0, 1, 0] * 2,
            "moe_layer_freq": [0, 1, 1] * 2,
            "swa_num_key_value_heads": 4,
            "swa_num_attention_heads": HEADS,
            "head_dim": DIM,
            "swa_head_dim": DIM,
            "v_head_dim": 16,
            "swa_v_head_dim": 16,
            "sliding_window": 128,
            "add_swa_attention_sink_bias": True,
            "n_shared_experts": None,
        },
        fields={
            **ROUTED,
            **WINDOW,
            "attention.sliding_window_pattern": [0, 1, 0] * 2,
            "attention.head_count_kv": [2, 4, 2] * 2,
            "attention.key_length": DIM,
            "attention.value_length": 16,
        },
    ),
)
