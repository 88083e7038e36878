"""DeepSeek-V4.1: layers that attend to entries made by an earlier one, and tables of n-grams.

Facts are those of the tensors of deepseek-ai/DeepSeek-V4.1-Flash and of vLLM's model files (models/deepseek_v41, 0.33.0).
"""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.deepseek import hyper_connections
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import layer_count
from planner.importers.huggingface.parts.latent import compressed, own_indexer
from planner.importers.huggingface.parts.networks import Experts, several
from planner.model import CompressedAttention, Projection, Table


def _sources(config: Config, field: str) -> frozenset[int]:
    return config.derived(("sources", field), lambda: frozenset(config.integers(field) or ()))


def _rate(config: Config, index: int) -> int | None:
    """Return the tokens that an entry stands for: `compress_ratios` lists them, 0 for a layer that has a window alone."""
    rates = config.integers("compress_ratios")
    if rates is None or index >= len(rates):
        config.fault("compress_ratios", f"does not say it for each of the {layer_count(config)} layers")
        config.raise_faults()
        return None
    return rates[index] or None


def _checked_sources(config: Config, index: int) -> None:
    for field in ("kv_source_layer_ids", "index_source_layer_ids"):
        if not any(source <= index for source in _sources(config, field)):
            config.fault(field, f"names no layer that layer {index} could take its entries from")
    config.raise_faults()


def _attention(config: Config, index: int) -> CompressedAttention:
    """DeepSeek-V4.1: some layers make entries, some pick among them, the others use what was made and picked before."""
    rate = _rate(config, index)
    fields: dict[str, Any] = {}
    if rate:
        _checked_sources(config, index)
        picks = index in _sources(config, "index_source_layer_ids")
        first = config.optional("candidate_source_layer_id", -1, least=-1)
        narrowed = first is not None and 0 <= first < index
        most = config.integer("candidate_topk_blocks", 0, least=0) * config.integer("candidate_block_size", 0, least=0)
        fields = {
            "compress_rate": rate,
            "shared_entries": index not in _sources(config, "kv_source_layer_ids"),
            "indexer": own_indexer(config, index) if picks else None,
            "index_topk": config.integer("index_topk"),
            "index_candidates": most if picks and narrowed and most else None,
        }
    return compressed(config, entry_keys=True, **fields)


def _hashed(config: Config) -> int:
    """Return the elements that a token looks up in one layer's table: a row for each length of n-gram and each head."""
    lengths = config.integer("engram_max_ngram_size", least=2) - 1
    return lengths * config.integer("engram_n_heads") * config.integer("engram_head_dim")


def _layer(config: Config, index: int) -> dict[str, Any]:
    """DeepSeek-V4.1: several residual streams; a layer with a table projects its rows to a key for each stream and one value."""
    fields = config.derived("hc", lambda: hyper_connections(config, mixes=True))
    if index not in _sources(config, "engram_layer_ids"):
        return fields
    hidden, streams = config.integer("hidden_size"), config.integer("hc_mult")
    taken = Projection(name="engram.wkv", input_size=_hashed(config), output_size=hidden * (streams + 1))
    return {
        "projections": (*fields["projections"], taken),
        "other_parameters": fields["other_parameters"] + 2 * streams * hidden,
    }


def _model(config: Config) -> dict[str, Any]:
    """DeepSeek-V4.1: a table of n-grams for each layer that `engram_layer_ids` names."""
    layers = config.integers("engram_layer_ids") or ()
    rows = config.integers("engram_num_embeddings", len(layers), least=1) if layers else ()
    if rows is None or len(rows) != len(layers):
        config.fault("engram_num_embeddings", f"has to state the rows of each of the {len(layers)} tables")
        return {}
    width = config.integer("engram_head_dim") if layers else 1
    return {
        "tables": tuple(
            Table(name=f"layers.{layer}.engram.embed", rows=number, width=width, quantized=True)
            for layer, number in zip(layers, rows, strict=True)
        )
    }


FAMILIES: dict[str, Family] = {
    "deepseek_v41": Family(text="deepseek_v41_text"),
    "deepseek_v41_text": Family(
        attention=_attention,
        ffn=Experts(shared=several("n_shared_experts")),
        layer=_layer,
        model=_model,
        ignored=(
            "dspark_block_size",
            "dspark_markov_rank",
            "dspark_n_routed_experts",
            "dspark_noise_token_id",
            "dspark_num_experts_per_tok",
            "dspark_target_layer_ids",
            "engram_compressed_vocab_size",
            "engram_pad_token_id",
            "engram_vocab_size",
            "expert_dtype",
            "num_key_value_heads",
            "qk_rope_head_dim",
        ),
    ),
}
