"""GLM: dense with halves of rotary embedding, mixtures of experts, latent attention with an indexer."""

from __future__ import annotations

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import first_layers, kinds
from planner.importers.huggingface.parts.latent import full_by_frequency, indexer_by_type, latent
from planner.importers.huggingface.parts.networks import Experts, after_dense, dense, several, sparse_by_type
from planner.importers.huggingface.parts.softmax import softmax


def _if_used(config: Config, index: int) -> str | None:  # the signature of every reader
    return "head" if config.flag("use_qk_norm", default=False) else None


_shared = several("n_shared_experts")
_one_dense = sparse_by_type(first_layers("first_k_dense_replace", 1))
_three_dense = sparse_by_type(first_layers("first_k_dense_replace", 3))
_biased = softmax(bias="attention_bias", qk_norm=_if_used)
_own_index = indexer_by_type(kinds(full_by_frequency, "indexer_types", ("full", "shared")))

FAMILIES: dict[str, Family] = {
    "glm": Family(attention=softmax(bias="attention_bias"), ffn=dense()),
    "glm4": Family(attention=softmax(bias="attention_bias"), ffn=dense(), norms=4),
    "glm4v_text": Family(
        attention=softmax(bias="attention_bias"), ffn=dense(), norms=4, defaults={"attention_bias": True}
    ),
    "glm_ocr_text": Family(attention=softmax(bias="attention_bias"), ffn=dense(), norms=4),
    "glm4_moe": Family(attention=_biased, ffn=Experts(shared=_shared, sparse=after_dense(default=1))),
    "sarvam_moe": Family(attention=_biased, ffn=Experts(shared=_shared, sparse=after_dense(default=1))),
    "glm4v_moe_text": Family(attention=_biased, ffn=Experts(shared=_shared, sparse=after_dense(default=1))),
    "glm4_moe_lite": Family(attention=latent(), ffn=Experts(shared=_shared, sparse=_one_dense)),
    "glm_moe_dsa": Family(
        attention=latent(indexer=_own_index),
        ffn=Experts(shared=_shared, sparse=_three_dense),
        ignored=("moe_layer_freq", "index_topk_freq", "index_skip_topk_offset", "index_topk_pattern"),
    ),
}
