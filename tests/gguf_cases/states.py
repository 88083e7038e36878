"""State spaces, and hybrids of them."""

from __future__ import annotations

from gguf_cases.shapes import (
    CORRECTED,
    DIM,
    HIDDEN,
    KV,
    LOCAL,
    LOCAL_CONFIG,
    PAIR,
    ROUTED,
    WIDTH,
    attention,
    experts,
    matrix,
    network,
    norms,
    of_kinds,
    plain,
)

INNER = 2 * HIDDEN
MAMBA_FIELDS = {"ssm.conv_kernel": 4, "ssm.inner_size": INNER, "ssm.state_size": 16, "ssm.time_step_rank": 16}
MAMBA2_FIELDS = {**MAMBA_FIELDS, "ssm.time_step_rank": 8, "ssm.group_count": 2}
MAMBA2_CONFIG = {
    "mamba_n_heads": 8,
    "mamba_d_head": 64,
    "mamba_n_groups": 2,
    "mamba_d_state": 16,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_conv_bias": True,
    "mamba_proj_bias": False,
}
NO_HEADS = {"attention.head_count": 0, "attention.head_count_kv": None, "feed_forward_length": 0}
MAMBA = (
    matrix("ssm_in", 2 * INNER)
    | {"ssm_conv1d.weight": (INNER, 4), "ssm_conv1d.bias": (INNER,)}
    | matrix("ssm_x", 16 + 2 * 16, INNER)
    | matrix("ssm_dt", INNER, 16, bias=True)
    | {"ssm_a": (INNER, 16), "ssm_d": (INNER,)}
    | matrix("ssm_out", HIDDEN, INNER)
)
MAMBA2 = (
    matrix("ssm_in", 2 * INNER + 2 * 2 * 16 + 8)
    | {"ssm_conv1d.weight": (INNER + 2 * 2 * 16, 4), "ssm_conv1d.bias": (INNER + 2 * 2 * 16,)}
    | {"ssm_dt.bias": (8,), "ssm_a": (8, 1), "ssm_d": (8, 1), "ssm_norm.weight": (2, INNER // 2)}
    | matrix("ssm_out", HIDDEN, INNER)
)

NEMOTRON_CONFIG = {
    "mamba_num_heads": 8,
    "mamba_head_dim": 64,
    "n_groups": 2,
    "ssm_state_size": 16,
    "conv_kernel": 4,
    "use_conv_bias": True,
    "use_bias": False,
    "mlp_bias": False,
    "attention_head_dim": DIM,
}


STATES = (
    plain(
        "mamba",
        "mamba",
        norms("attn_norm") | MAMBA,
        tied=True,
        fields={**MAMBA_FIELDS, **NO_HEADS, "ssm.dt_b_c_rms": False},
        config={
            "state_size": 16,
            "conv_kernel": 4,
            "time_step_rank": 16,
            "expand": 2,
            "use_bias": False,
            "use_conv_bias": True,
            **dict.fromkeys(("intermediate_size", "num_attention_heads", "num_key_value_heads"), "absent"),
        },
    ),
    plain(
        "mamba2",
        "mamba2",
        norms("attn_norm") | MAMBA2,
        fields={**MAMBA2_FIELDS, **NO_HEADS},
        config={
            "state_size": 16,
            "conv_kernel": 4,
            "num_heads": 8,
            "head_dim": 64,
            "n_groups": 2,
            "expand": 2,
            "use_bias": False,
            "use_conv_bias": True,
            **dict.fromkeys(("intermediate_size", "num_attention_heads", "num_key_value_heads"), "absent"),
        },
    ),
    plain(
        "jamba",
        "jamba",
        *[
            PAIR | mixer | part
            for mixer, part in zip(
                of_kinds(
                    "MMAMMA", {"M": MAMBA | norms("ssm_dt_norm", "ssm_b_norm", "ssm_c_norm", size=16), "A": attention()}
                ),
                (network(), experts(8, WIDTH)) * 3,
                strict=True,
            )
        ],
        config={
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "attn_layer_period": 3,
            "attn_layer_offset": 2,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "mamba_d_state": 16,
            "mamba_d_conv": 4,
            "mamba_dt_rank": 16,
            "mamba_expand": 2,
            "mamba_conv_bias": True,
            "mamba_proj_bias": False,
        },
        fields={**LOCAL, **MAMBA_FIELDS, "attention.head_count_kv": [0, 0, KV] * 2},
    ),
    plain(
        "falcon-h1",
        "falcon_h1",
        PAIR | attention() | MAMBA2 | network(),
        fields={**MAMBA2_FIELDS, "attention.key_length": DIM, "attention.value_length": DIM},
        config={
            **MAMBA2_CONFIG,
            "mamba_d_ssm": INNER,
            "mamba_rms_norm": True,
            "projectors_bias": False,
            "head_dim": DIM,
        },
    ),
    plain(
        "granitehybrid",
        "granitemoehybrid",
        *[
            PAIR | mixer | experts(8, WIDTH, shared=128)
            for mixer in of_kinds("MMAMMA", {"M": MAMBA2, "A": attention()})
        ],
        tied=True,
        config={
            **MAMBA2_CONFIG,
            **LOCAL_CONFIG,
            "shared_intermediate_size": 128,
            "layer_types": ["mamba", "mamba", "attention"] * 2,
        },
        fields={
            **MAMBA2_FIELDS,
            **LOCAL,
            "expert_shared_feed_forward_length": 128,
            "attention.head_count_kv": [0, 0, KV] * 2,
        },
    ),
    plain(
        "granitehybrid",
        "granitemoehybrid",
        *[PAIR | mixer | network(128) for mixer in of_kinds("MMAMMA", {"M": MAMBA2, "A": attention()})],
        tied=True,
        config={
            **MAMBA2_CONFIG,
            "num_local_experts": 0,
            "shared_intermediate_size": 128,
            "layer_types": ["mamba", "mamba", "attention"] * 2,
        },
        fields={**MAMBA2_FIELDS, "expert_shared_feed_forward_length": 128, "attention.head_count_kv": [0, 0, KV] * 2},
    ),
    plain(
        "granitehybrid",
        "bamba",
        *[PAIR | mixer | network() for mixer in of_kinds("MMAMMA", {"M": MAMBA2, "A": attention()})],
        config={**MAMBA2_CONFIG, "attn_layer_indices": [2, 5]},
        fields={**MAMBA2_FIELDS, "attention.head_count_kv": [0, 0, KV] * 2},
    ),
    plain(
        "nemotron_h",
        "nemotron_h",
        *[
            norms("attn_norm") | part
            for part in of_kinds("M-M*M-", {"M": MAMBA2, "*": attention(), "-": network(gate=False)})
        ],
        config={**NEMOTRON_CONFIG, "hybrid_override_pattern": "M-M*M-"},
        fields={
            **MAMBA2_FIELDS,
            "attention.head_count_kv": [0, 0, 0, KV, 0, 0],
            "feed_forward_length": [0, WIDTH, 0, 0, 0, WIDTH],
            "attention.key_length": DIM,
            "attention.value_length": DIM,
        },
    ),
    plain(
        "nemotron_h_moe",
        "nemotron_h",
        *[
            norms("attn_norm") | part
            for part in of_kinds(
                "MEM*ME", {"M": MAMBA2, "*": attention(), "E": experts(8, 64, shared=96, gate=False) | CORRECTED}
            )
        ],
        config={
            **NEMOTRON_CONFIG,
            "hybrid_override_pattern": "MEM*ME",
            "n_routed_experts": 8,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 64,
            "n_shared_experts": 1,
            "moe_shared_expert_intermediate_size": 96,
            "intermediate_size": 64,
        },
        fields={
            **MAMBA2_FIELDS,
            **ROUTED,
            "attention.head_count_kv": [0, 0, 0, KV, 0, 0],
            "feed_forward_length": [0, 64, 0, 0, 0, 64],
            "expert_shared_feed_forward_length": 96,
            "expert_shared_count": 1,
            "attention.key_length": DIM,
            "attention.value_length": DIM,
        },
    ),
)
