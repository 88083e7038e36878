"""Recurrences over a state of constant size, and the short convolutions before them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from planner.numeric import Numeric
from planner.op.axis import Axis, Divide, portion
from planner.op.base import Kind, Op
from planner.op.matmul import Matmul
from planner.precision import Scheme
from planner.units import Format


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence(Op):
    """A state that is updated by each token and read for its result, fused over the tokens of a step.

    Attributes
    ----------
    rows : Numeric
        Tokens, over all sequences.
    sequences : Numeric
        Sequences in the step.
    state : Axis
        Heads or channels, and the elements of the state of each.
    element_flops : int
        FLOPs of one token for each element of the state.
    row_width : Numeric
        Elements of activations read and written for one token.
    state_format : Format
        How the state is kept.
    scheme : Scheme
        Formats of activations and arithmetic.

    Notes
    -----
    Derived here: ``S <- a S + k v`` takes three FLOPs for each element of the state and ``y = q S`` two more; the delta rule first
    reads what the key recalls, which is two more; forming the decay of every element (Mamba-1) is another two. The state is read
    and written once in a step, however many tokens the step has.
    """

    kind: ClassVar[Kind] = Kind.STATE_SPACE
    token_fields: ClassVar[tuple[str, ...]] = ("rows",)

    rows: Numeric
    sequences: Numeric
    state: Axis
    element_flops: int
    row_width: Numeric
    state_format: Format
    scheme: Scheme

    @property
    def arithmetic(self) -> str:
        """See `Op.arithmetic`."""
        return self.scheme.arithmetic

    @property
    def flops(self) -> Numeric:
        """See `Op.flops`."""
        return self.element_flops * self.state.elements * self.rows

    @property
    def activation_bytes(self) -> Numeric:
        """See `Op.activation_bytes`."""
        return self.row_width * self.scheme.output.bytes_per_element * self.rows

    @property
    def kv_bytes(self) -> Numeric:
        """See `Op.kv_bytes`."""
        return 2 * self.state.elements * self.state_format.bytes_per_element * self.sequences

    def on_chip(self, divide: Divide) -> Self:
        """See `Op.on_chip`. What is read and written for a token goes with the heads or channels."""
        state = divide(self.state)
        return replace(self, state=state, row_width=portion(self.row_width, state.size, self.state.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution(Op):
    """A causal convolution over the last `kernel` tokens, each channel by itself.

    Attributes
    ----------
    rows, sequences : Numeric
        Tokens over all sequences, and sequences.
    channels : Axis
        Channels.
    kernel : int
        Tokens that it spans.
    state_format : Format
        How the last inputs are kept.
    scheme : Scheme
        Formats of weights, activations and arithmetic.

    Notes
    -----
    ``2 kernel`` FLOPs for each channel of a token.
    """

    kind: ClassVar[Kind] = Kind.STATE_SPACE
    token_fields: ClassVar[tuple[str, ...]] = ("rows",)

    rows: Numeric
    sequences: Numeric
    channels: Axis
    kernel: int
    state_format: Format
    scheme: Scheme

    @property
    def arithmetic(self) -> str:
        """See `Op.arithmetic`."""
        return self.scheme.arithmetic

    @property
    def flops(self) -> Numeric:
        """See `Op.flops`."""
        return 2 * self.kernel * self.channels.elements * self.rows

    @property
    def weight_bytes(self) -> Numeric:
        """See `Op.weight_bytes`."""
        return self.kernel * self.channels.elements * self.scheme.weights.bytes_per_element

    @property
    def activation_bytes(self) -> Numeric:
        """See `Op.activation_bytes`."""
        return 2 * self.channels.elements * self.scheme.output.bytes_per_element * self.rows

    @property
    def kv_bytes(self) -> Numeric:
        """See `Op.kv_bytes`."""
        return 2 * self.kernel * self.channels.elements * self.state_format.bytes_per_element * self.sequences


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanMatmul(Matmul):
    """A small projection that kernels of selective scans run inside: it counts as part of the state space."""

    kind: ClassVar[Kind] = Kind.STATE_SPACE
