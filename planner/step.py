"""One forward step: every operation rated, and their sums.

Two bounds are given. Operations that run one after the other take at least the sum of their own lower bounds; with overlap across
operations nothing beats the largest of the three sums of times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from planner.decompose import decompose
from planner.hardware import Hardware
from planner.model import Model
from planner.op import Kind
from planner.precision import Precision
from planner.roofline import Rating, bound_name, rate_op, total
from planner.units import Numeric, maximum
from planner.workload import Step

COUNTED = (Kind.MATMUL, Kind.ATTENTION, Kind.INDEXER, Kind.STATE_SPACE)
"""Kinds whose FLOPs make up the step's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRating:
    """A forward step of a model on a chip.

    Attributes
    ----------
    model, hardware, step, precision
        What was asked.
    ops : tuple of Rating
        Every operation, in order.
    """

    model: Model
    hardware: Hardware
    step: Step
    precision: Precision
    ops: tuple[Rating, ...]

    def flops(self, *kinds: Kind) -> Numeric:
        """Return the FLOPs of some kinds of operation, of all that count where none is named [FLOP]."""
        return _sum(r.flops for r in self.ops if r.op.kind in (kinds or COUNTED))

    @property
    def memory_bytes(self) -> Numeric:
        """Bytes that go to or come from memory [B]."""
        return _sum(r.memory_bytes for r in self.ops)

    @property
    def compute_s(self) -> Numeric | None:
        """Sum of the times to compute [s]."""
        return total([r.compute_s for r in self.ops])

    @property
    def memory_s(self) -> Numeric | None:
        """Sum of the times to move bytes [s]."""
        return total([r.memory_s for r in self.ops])

    @property
    def network_s(self) -> Numeric:
        """Sum of the times on the network [s]."""
        return _sum(r.network_s for r in self.ops)

    @property
    def lower_s(self) -> Numeric | None:
        """Sum of the operations' lower bounds [s]."""
        return total([r.lower_s for r in self.ops])

    @property
    def upper_s(self) -> Numeric | None:
        """Sum of the operations' upper bounds [s]."""
        return total([r.upper_s for r in self.ops])

    @property
    def overlap_floor_s(self) -> Numeric | None:
        """The largest of the three sums: the floor that nothing can beat [s]."""
        if self.compute_s is None or self.memory_s is None:
            return None
        return maximum(maximum(self.compute_s, self.memory_s), self.network_s)

    @property
    def bound(self) -> Any:
        """Which of the three sums is the largest; None where one is not known."""
        if self.compute_s is None or self.memory_s is None:
            return None
        return bound_name(self.compute_s, self.memory_s, self.network_s)

    @property
    def tokens_per_s(self) -> Numeric | None:
        """Tokens that pass the model in a second, at the lower bound: an upper limit [token/s]."""
        return None if self.lower_s is None else self.step.tokens / self.lower_s

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: formats that fell back, forms that were chosen."""
        fallbacks = [r.rate.note for r in self.ops if r.op.kind in COUNTED and r.rate.note]
        forms = [r.op.note for r in self.ops if r.op.note]
        return tuple(dict.fromkeys(fallbacks + forms))


def _sum(values: Iterable[Numeric]) -> Numeric:
    result: Numeric = 0
    for value in values:
        result = result + value
    return result


def rate_step(model: Model, hardware: Hardware, step: Step, precision: Precision) -> StepRating:
    """Break a step into operations and rate each of them.

    Parameters
    ----------
    model, hardware : Model, Hardware
        Descriptions.
    step : Step
        Batch, new tokens and context; numbers or arrays that broadcast against each other.
    precision : Precision
        The policy.
    """
    ops = tuple(rate_op(op, hardware) for op in decompose(model, step, precision))
    return StepRating(model=model, hardware=hardware, step=step, precision=precision, ops=ops)
