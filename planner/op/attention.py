"""Attention over a KV cache, as one fused kernel: scores never reach memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from planner.numeric import Numeric
from planner.op.axis import Axis
from planner.op.base import Kind, Op
from planner.units import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(Op):
    """Scores, softmax and weighted sum of values, fused.

    Attributes
    ----------
    pairs : Numeric
        Query-key pairs of one head, over all sequences.
    rows : Numeric
        Query tokens, over all sequences.
    query_heads : Axis
        Heads that ask.
    qk_dim, v_dim : Numeric
        Width of a query (and key), and of a value, as multiplied.
    fresh_tokens, fresh_heads, fresh_width : Numeric, Axis, int
        Keys and values that come straight from activations: tokens, heads, and elements of both for one head and token.
    cache_read, cache_written : Numeric
        Tokens read from and written to the KV cache, over all sequences.
    cache_heads, cache_width : Axis, int
        Heads in the cache, and elements stored for one head and token.
    cache_format, activation_format : Format
        Formats of the cache, and of queries, fresh keys and values, and results.
    compute_format : str
        Format of the arithmetic.

    Notes
    -----
    ``2 pairs N (qk_dim + v_dim)`` FLOPs for N query heads: with equal dimensions H, one token after S - 1 others costs ``4 N S H``
    (Austin et al., How to Scale Your Model, chapter 4). The bytes are those of queries, keys, values and results, each moved once
    (Dao et al., FlashAttention, arXiv 2205.14135).
    """

    kind: ClassVar[Kind] = Kind.ATTENTION
    token_fields: ClassVar[tuple[str, ...]] = ("pairs", "rows", "cache_written")

    pairs: Numeric
    rows: Numeric
    query_heads: Axis
    qk_dim: Numeric
    v_dim: Numeric
    fresh_tokens: Numeric
    fresh_heads: Axis
    fresh_width: Numeric
    cache_read: Numeric
    cache_written: Numeric
    cache_heads: Axis
    cache_width: int
    cache_format: Format
    activation_format: Format
    compute_format: str

    @property
    def arithmetic(self) -> str:
        """See `Op.arithmetic`."""
        return self.compute_format

    @property
    def flops(self) -> Numeric:
        """See `Op.flops`."""
        return 2 * self.query_heads.size * (self.qk_dim + self.v_dim) * self.pairs

    @property
    def activation_bytes(self) -> Numeric:
        """See `Op.activation_bytes`."""
        asked = self.query_heads.size * (self.qk_dim + self.v_dim) * self.rows
        fresh = self.fresh_heads.size * self.fresh_width * self.fresh_tokens
        return self.activation_format.bytes_per_element * (asked + fresh)

    @property
    def kv_bytes(self) -> Numeric:
        """See `Op.kv_bytes`."""
        width = self.cache_heads.size * self.cache_width * self.cache_format.bytes_per_element
        return width * (self.cache_read + self.cache_written)
