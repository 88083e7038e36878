"""Stored tensors: the one place from which parameter counts, weight bytes and matmuls are all derived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from planner.op import SINGLE, Axis
from planner.precision import Role
from planner.sourced import Description, Flag
from planner.units import LARGEST_COUNT, TRILLION

Count = Annotated[int, Field(strict=True, ge=1, le=LARGEST_COUNT)]
"""A number of heads, elements, experts or tokens."""

CountOrZero = Annotated[int, Field(strict=True, ge=0, le=TRILLION)]
"""A number of parameters that may be none."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A weight matrix ``[inner, outer]``, or `copies` of them, with an optional bias along `outer`.

    Attributes
    ----------
    name : str
        Hugging Face module name.
    role : Role
        Tensor class, which decides the precision.
    inner : Axis
        Input axis.
    outer : tuple of Axis
        Output axes, side by side where projections of one input are fused.
    bias : bool
        Whether there is a bias for each output element.
    copies : Axis
        How many such matrices there are, and of what (experts).
    used : int, optional
        How many of the copies one token uses; all where not given.
    """

    name: str
    role: Role
    inner: Axis
    outer: tuple[Axis, ...]
    bias: bool = False
    copies: Axis = SINGLE
    used: int | None = None

    @property
    def matrix_elements(self) -> int:
        """Elements of the matrices, biases left out."""
        return self.copies.size * self.inner.elements * sum(axis.elements for axis in self.outer)

    @property
    def parameters(self) -> int:
        """Parameters, biases included."""
        biases = self.copies.size * sum(axis.elements for axis in self.outer) if self.bias else 0
        return self.matrix_elements + biases

    @property
    def active_parameters(self) -> int:
        """Parameters that one token uses."""
        return self.parameters if self.used is None else self.parameters * self.used // self.copies.size


@dataclass(frozen=True, slots=True)
class Vector:
    """Parameters that take part in no matmul: norm weights, sinks, gates, positions."""

    name: str
    role: Role
    parameters: int

    @property
    def matrix_elements(self) -> int:
        """No matrix: 0."""
        return 0

    @property
    def active_parameters(self) -> int:
        """All of them."""
        return self.parameters


class Projection(Description):
    """A matrix that each token is multiplied by, beside those of attention and feed-forward networks."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    """What it is called."""
    input_size: Count
    """Elements of its input."""
    output_size: Count
    """Elements of its result."""
    bias: Flag = False
    """A bias for each element of the result."""
    times: Count = 1
    """How often it runs for each token: more than once where a convolution works before the length is cut."""

    @property
    def tensor(self) -> Tensor:
        """The stored matrix."""
        return Tensor(
            self.name,
            Role.FFN,
            Axis("input", self.input_size),
            (Axis("output", self.output_size),),
            bias=self.bias,
        )
