"""Operations that are all memory traffic: norms, activation functions, residual adds, table look-ups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from planner.op.base import Kind, Op
from planner.precision import Scheme
from planner.units import Numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise(Op):
    """A pass over rows of activations; its arithmetic is not counted.

    Attributes
    ----------
    rows : Numeric
        Rows passed over [tokens].
    read, written : int
        Elements read and written for one row.
    weights : int
        Elements of weights read once.
    scheme : Scheme
        Formats.
    """

    kind: ClassVar[Kind] = Kind.ELEMENTWISE

    rows: Numeric
    read: int
    written: int
    scheme: Scheme
    weights: int = 0

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
    """

    kind: ClassVar[Kind] = Kind.EMBEDDING

    rows: Numeric
    width: int
    scheme: Scheme

    @property
    def arithmetic(self) -> str:
        """See `Op.arithmetic`."""
        return self.scheme.arithmetic

    @property
    def weight_bytes(self) -> Numeric:
        """See `Op.weight_bytes`. Each token reads its own row."""
        return self.width * self.scheme.weights.bytes_per_element * self.rows

    @property
    def activation_bytes(self) -> Numeric:
        """See `Op.activation_bytes`."""
        return self.width * self.scheme.output.bytes_per_element * self.rows
