"""One forward step: every operation rated, and their sums.

Two bounds are given. Operations that run one after the other take at least the sum of their own lower bounds; with overlap across
operations nothing beats the largest of the three sums of times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from planner.hardware import Hardware
from planner.model import Model
from planner.numeric import Numeric, summed
from planner.op import Kind
from planner.parallel import (
    Layout,
    Pipeline,
    Stage,
    check_layout,
    distinct,
    layout_notes,
    pipeline,
    shard_stage,
    stages,
)
from planner.precision import Precision
from planner.roofline import Rating, bound_of, largest, rate_op, total
from planner.workload import Step

COUNTED = (Kind.MATMUL, Kind.ATTENTION, Kind.INDEXER, Kind.STATE_SPACE)
"""Kinds whose FLOPs make up the step's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRating:
    """A forward step of a model on a chip.

    Attributes
    ----------
    model, hardware, step, precision, layout
        What was asked.
    ops : tuple of Rating
        Every operation of one chip of the slowest pipeline stage, in order, for all microbatches of the step.
    stage : Stage
        That stage.
    flow : Pipeline
        How the step passes through the stages.
    """

    model: Model
    hardware: Hardware
    step: Step
    precision: Precision
    ops: tuple[Rating, ...]
    layout: Layout
    stage: Stage
    flow: Pipeline

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
    def network_s(self) -> Numeric | None:
        """Sum of the times on the network [s]."""
        return total([r.network_s for r in self.ops])

    @property
    def network_bytes(self) -> Numeric:
        """Bytes sent to other chips, one direction [B]."""
        return _sum(r.network_bytes for r in self.ops)

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
        return largest([self.compute_s, self.memory_s, self.network_s])

    @property
    def bound(self) -> Any:
        """Which of the three sums is the largest; None where one is not known."""
        return bound_of([self.compute_s, self.memory_s, self.network_s])

    @property
    def tokens_per_s(self) -> Numeric | None:
        """Tokens that pass the replica in a second, at the lower bound and with the pipeline filled: an upper limit [token/s]."""
        return None if self.lower_s is None else self.step.tokens * (1 - self.flow.bubble) / self.lower_s

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: formats that fell back, forms that were chosen."""
        fallbacks = [r.rate.note for r in self.ops if r.op.kind in COUNTED and r.rate.note]
        forms = [r.op.note for r in self.ops if r.op.note]
        unknown = [r.missing for r in self.ops if r.network_s is None]
        return tuple(dict.fromkeys([*fallbacks, *forms, *unknown, *layout_notes(self.model, self.layout)]))


def _sum(values: Iterable[Numeric]) -> Numeric:
    result: Numeric = 0
    for value in values:
        result = result + value
    return result


def rate_step(
    model: Model,
    hardware: Hardware,
    step: Step,
    precision: Precision,
    layout: Layout | None = None,
    stage_index: int | None = None,
) -> StepRating:
    """Break a step into the operations of one chip and rate each of them.

    Parameters
    ----------
    model, hardware : Model, Hardware
        Descriptions.
    step : Step
        Batch (of the whole replica), new tokens and context; numbers or arrays that broadcast against each other.
    precision : Precision
        The policy.
    layout : Layout, optional
        How the replica is laid out over chips; one chip where not given.
    stage_index : int, optional
        The pipeline stage to rate, from 0; the slowest where not given.

    Returns
    -------
    StepRating
        Of the busiest chip of the stage.

    Raises
    ------
    InputError
        If engines do not run the layout, or the chip's links do not allow it.
    """
    layout = Layout() if layout is None else layout
    check_layout(model, hardware, layout, step.phase)
    flow = pipeline(step, layout)
    rated = (
        StepRating(
            model=model,
            hardware=hardware,
            step=step,
            precision=precision,
            ops=tuple(rate_op(op, hardware) for op in shard_stage(model, precision, layout, stage, flow)),
            layout=layout,
            stage=stage,
            flow=flow,
        )
        for stage in distinct(stages(model, layout.pp))
        if stage_index in (None, stage.index)
    )
    return max(rated, key=_slowness)


def _slowness(result: StepRating) -> tuple[float, float]:
    """Return what stages are compared by: their time, or their bytes where a time is not known; summed over arrays."""
    seconds = result.lower_s
    return (-1.0 if seconds is None else summed(seconds), summed(result.memory_bytes))
