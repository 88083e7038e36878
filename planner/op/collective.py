"""Collective communication: what a group of chips exchanges, before any link is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from planner.numeric import Numeric
from planner.op.base import Kind, Op


class Operation(StrEnum):
    """What is exchanged."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    SEND_RECEIVE = "send_receive"


@dataclass(frozen=True, slots=True)
class Group:
    """The chips that take part: every `stride`-th of a run of neighbours.

    Attributes
    ----------
    chips : int
        How many take part.
    stride : int
        Distance from one to the next, in chips.
    """

    chips: int
    stride: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective(Op):
    """One collective.

    Attributes
    ----------
    operation : Operation
        What is exchanged.
    chips : Group
        Between whom.
    size_bytes : Numeric
        All-reduce: the buffer that each chip holds and gets back summed. All-gather: the gathered result. Reduce-scatter: the buffer
        before it is scattered. All-to-all: what one chip sends, its own share included. Send: the message [B].
    format : str
        The format of what is exchanged.
    """

    kind: ClassVar[Kind] = Kind.COLLECTIVE

    operation: Operation
    chips: Group
    size_bytes: Numeric
    format: str = "bf16"

    @property
    def arithmetic(self) -> str:
        """See `Op.arithmetic`. The sums of a reduction are not counted."""
        return "fp32"
