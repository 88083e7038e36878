"""Linear attention and convolutions."""

from __future__ import annotations

from gguf_cases.latent import LATENT_CONFIG, LATENT_FIELDS, latent
from gguf_cases.shapes import (
    CORRECTED,
    DIM,
    FIRST,
    FIRST_CONFIG,
    HEADS,
    HIDDEN,
    KV,
    NARROW,
    PAIR,
    ROUTED,
    ROUTED_CONFIG,
    SHARING,
    Q,
    after_first,
    attention,
    experts,
    matrix,
    network,
    norms,
    of_kinds,
    plain,
)

DELTA_FIELDS = {
    "ssm.conv_kernel": 4,
    "ssm.state_size": 16,
    "ssm.group_count": 4,
    "ssm.time_step_rank": 8,
    "ssm.inner_size": 8 * 24,
}
DELTA_CONFIG = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 16,
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_value_head_dim": 24,
}
DELTA = (
    matrix("attn_qkv", 2 * 64 + 192)
    | matrix("attn_gate", 192)
    | {"ssm_conv1d.weight": (2 * 64 + 192, 4), "ssm_dt.bias": (8,), "ssm_a": (8,)}
    | norms("ssm_norm", size=24)
    | matrix("ssm_out", HIDDEN, 192)
)
AFTER = norms("attn_norm", "post_attention_norm")
GATED = attention(dim=DIM) | matrix("attn_q", 2 * Q)
ONE_IN_THREE = of_kinds("MMAMMA", {"M": DELTA, "A": GATED})
SHARED_GATE = experts(8, 64, shared=128) | {"ffn_gate_inp_shexp.weight": (HIDDEN,)}
NEXT_FIELDS = {
    **DELTA_FIELDS,
    **ROUTED,
    "expert_shared_feed_forward_length": 128,
    "full_attention_interval": 3,
    "attention.key_length": DIM,
    "attention.value_length": DIM,
}
NEXT_CONFIG = {
    **DELTA_CONFIG,
    **ROUTED_CONFIG,
    "shared_expert_intermediate_size": 128,
    "full_attention_interval": 3,
    "head_dim": DIM,
}
CONVOLUTION = (
    matrix("shortconv.in_proj", 3 * HIDDEN)
    | {"shortconv.conv.weight": (HIDDEN, 3)}
    | matrix("shortconv.out_proj", HIDDEN)
)
LFM_KINDS = ["conv", "conv", "full_attention"] * 2
LFM_OUTER = {"output_norm.weight": (), "token_embd_norm.weight": (HIDDEN,)}
KDA = (
    attention(k=Q)
    | {f"ssm_conv1d_{part}.weight": (1, Q, 1, 4) for part in "qkv"}
    | matrix("ssm_f_a", DIM)
    | matrix("ssm_f_b", Q, DIM)
    | matrix("ssm_beta", HEADS)
    | {"ssm_a": (HEADS, 1), "ssm_dt.bias": (Q,)}
    | matrix("ssm_g_a", DIM)
    | matrix("ssm_g_b", Q, DIM)
    | norms("ssm_norm", size=DIM)
)

LINEAR = (
    plain(
        "qwen3next",
        "qwen3_next",
        *[
            AFTER | mixer | (matrix("ssm_ba", 16) if "ssm_out.weight" in mixer else {}) | SHARED_GATE
            for mixer in ONE_IN_THREE
        ],
        config=NEXT_CONFIG,
        fields=NEXT_FIELDS,
    ),
    plain(
        "qwen35moe",
        "qwen3_5_moe_text",
        *[
            AFTER
            | mixer
            | (matrix("ssm_alpha", 8) | matrix("ssm_beta", 8) if "ssm_out.weight" in mixer else {})
            | SHARED_GATE
            for mixer in ONE_IN_THREE
        ],
        config=NEXT_CONFIG,
        fields={**NEXT_FIELDS, "rope.dimension_sections": [11, 11, 10, 0]},
    ),
    plain(
        "qwen35",
        "qwen3_5_text",
        *[
            AFTER
            | mixer
            | (matrix("ssm_alpha", 8) | matrix("ssm_beta", 8) if "ssm_out.weight" in mixer else {})
            | network()
            for mixer in ONE_IN_THREE
        ],
        config={**DELTA_CONFIG, "full_attention_interval": 3, "head_dim": DIM},
        fields={
            **DELTA_FIELDS,
            "full_attention_interval": 3,
            "attention.key_length": DIM,
            "attention.value_length": DIM,
        },
    ),
    plain(
        "kimi-linear",
        "kimi_linear",
        *[
            PAIR | mixer | part
            for mixer, part in zip(
                of_kinds("KKLKKL", {"K": KDA, "L": latent(low_rank=False)}),
                after_first(network(), SHARING | CORRECTED),
                strict=True,
            )
        ],
        config={
            **FIRST_CONFIG,
            **LATENT_CONFIG,
            "q_lora_rank": None,
            "linear_attn_config": {
                "full_attn_layers": [3, 6],
                "kda_layers": [1, 2, 4, 5],
                "num_heads": HEADS,
                "head_dim": DIM,
                "short_conv_kernel_size": 4,
            },
        },
        fields={
            **FIRST,
            **LATENT_FIELDS,
            "attention.q_lora_rank": None,
            "attention.value_length": None,
            "attention.head_count_kv": [0, 0, 1] * 2,
            "kda.head_dim": DIM,
            "ssm.conv_kernel": 4,
        },
    ),
    plain(
        "lfm2",
        "lfm2",
        *[PAIR | mixer | network() for mixer in of_kinds("CCACCA", {"C": CONVOLUTION, "A": attention(dim=DIM)})],
        tied=True,
        outer=LFM_OUTER,
        config={"conv_L_cache": 3, "conv_bias": False, "layer_types": LFM_KINDS, "block_auto_adjust_ff_dim": False},
        fields={"shortconv.l_cache": 3, "attention.head_count_kv": [0, 0, KV] * 2},
    ),
    plain(
        "lfm2moe",
        "lfm2_moe",
        *[
            PAIR | mixer | part
            for mixer, part in zip(
                of_kinds("CCACCA", {"C": CONVOLUTION, "A": attention(dim=DIM)}),
                after_first(network(), NARROW | CORRECTED),
                strict=True,
            )
        ],
        tied=True,
        outer=LFM_OUTER,
        config={
            **ROUTED_CONFIG,
            "conv_L_cache": 3,
            "conv_bias": False,
            "layer_types": LFM_KINDS,
            "num_dense_layers": 1,
        },
        fields={
            **ROUTED,
            "leading_dense_block_count": 1,
            "shortconv.l_cache": 3,
            "attention.head_count_kv": [0, 0, KV] * 2,
        },
    ),
)
