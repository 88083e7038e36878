"""Matrix multiplication by stored weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from planner.numeric import Numeric
from planner.op.axis import SINGLE, Axis, Divide, portion
from planner.op.base import Kind, Op
from planner.precision import Scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul(Op):
    """``[rows, inner] x [inner, outer]`` by each of `copies` weight matrices.

    Attributes
    ----------
    rows : Numeric
        Rows multiplied, over all copies together [tokens].
    inner : Axis
        The contracted axis. Sharding it leaves partial sums.
    outer : tuple of Axis
        The axes of the result, side by side: more than one where projections of one input are fused.
    scheme : Scheme
        Formats of weights, activations, result and arithmetic.
    copies : Axis
        Weight matrices of this shape: experts, or heads with a matrix each.
    touched : Numeric, optional
        How many of them are read in a step; all where not given.
    shared_rows : bool
        Every chip that shares a sequence runs all rows: those of cached positions, or of last tokens.

    Notes
    -----
    With M rows, K inner and N outer elements: ``2 M K N`` FLOPs, and ``a M K + w K N + o M N`` bytes for activations, weights
    and results of a, w and o bytes an element (Austin et al., How to Scale Your Model, chapter 1).
    """

    kind: ClassVar[Kind] = Kind.MATMUL
    token_fields: ClassVar[tuple[str, ...]] = ("rows",)

    rows: Numeric
    inner: Axis
    outer: tuple[Axis, ...]
    scheme: Scheme
    copies: Axis = SINGLE
    touched: Numeric | None = None
    shared_rows: bool = False

    @property
    def outer_elements(self) -> int:
        """Elements of one row of the result."""
        return sum(axis.elements for axis in self.outer)

    @property
    def arithmetic(self) -> str:
        """See `Op.arithmetic`."""
        return self.scheme.arithmetic

    @property
    def flops(self) -> Numeric:
        """See `Op.flops`."""
        return 2 * self.inner.elements * self.outer_elements * self.rows

    @property
    def weight_bytes(self) -> Numeric:
        """See `Op.weight_bytes`."""
        touched = self.copies.size if self.touched is None else self.touched
        return self.inner.elements * self.outer_elements * self.scheme.weights.bytes_per_element * touched

    @property
    def activation_bytes(self) -> Numeric:
        """See `Op.activation_bytes`."""
        row = self.inner.elements * self.scheme.activations.bytes_per_element
        row += self.outer_elements * self.scheme.output.bytes_per_element
        return row * self.rows

    @property
    def result_bytes(self) -> Numeric:
        """Bytes of the result [B]."""
        return self.outer_elements * self.scheme.output.bytes_per_element * self.rows

    def on_chip(self, divide: Divide) -> Self:
        """See `Op.on_chip`. Rows go with the copies that they are multiplied by."""
        copies = divide(self.copies)
        part, whole = copies.size, self.copies.size
        return replace(
            self,
            rows=portion(self.rows, part, whole),
            touched=None if self.touched is None else portion(self.touched, part, whole),
            inner=divide(self.inner),
            outer=tuple(divide(axis) for axis in self.outer),
            copies=copies,
        )

    def with_tokens(self, share: Numeric) -> Self:
        """See `Op.with_tokens`."""
        return self if self.shared_rows else replace(self, rows=self.rows * share)
