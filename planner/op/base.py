"""What every operation has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

from planner.numeric import Numeric
from planner.op.axis import Axis, Divide


class Kind(StrEnum):
    """The kinds of operation that results are summed by."""

    MATMUL = "matmul"
    ATTENTION = "attention"
    INDEXER = "indexer"
    STATE_SPACE = "state_space"
    ELEMENTWISE = "elementwise"
    EMBEDDING = "embedding"
    COLLECTIVE = "collective"


@dataclass(frozen=True, slots=True, kw_only=True)
class Op(ABC):
    """One operation of a step.

    Attributes
    ----------
    name : str
        What it is called, after the Hugging Face module where there is one.
    group : str
        The kind of layer it belongs to, in words.
    layers : int
        How many layers it is in (1 for what stands outside the layers).
    count : Numeric
        How many times it runs in a step. The figures below are for one run.
    note : str
        What a reader of the result should know about it; empty if nothing.
    """

    name: str
    group: str
    layers: int = 1
    count: Numeric = 1
    note: str = ""

    kind: ClassVar[Kind]
    token_fields: ClassVar[tuple[str, ...]] = ()
    """Fields that shrink with the tokens when a sequence is spread over chips."""

    @property
    @abstractmethod
    def arithmetic(self) -> str:
        """The format that the arithmetic runs in: a key of ``peak`` in a hardware file."""

    @property
    def flops(self) -> Numeric:
        """Floating-point (or integer) operations [FLOP]."""
        return 0

    @property
    def weight_bytes(self) -> Numeric:
        """Weights read from memory, scales included [B]."""
        return 0

    @property
    def activation_bytes(self) -> Numeric:
        """Activations read and written [B]."""
        return 0

    @property
    def kv_bytes(self) -> Numeric:
        """KV cache or recurrent state read and written [B]."""
        return 0

    @property
    def memory_bytes(self) -> Numeric:
        """Everything that goes to or comes from the chip's memory [B]."""
        return self.weight_bytes + self.activation_bytes + self.kv_bytes

    def on_chip(self, divide: Divide) -> Self:
        """Return the part of the operation that one chip runs: each named axis cut to the chip's piece of it."""
        changes: dict[str, Any] = {}
        for name, value in self._values():
            if isinstance(value, Axis):
                changes[name] = divide(value)
            elif isinstance(value, tuple) and value and all(isinstance(item, Axis) for item in value):
                changes[name] = tuple(divide(item) for item in value)
        return replace(self, **{name: new for name, new in changes.items() if new != getattr(self, name)})

    def with_tokens(self, share: Numeric) -> Self:
        """Return the operation on a share of its tokens."""
        return replace(self, **{name: getattr(self, name) * share for name in self.token_fields})

    def _values(self) -> list[tuple[str, Any]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]
