"""Scores that pick the positions of sparse attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from planner.numeric import Numeric
from planner.op.axis import Axis
from planner.op.base import Kind, Op
from planner.op.matmul import Matmul
from planner.units import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Index(Op):
    """Scores of small heads against cached index keys, added up over the heads; choosing the best is not counted.

    Attributes
    ----------
    pairs : Numeric
        Query-key pairs, over all sequences.
    rows : Numeric
        Query tokens, over all sequences.
    heads : Axis
        Heads, and elements of a query of each.
    key_dim : int
        Elements of a key; one serves all heads.
    keys_read, keys_written : Numeric
        Keys read from and written to the cache, over all sequences.
    cache_format, activation_format : Format
        Formats of the cached keys and of the queries.
    compute_format : str
        Format of the arithmetic.

    Notes
    -----
    ``2 pairs H d`` FLOPs for H heads of d elements (DeepSeek-V3.2 technical report, arXiv 2512.02556, section 2.1).
    """

    kind: ClassVar[Kind] = Kind.INDEXER
    token_fields: ClassVar[tuple[str, ...]] = ("pairs", "rows", "keys_written")

    pairs: Numeric
    rows: Numeric
    heads: Axis
    key_dim: int
    keys_read: Numeric
    keys_written: Numeric
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
        return 2 * self.heads.elements * self.pairs

    @property
    def activation_bytes(self) -> Numeric:
        """See `Op.activation_bytes`."""
        return self.activation_format.bytes_per_element * self.heads.elements * self.rows

    @property
    def kv_bytes(self) -> Numeric:
        """See `Op.kv_bytes`."""
        return self.key_dim * self.cache_format.bytes_per_element * (self.keys_read + self.keys_written)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMatmul(Matmul):
    """A projection of an indexer: a matmul that counts as part of the choice of positions, not of the layer's own work."""

    kind: ClassVar[Kind] = Kind.INDEXER
