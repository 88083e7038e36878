"""Readers of attention over compressed vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.importers.huggingface.config import MISSING, Config
from planner.importers.huggingface.parts.basics import Fact, Rule, Test, build, flag
from planner.model import CompressedAttention, Indexer, LatentAttention

MEANINGLESS = ("num_key_value_heads", "head_dim", "qk_head_dim")
"""Fields in files of latent attention that say nothing."""


def latent(
    *,
    bias: Fact = "attention_bias",
    indexer: Callable[[Config, int], Indexer | None] | None = None,
    indexed: Test | None = None,
    values: Callable[[Config], int] | None = None,
    more: Callable[[Config, int], dict[str, Any]] | None = None,
) -> Callable[[Config, int], LatentAttention]:
    """Return a reader of multi-head latent attention.

    Parameters
    ----------
    bias : Fact
        Biases of the down-projections and the output.
    indexer : callable, optional
        Returns the layer's own indexer.
    indexed : callable, optional
        Whether the layer attends to `index_topk` positions; where not given, every one of a model with an indexer does.
    values : callable, optional
        Returns the elements of a value where `v_head_dim` is not given.
    more : callable, optional
        Returns further fields of the block, which prevail.
    """

    def read(config: Config, index: int) -> LatentAttention:
        def shape() -> dict[str, Any]:
            config.mark(*MEANINGLESS)
            return {
                "num_attention_heads": config.integer("num_attention_heads"),
                "q_lora_rank": config.optional("q_lora_rank"),
                "kv_lora_rank": config.integer("kv_lora_rank"),
                "qk_nope_head_dim": config.integer("qk_nope_head_dim"),
                "qk_rope_head_dim": config.integer("qk_rope_head_dim", least=0),
                "v_head_dim": config.integer("v_head_dim", values(config) if values else MISSING),
                "attention_bias": flag(config, bias),
            }

        fields = dict(config.derived(("latent", read), shape))
        if indexer is not None and (indexed is None or indexed(config, index)):
            fields["indexer"] = indexer(config, index)
            fields["index_topk"] = config.integer("index_topk")
        if more is not None:
            fields |= more(config, index)
        return build(config, LatentAttention, kind="mla", **fields)

    return read


def own_indexer(config: Config, index: int) -> Indexer:  # the signature of every reader
    """Read the indexer of DeepSeek-V3.2."""
    return build(config, Indexer, num_heads=config.integer("index_n_heads"), head_dim=config.integer("index_head_dim"))


def compressed(config: Config, **fields: Any) -> CompressedAttention:
    """Return DeepSeek-V4's attention to a window and to compressed entries; `fields` say which entries a layer makes and reads."""
    names = ("num_attention_heads", "head_dim", "q_lora_rank", "o_groups", "o_lora_rank", "sliding_window")
    shape = {name: config.integer(name) for name in names}
    return build(config, CompressedAttention, kind="compressed", **shape, **fields)


def indexer_by_type(kind_of: Rule) -> Callable[[Config, int], Indexer | None]:
    """Return a reader: layers of kind `full` have an indexer, those of kind `shared` use an earlier one's choice."""

    def read(config: Config, index: int) -> Indexer | None:
        found = own_indexer(config, index)
        return found if kind_of(config, index) == "full" else None

    return read


def full_by_frequency(config: Config, index: int) -> str:
    """GLM: a layer has an indexer of its own by `index_topk_pattern`, or by `index_topk_freq`."""
    pattern = config.get("index_topk_pattern")
    if isinstance(pattern, str):
        return "full" if pattern[index : index + 1] == "F" else "shared"
    if isinstance(pattern, list):
        listed = config.listed("index_topk_pattern") or ()
        return str(listed[index]) if index < len(listed) else "full"
    frequency, offset = config.integer("index_topk_freq", 1), config.integer("index_skip_topk_offset", 2, least=0)
    return "shared" if max(index - offset + 1, 0) % frequency else "full"
