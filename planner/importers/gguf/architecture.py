"""How one architecture of GGUF is read: an entry of the table of architectures."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.importers.gguf.facts import KV_HEADS, Fields, layer_count, vocabulary

COMMON: Fields = {
    "num_hidden_layers": layer_count,
    "max_position_embeddings": "context_length",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": KV_HEADS,
    "head_dim": "attention.key_length",
    "vocab_size": vocabulary,
}
"""Config fields of nearly every architecture. One that a file does not state is null, so that no class supplies it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How one architecture is read.

    Attributes
    ----------
    model_type : str
        Its name in Hugging Face configs.
    fields : mapping
        For each config field, beside `COMMON`, the metadata field that states it, or a fact; None for one that it has not.
    heeded : tuple of str
        Metadata fields that say again what others say.
    """

    model_type: str
    fields: Fields = field(default_factory=dict)
    heeded: tuple[str, ...] = ()
