"""What every kind of attention answers, and what the kinds have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from planner.model.tensor import Count, Tensor, Vector
from planner.numeric import Numeric
from planner.op import Axis, FullSpan, Span
from planner.precision import Role
from planner.sourced import Description, Flag
from planner.units import FORMATS

STATE_BYTES = int(FORMATS["bf16"].bytes_per_element)
"""Bytes of an element of recurrent state: in 16 bits, as the transformers library allocates it with a 16-bit model [B]."""


@dataclass(frozen=True, slots=True)
class Cache:
    """What one layer keeps of a sequence.

    Attributes
    ----------
    width : int
        Elements for each cached token, in the format of the KV cache.
    span : Span
        Which tokens are kept.
    state_bytes : int
        Recurrent state of a sequence, whatever its length [B].
    index_width : int
        Elements for each token that a sparse-attention indexer keeps.
    source_width : int
        Elements for each token of the encoder's output that cross-attention keeps.
    tokens_per_entry : float
        Tokens that each one kept stands for: patches of them.
    """

    width: int = 0
    span: Span = FullSpan()
    state_bytes: int = 0
    index_width: int = 0
    source_width: int = 0
    tokens_per_entry: float = 1

    @property
    def entries_per_token(self) -> float:
        """What is kept for each token, in entries; 1 where nothing is merged."""
        return 1 if self.tokens_per_entry == 1 else 1 / self.tokens_per_entry

    def entries(self, tokens: Numeric) -> Numeric:
        """Return what is kept for so many tokens, in entries; fractions of one are counted."""
        return tokens if self.tokens_per_entry == 1 else tokens / self.tokens_per_entry


class AttentionBlock(Description):
    """What every kind of attention, and of recurrence in its place, answers."""

    shared_weights: Flag = False
    """The weights are those of an earlier layer, and stored there."""

    @abstractmethod
    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """Return the weights of one layer."""

    @property
    @abstractmethod
    def cache(self) -> Cache:
        """What one layer keeps of a sequence."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The kind in a few words, for tables."""


class Indexer(Description):
    """Picks the positions that sparse attention attends to, by scores of small heads (DeepSeek-V3.2)."""

    num_heads: Count
    """Heads that score."""
    head_dim: Count
    """Elements of a query and of a key; one key serves all heads, and is cached."""
    head_weights: Flag = True
    """The scores of the heads are added up with weights that depend on the token."""
    pool: Count = 1
    """Tokens whose keys are merged into one, which is scored and cached (Step 5)."""

    @property
    def key_width(self) -> int:
        """Elements of keys that are cached for each token, rounded up."""
        return -(-self.head_dim // self.pool)

    def tensors(self, queries_from: Axis, hidden: Axis) -> tuple[Tensor | Vector, ...]:
        """Return the weights; `queries_from` is the axis that queries are projected from."""
        heads = Axis("index_heads", self.num_heads, self.head_dim)
        key = Axis("index_key", self.head_dim)
        tensors: list[Tensor | Vector] = [
            Tensor("indexer.q_proj", Role.ATTENTION, queries_from, (heads,)),
            Tensor("indexer.k_proj", Role.ATTENTION, hidden, (key,)),
            Vector("indexer.norm", Role.NORM, 2 * self.head_dim),
        ]
        if self.head_weights:
            weights = (Axis("index_heads", self.num_heads),)
            tensors.append(Tensor("indexer.weights_proj", Role.ROUTER, hidden, weights))
        return tuple(tensors)
