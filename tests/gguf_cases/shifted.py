"""RWKV, whose inputs are mixed with those of the token before, and PLaMo 2."""

from __future__ import annotations

from gguf_cases.shapes import DIM, FOUR, HEADS, HIDDEN, KV, LAYERS, PAIR, fused, matrix, network, norms, of_kinds, plain

NONE = {
    "attention.head_count": 0,
    "attention.head_count_kv": None,
    "rope.dimension_count": None,
    "rope.freq_base": None,
}
HEADLESS = dict.fromkeys(("num_attention_heads", "num_key_value_heads", "max_position_embeddings"), "absent")
EMBEDDED = norms("token_embd_norm", bias=True)
SHIFTED_PAIR = norms("attn_norm", "attn_norm_2", bias=True)


def mixed(key: int = HIDDEN, *, bias: bool = False, first: bool = True) -> dict[str, tuple[int, ...]]:
    """Time mixing of RWKV-6: five maps of rank 32 to the mixes, one of rank 64 to the decay."""
    found = matrix("time_mix_w1", 5 * 32) | {
        "time_mix_w2.weight": (5, HIDDEN, 32),
        "time_mix_lerp_fused.weight": (5, 1, 1, HIDDEN),
    }
    found |= (
        norms("time_mix_lerp_x", "time_mix_decay")
        | matrix("time_mix_decay_w1", 64)
        | matrix("time_mix_decay_w2", HIDDEN, 64)
    )
    found |= (
        matrix("time_mix_receptance", HIDDEN, bias=bias)
        | matrix("time_mix_gate", HIDDEN)
        | matrix("time_mix_output", HIDDEN)
    )
    found |= matrix("time_mix_key", key, bias=bias) | matrix("time_mix_value", key, bias=bias)
    return found | ({"time_mix_first.weight": (4, 64)} | norms("time_mix_ln", bias=True) if first else {})


FINCH = (
    SHIFTED_PAIR
    | mixed()
    | norms("channel_mix_lerp_k", "channel_mix_lerp_r")
    | matrix("channel_mix_key", 896)
    | matrix("channel_mix_value", HIDDEN, 896)
    | matrix("channel_mix_receptance", HIDDEN)
)
RANKS = {"w": 64, "a": 32, "v": 96, "g": 128}
GOOSE = (
    SHIFTED_PAIR
    | {"time_mix_lerp_fused.weight": (6, 1, 1, HIDDEN)}
    | norms(*(f"time_mix_{name}" for name in ("w0", "a0", "v0", "k_k", "k_a", "r_k")))
    | {f"time_mix_{x}1.weight": (rank, HIDDEN) for x, rank in RANKS.items()}
    | {f"time_mix_{x}2.weight": (HIDDEN, rank) for x, rank in RANKS.items()}
    | {f"time_mix_{x}.weight": (HIDDEN, HIDDEN) for x in ("key", "value", "receptance", "output")}
    | norms("time_mix_ln", bias=True)
    | norms("channel_mix_lerp_k")
    | matrix("channel_mix_key", 4 * HIDDEN)
    | matrix("channel_mix_value", HIDDEN, 4 * HIDDEN)
)
# The first layer holds copies of the maps to the in-context rate where the others mix values.
DUMMY = GOOSE | {"time_mix_v1.weight": (32, HIDDEN), "time_mix_v2.weight": (HIDDEN, 32)}
INNER = 4 * DIM
PLAMO = (
    matrix("ssm_in", 2 * INNER)
    | {"ssm_conv1d.weight": (INNER, 4), "ssm_dt.bias": (4,), "ssm_a": (4,), "ssm_d": (4,)}
    | matrix("ssm_x", 64 + 2 * 16, INNER)
    | matrix("ssm_dt", 4, 64)
    | norms("ssm_dt_norm", size=64)
    | norms("ssm_b_norm", "ssm_c_norm", size=16)
    | matrix("ssm_out", HIDDEN, INNER)
)
PLAMO_KINDS = {"M": PLAMO, "A": fused() | {"attn_q_norm.weight": (HEADS, DIM), "attn_k_norm.weight": (KV, DIM)}}

SHIFTED = (
    plain(
        "rwkv6",
        "rwkv6",
        FINCH,
        bias=True,
        outer=EMBEDDED,
        config={**HEADLESS, "head_size": 64, "intermediate_size": None},
        fields={
            **NONE,
            "feed_forward_length": 896,
            "wkv.head_size": 64,
            "time_mix_extra_dim": 32,
            "time_decay_extra_dim": 64,
            "rescale_every_n_layers": 6,
        },
    ),
    plain(
        "rwkv6qwen2",
        "rwkv6qwen2",
        PAIR | mixed(KV * 32, bias=True, first=False) | network(),
        config={"attention_bias": True, "lora_rank_tokenshift": 32, "lora_rank_decay": 64},
        fields={
            **NONE,
            "attention.head_count_kv": KV,
            "wkv.head_size": 32,
            "time_mix_extra_dim": 32,
            "time_decay_extra_dim": 64,
            "token_shift_count": 1,
        },
    ),
    plain(
        "rwkv7",
        "rwkv7",
        DUMMY,
        *[GOOSE] * (LAYERS - 1),
        bias=True,
        outer=EMBEDDED,
        config={
            **HEADLESS,
            "head_size": 64,
            "intermediate_size": None,
            "lora_rank_decay": 64,
            "lora_rank_iclr": 32,
            "lora_rank_value_residual_mix": 96,
            "lora_rank_gate": 128,
        },
        fields={
            **NONE,
            "feed_forward_length": 4 * HIDDEN,
            "wkv.head_size": 64,
            "attention.decay_lora_rank": 64,
            "attention.iclr_lora_rank": 32,
            "attention.value_residual_mix_lora_rank": 96,
            "attention.gate_lora_rank": 128,
        },
    ),
    plain(
        "plamo2",
        "plamo2",
        *[
            FOUR | mixer | matrix("ffn_up", 2 * 512) | matrix("ffn_down", HIDDEN, 512)
            for mixer in of_kinds("MAMAMA", PLAMO_KINDS)
        ],
        tied=True,
        config={
            "hidden_size_per_head": DIM,
            "mamba_num_heads": 4,
            "mamba_d_state": 16,
            "mamba_d_conv": 4,
            "mamba_step": 2,
            "attention_window_size": None,
        },
        fields={
            "attention.head_count": [0, HEADS] * 3,
            "attention.head_count_kv": [0, KV] * 3,
            "attention.key_length": DIM,
            "attention.value_length": DIM,
            "ssm.state_size": 16,
            "ssm.conv_kernel": 4,
            "ssm.time_step_rank": 4,
            "ssm.inner_size": INNER,
            "ssm.group_count": 0,
        },
    ),
)
