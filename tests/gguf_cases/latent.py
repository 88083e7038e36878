"""Latent attention."""

from __future__ import annotations

from gguf_cases.shapes import (
    CORRECTED,
    FIRST,
    FIRST_CONFIG,
    HEADS,
    HIDDEN,
    LAYERS,
    PAIR,
    SHARING,
    Shapes,
    after_first,
    matrix,
    network,
    norms,
    plain,
)

LATENT_CONFIG = {
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 24,
    "num_key_value_heads": HEADS,
}
LATENT_FIELDS = {
    "attention.head_count_kv": 1,
    "attention.q_lora_rank": 64,
    "attention.kv_lora_rank": 32,
    "attention.key_length": 48,
    "attention.value_length": 32,
    "attention.key_length_mla": 48,
    "attention.value_length_mla": 24,
    "rope.dimension_count": 16,
}


def latent(*, low_rank: bool = True, parts: bool = True) -> Shapes:
    found = (
        matrix("attn_kv_a_mqa", 32 + 16) | norms("attn_kv_a_norm", size=32) | matrix("attn_output", HIDDEN, HEADS * 24)
    )
    if parts:
        found |= matrix("attn_k_b", 32, 32, copies=HEADS) | matrix("attn_v_b", 24, 32, copies=HEADS)
    else:
        found |= matrix("attn_kv_b", HEADS * (32 + 24), 32)
    if not low_rank:
        return found | matrix("attn_q", HEADS * 48)
    return found | matrix("attn_q_a", 64) | norms("attn_q_a_norm", size=64) | matrix("attn_q_b", HEADS * 48, 64)


INDEXER = (
    matrix("indexer.attn_k", 16)
    | matrix("indexer.attn_q_b", 4 * 16, 64)
    | matrix("indexer.proj", 4)
    | norms("indexer.k_norm", bias=True, size=16)
)
INDEXED_FIELDS = {"attention.indexer.head_count": 4, "attention.indexer.key_length": 16, "attention.indexer.top_k": 256}
INDEXED_CONFIG = {"index_n_heads": 4, "index_head_dim": 16, "index_topk": 256}
LATENT = (
    plain(
        "deepseek2",
        "deepseek_v2",
        *after_first(PAIR | latent(low_rank=False) | network(), PAIR | latent(low_rank=False) | SHARING),
        config={**FIRST_CONFIG, **LATENT_CONFIG, "q_lora_rank": None},
        fields={**FIRST, **LATENT_FIELDS, "attention.q_lora_rank": None},
    ),
    plain(
        "deepseek2",
        "deepseek_v3",
        *after_first(PAIR | latent() | network(), PAIR | latent() | SHARING | CORRECTED),
        config={**FIRST_CONFIG, **LATENT_CONFIG},
        fields={**FIRST, **LATENT_FIELDS},
    ),
    plain(
        "mistral4",
        "mistral4",
        *[PAIR | latent() | SHARING] * LAYERS,
        config={**FIRST_CONFIG, **LATENT_CONFIG, "first_k_dense_replace": 0},
        fields={**FIRST, **LATENT_FIELDS, "leading_dense_block_count": 0},
    ),
    plain(
        "glm-dsa",
        "glm_moe_dsa",
        *after_first(PAIR | latent() | INDEXER | network(), PAIR | latent() | INDEXER | SHARING | CORRECTED),
        config={**FIRST_CONFIG, **LATENT_CONFIG, **INDEXED_CONFIG},
        fields={**FIRST, **LATENT_FIELDS, **INDEXED_FIELDS},
    ),
    plain(
        "deepseek32",
        "deepseek_v32",
        *after_first(PAIR | latent() | INDEXER | network(), PAIR | latent() | INDEXER | SHARING | CORRECTED),
        config={**FIRST_CONFIG, **LATENT_CONFIG, **INDEXED_CONFIG},
        fields={**FIRST, **LATENT_FIELDS, **INDEXED_FIELDS},
    ),
    plain(
        "minicpm3",
        "minicpm3",
        PAIR
        | {**latent(parts=False), "attn_kv_b.weight": (HEADS * 64, 32), "attn_output.weight": (HIDDEN, HEADS * 32)}
        | network(),
        tied=True,
        config={**LATENT_CONFIG, "v_head_dim": "absent"},
        fields={
            **LATENT_FIELDS,
            "attention.head_count_kv": HEADS,
            "attention.value_length": None,
            "attention.key_length_mla": None,
            "attention.value_length_mla": None,
        },
    ),
)
