"""Encoder-decoders, and architectures that are read like another."""

from __future__ import annotations

from gguf_cases.shapes import (
    CORRECTED,
    DIM,
    FIRST,
    FIRST_CONFIG,
    HEADS,
    HIDDEN,
    KV,
    MHA,
    PAIR,
    ROUTED,
    ROUTED_CONFIG,
    SHARING,
    VOCABULARY,
    WIDTH,
    WINDOW,
    Case,
    Q,
    after_first,
    attention,
    experts,
    matrix,
    network,
    norms,
    plain,
)

T5_LAYER = {
    side: {f"{side}.{name}": shape for name, shape in parts.items()}
    for side, parts in {
        "enc": norms("attn_norm", "ffn_norm") | {f"attn_{x}.weight": (Q, HIDDEN) for x in "qkvo"} | network(),
        "dec": norms("attn_norm", "cross_attn_norm", "ffn_norm")
        | {f"{kind}_{x}.weight": (Q, HIDDEN) for kind in ("attn", "cross_attn") for x in "qkvo"}
        | network(),
    }.items()
}
T5 = (
    Case(
        arch="t5",
        config={
            "model_type": "t5",
            "d_model": HIDDEN,
            "d_kv": DIM,
            "d_ff": WIDTH,
            "num_layers": 3,
            "num_decoder_layers": 2,
            "num_heads": HEADS,
            "vocab_size": VOCABULARY,
            "feed_forward_proj": "gated-gelu",
            "relative_attention_num_buckets": 32,
            "n_positions": 512,
        },
        fields={
            "context_length": 512,
            "block_count": 3,
            "decoder_block_count": 2,
            "embedding_length": HIDDEN,
            "feed_forward_length": WIDTH,
            "attention.head_count": HEADS,
            "attention.key_length": DIM,
            "attention.value_length": DIM,
            "attention.relative_buckets_count": 32,
            "attention.layer_norm_epsilon": 1e-6,
            "decoder_start_token_id": 0,
        },
        shapes={"token_embd.weight": (VOCABULARY, HIDDEN)}
        | norms("enc.output_norm", "dec.output_norm")
        | {
            name.replace(".", f".blk.{index}.", 1): shape
            for side, count in (("enc", 3), ("dec", 2))
            for index in range(count)
            for name, shape in T5_LAYER[side].items()
        }
        | {"enc.blk.0.attn_rel_b.weight": (32, HEADS), "dec.blk.0.attn_rel_b.weight": (32, HEADS)},
    ),
)

STEP_HEADS = ((8, 2), (4, 1), (8, 2)) * 2
ALIKE = (
    plain("llama-embed", "llama", PAIR | attention() | network(), fields={"attention.causal": False}),
    plain(
        "paddleocr", "paddleocr_vl_text", PAIR | attention() | network(), config={"use_bias": False, "head_dim": DIM}
    ),
    plain("hunyuan_vl", "hunyuan_v1_dense", PAIR | attention(dim=DIM) | network(), tied=True),
    plain(
        "deepseek2-ocr",
        "deepseek_v2",
        *after_first(PAIR | attention(k=Q) | network(), PAIR | attention(k=Q) | SHARING),
        config={**FIRST_CONFIG, **MHA, "use_mla": False},
        fields={**FIRST, "attention.head_count_kv": HEADS},
    ),
    plain(
        "step35",
        "step3p5",
        *[
            PAIR | attention(dim=DIM) | matrix("attn_gate", HEADS) | part
            for part in (network(), network(), network(), *[experts(8, 64, shared=96) | CORRECTED] * 3)
        ],
        config={
            **ROUTED_CONFIG,
            "moe_num_experts": 8,
            "moe_top_k": 2,
            "num_experts": "absent",
            "num_experts_per_tok": "absent",
            "num_attention_groups": KV,
            "num_key_value_heads": "absent",
            "head_dim": DIM,
            "moe_layers_enum": "3,4,5",
            "share_expert_dim": 96,
            "sliding_window": 128,
            "layer_types": ["full_attention", "sliding_attention", "sliding_attention"] * 2,
            "attention_other_setting": None,
        },
        fields={
            **ROUTED,
            **WINDOW,
            "attention.sliding_window_pattern": [False, True, True] * 2,
            "expert_shared_feed_forward_length": 96,
            "leading_dense_block_count": 3,
            "attention.key_length": DIM,
            "attention.value_length": DIM,
        },
    ),
    Case(
        arch="t5",
        config={**T5[0].config, "model_type": "umt5"},
        fields=T5[0].fields,
        shapes={**T5[0].shapes}
        | {
            f"{side}.blk.{index}.attn_rel_b.weight": (32, HEADS)
            for side, count in (("enc", 3), ("dec", 2))
            for index in range(count)
        },
    ),
)
