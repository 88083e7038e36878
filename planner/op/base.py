"""What every operation has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from planner.units import Numeric


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
    count : int
        How many times it runs in a step. The figures below are for one run.
    note : str
        What a reader of the result should know about it; empty if nothing.
    """

    name: str
    group: str
    layers: int = 1
    count: int = 1
    note: str = ""

    kind: ClassVar[Kind]

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
    def network_bytes(self) -> Numeric:
        """Bytes sent through the link to other chips, one direction [B]."""
        return 0

    @property
    def memory_bytes(self) -> Numeric:
        """Everything that goes to or comes from the chip's memory [B]."""
        return self.weight_bytes + self.activation_bytes + self.kv_bytes
