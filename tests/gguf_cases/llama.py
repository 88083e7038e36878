"""Llama and its relatives."""

from __future__ import annotations

from gguf_cases.shapes import (
    DIM,
    FOUR,
    HEADS,
    HIDDEN,
    LAYERS,
    MHA,
    PAIR,
    PAIR_BIASED,
    VOCABULARY,
    WIDTH,
    WINDOW,
    Q,
    attention,
    fused,
    matrix,
    network,
    norms,
    plain,
)

LLAMA = (
    plain("llama", "llama", PAIR | attention() | network(), outer={"rope_freqs.weight": (DIM // 2,)}),
    plain("llama", "llama", PAIR | attention() | network(), tied=True, fields={"vocab_size": VOCABULARY}),
    plain("mistral3", "llama", PAIR | attention() | network()),
    plain("granite", "granite", PAIR | attention() | network(), fields={"residual_scale": 0.2, "logit_scale": 8.0}),
    plain("arcee", "arcee", PAIR | attention() | network(gate=False)),
    plain("smollm3", "smollm3", PAIR | attention() | network(), tied=True),
    plain("exaone", "exaone", PAIR | attention() | network()),
    plain(
        "exaone4",
        "exaone4",
        norms("post_attention_norm", "post_ffw_norm") | attention(dim=DIM) | network(),
        config={"sliding_window": 128, "sliding_window_pattern": "LLLG"},
        fields={**WINDOW, "attention.sliding_window_pattern": [True, True, True, False, True, False]},
    ),
    plain(
        "seed_oss",
        "seed_oss",
        norms("attn_norm", "post_attention_norm") | attention(bias=True) | network(),
        config={"attention_bias": True, "attention_out_bias": False, "mlp_bias": False, "head_dim": DIM},
    ),
    plain("ernie4_5", "ernie4_5", PAIR | attention() | network(), config={"use_bias": False, "head_dim": DIM}),
    plain("hunyuan-dense", "hunyuan_v1_dense", PAIR | attention(dim=DIM) | network(), tied=True),
    plain("pangu-embedded", "PanguEmbedded", PAIR | attention(bias=True, out=True) | network(), config={"bias": True}),
    plain("nemotron", "nemotron", PAIR_BIASED | attention() | network(gate=False), bias=True),
    plain(
        "apertus",
        "apertus",
        PAIR | attention(dim=DIM) | network(gate=False),
        config={"hidden_act": "xielu"},
        fields={"/xielu.alpha_p": [0.1] * LAYERS, "/xielu.alpha_n": [0.1] * LAYERS},
    ),
    plain(
        "bitnet",
        "bitnet",
        norms("attn_norm", "ffn_norm", "attn_sub_norm") | norms("ffn_sub_norm", size=WIDTH) | attention() | network(),
        tied=True,
    ),
    plain(
        "baichuan", "baichuan", PAIR | attention(k=Q) | network(), config=MHA, fields={"attention.head_count_kv": HEADS}
    ),
    plain("xverse", "xverse", PAIR | attention(k=Q) | network(), config=MHA, fields={"attention.head_count_kv": HEADS}),
    plain("internlm2", "internlm2", PAIR | attention() | network(), config={"bias": False}),
    plain("orion", "orion", PAIR_BIASED | attention() | network(), bias=True),
    plain("minicpm", "minicpm", PAIR | attention() | network(), tied=True),
    plain("olmo", "olmo", attention() | network(), config={"clip_qkv": None}, outer={"output_norm.weight": ()}),
    plain("olmo2", "olmo2", norms("post_attention_norm", "post_ffw_norm") | attention(full=True) | network()),
    plain(
        "olmo2",
        "olmo3",
        norms("post_attention_norm", "post_ffw_norm") | attention(full=True) | network(),
        config={"sliding_window": 128},
        fields=WINDOW,
    ),
    plain(
        "stablelm",
        "stablelm",
        PAIR_BIASED | attention(bias=True) | network(),
        bias=True,
        config={"use_qkv_bias": True, "use_parallel_residual": False},
        fields={"use_parallel_residual": False},
    ),
    plain(
        "starcoder2",
        "starcoder2",
        PAIR_BIASED | attention(bias=True, out=True) | network(gate=False, bias=True),
        bias=True,
        tied=True,
        config={"use_bias": True, "sliding_window": None},
    ),
    plain(
        "plamo3",
        "plamo3",
        FOUR
        | fused()
        | norms("attn_q_norm", "attn_k_norm", size=DIM)
        | matrix("ffn_up", 2 * WIDTH)
        | matrix("ffn_down", HIDDEN, WIDTH),
        config={"window_size": 128, "sliding_window_pattern": 3, "head_dim": DIM},
        fields={
            **WINDOW,
            "attention.sliding_window_pattern": [True, True, False] * 2,
            "attention.key_length": DIM,
            "attention.value_length": DIM,
        },
    ),
)
