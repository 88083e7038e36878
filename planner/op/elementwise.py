"""Operations that are all memory traffic: norms, activation functions, residual adds, table look-ups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from planner.numeric import Numeric
from planner.op.axis import SINGLE, Axis, Divide, portion
from planner.op.base import Kind, Op
from planner.precision import Scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise(Op):
    """A pass over rows of activations; its arithmetic is not counted.

    Attributes
    ----------
    rows : Numeric
        Rows passed over [tokens].
    read, written : Numeric
        Elements read and written for one row.
    weights : int
        Elements of weights read once.
    scheme : Scheme
        Formats.
    axis : Axis
        What the elements of a row run along: they shrink with it when it is sharded.
    copies : Axis
        What the rows are spread over, as of a `Matmul`.
    """

    kind: ClassVar[Kind] = Kind.ELEMENTWISE
    token_fields: ClassVar[tuple[str, ...]] = ("rows",)

    rows: Numeric
    read: Numeric
    written: Numeric
    scheme: Scheme
    weights: int = 0
    axis: Axis = SINGLE
    copies: Axis = SINGLE

    @property
    def arithmetic(self) -> str:
        """See `Op.arithmetic`."""
        return self.scheme.arithmetic

    @property
    def weight_bytes(self) -> Numeric:
        """See `Op.weight_bytes`."""
        return self.weights * self.scheme.weights.bytes_per_element

    @property
    def activation_bytes(self) -> Numeric:
        """See `Op.activation_bytes`."""
        return (self.read + self.written) * self.scheme.output.bytes_per_element * self.rows

    def on_chip(self, divide: Divide) -> Self:
        """See `Op.on_chip`."""
        axis, copies = divide(self.axis), divide(self.copies)
        return replace(
            self,
            rows=portion(self.rows, copies.size, self.copies.size),
            read=portion(self.read, axis.size, self.axis.size),
            written=portion(self.written, axis.size, self.axis.size),
            axis=axis,
            copies=copies,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedSum(Op):
    """Adding up, for each token, the results of the experts that it was sent to.

    Attributes
    ----------
    rows : Numeric
        Tokens.
    sources : Numeric
        Expert results read for each token, in expectation.
    others : int
        Further results read, such as that of the shared experts.
    width : int
        Elements of a result.
    experts : Axis
        Where the sources come from: a chip that holds some of the experts adds up their results only.
    scheme : Scheme
        Formats.
    """

    kind: ClassVar[Kind] = Kind.ELEMENTWISE
    token_fields: ClassVar[tuple[str, ...]] = ("rows",)

    rows: Numeric
    sources: Numeric
    others: int
    width: int
    experts: Axis
    scheme: Scheme

    @property
    def arithmetic(self) -> str:
        """See `Op.arithmetic`."""
        return self.scheme.arithmetic

    @property
    def activation_bytes(self) -> Numeric:
        """See `Op.activation_bytes`."""
        return (self.sources + self.others + 1) * self.width * self.scheme.output.bytes_per_element * self.rows

    def on_chip(self, divide: Divide) -> Self:
        """See `Op.on_chip`."""
        experts = divide(self.experts)
        return replace(self, sources=portion(self.sources, experts.size, self.experts.size), experts=experts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup(Op):
    """A gather of one row of a stored table for each token.

    Attributes
    ----------
    rows : Numeric
        Tokens looked up.
    width : int
        Elements of a row of the table.
    scheme : Scheme
        Formats of the table and of the result.
    table : Axis
        The rows of the table.
    hits : Numeric, optional
        Tokens whose row this chip holds; all where not given. The others write zeros, to be summed over the chips.
    """

    kind: ClassVar[Kind] = Kind.EMBEDDING
    token_fields: ClassVar[tuple[str, ...]] = ("rows",)

    rows: Numeric
    width: int
    scheme: Scheme
    table: Axis = SINGLE
    hits: Numeric | None = None

    @property
    def arithmetic(self) -> str:
        """See `Op.arithmetic`."""
        return self.scheme.arithmetic

    @property
    def weight_bytes(self) -> Numeric:
        """See `Op.weight_bytes`. Each token reads its own row."""
        hits = self.rows if self.hits is None else self.hits
        return self.width * self.scheme.weights.bytes_per_element * hits

    @property
    def activation_bytes(self) -> Numeric:
        """See `Op.activation_bytes`."""
        return self.width * self.scheme.output.bytes_per_element * self.rows

    def on_chip(self, divide: Divide) -> Self:
        """See `Op.on_chip`."""
        table = divide(self.table)
        if table == self.table:
            return self
        return replace(self, table=table, hits=portion(self.rows, table.size, self.table.size))
