"""What a report shows, in numbers: a step in several precisions, over a grid of batches, and what fits in memory.

From which batch on an operation or a step is compute-bound is read off a grid of every batch up to `LAST_OF_ALL`, evaluated as one
array, and one batch so large that nothing changes any more. What is not compute-bound there never is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from planner.engine import Engine
from planner.hardware import Hardware
from planner.memory import CacheBytes, MemoryPlan, cache_bytes, memory_plan, sequence_bytes, weight_bytes
from planner.model import Model
from planner.op import Op
from planner.parallel import SINGLE_CHIP, Layout
from planner.precision import Precision, Role
from planner.step import StepRating, rate_step
from planner.units import LARGEST_COUNT, Numeric
from planner.workload import Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST_OF_ALL = 2**16
"""Every batch up to this one is tried."""

BEYOND_ALL = LARGEST_COUNT
"""A batch at which intensities have long reached their limits."""

LEAST_SHOWN = 64
"""The grid of batches to look at reaches at least this far."""

OpKey: TypeAlias = tuple[str, str]
"""Group and name of an operation."""

Times: TypeAlias = "tuple[Numeric | None, Numeric | None, Numeric | None]"
"""Seconds to compute, on memory and on the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked.

    Attributes
    ----------
    model, hardware : Model, Hardware
        Descriptions.
    step : Step
        The step; plain numbers, the batch of the whole replica.
    engine : Engine
        Whose memory rules say what fits.
    layout : Layout
        How the replica is laid out over chips.
    """

    model: Model
    hardware: Hardware
    step: Step
    engine: Engine
    layout: Layout = SINGLE_CHIP

    @property
    def tokens(self) -> int:
        """Tokens of a sequence after the step."""
        return int(self.step.context + self.step.new_tokens)

    def at(self, precision: Precision, batch: Any = None) -> StepRating:
        """Return the step in a precision, as asked or at other batches.

        These are in floating point: counts at the largest do not fit in 64-bit integers.
        """
        step = self.step if batch is None else self.step.with_batch(np.multiply(batch, 1.0))
        return rate_step(self.model, self.hardware, step, precision, self.layout)

    def memory(self, precision: Precision, batch: Any = None) -> MemoryPlan:
        """Return what the fullest chip holds in a precision, as asked or at other batches."""
        return memory_plan(
            self.model,
            self.hardware,
            precision,
            self.layout,
            batch=self.step.batch if batch is None else np.multiply(batch, 1.0),
            context=self.tokens,
            engine=self.engine,
        )


@dataclass(frozen=True, slots=True)
class Threshold:
    """From which batch on something is compute-bound.

    Attributes
    ----------
    batch : int or None
        The smallest such batch; None where there is none, or none up to `LAST_OF_ALL`.
    is_known : bool
        False where the chip has no rate for the arithmetic.
    is_never : bool
        True where no batch is large enough.
    """

    batch: int | None = None
    is_known: bool = True
    is_never: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One precision policy, looked at from all sides.

    Attributes
    ----------
    precision : Precision
        The policy.
    point : StepRating
        The step as asked.
    sweep : StepRating
        The step over the grid of batches, as arrays.
    limit : StepRating
        The step at `BEYOND_ALL` sequences.
    thresholds : mapping of OpKey to Threshold
        Of every operation that computes.
    threshold : Threshold
        Of the step as a whole.
    weights : mapping of Role to float
        Bytes of the weights of the whole model by tensor class [B].
    cache : CacheBytes
        What a sequence keeps, by the way it grows [B].
    sequence_bytes : float
        What one sequence keeps after the step, on all chips together [B].
    memory : MemoryPlan
        The fullest chip, as asked.
    taken_bytes : numpy.ndarray
        What the fullest chip holds over the grid of batches [B].
    """

    precision: Precision
    point: StepRating
    sweep: StepRating
    limit: StepRating
    thresholds: Mapping[OpKey, Threshold]
    threshold: Threshold
    weights: Mapping[Role, float]
    cache: CacheBytes
    sequence_bytes: float
    memory: MemoryPlan
    taken_bytes: NDArray[np.float64]

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.precision.name

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights of the whole model [B]."""
        return sum(self.weights.values())

    @property
    def missing(self) -> str:
        """Why there are no times, in words; empty where there are."""
        return "; ".join(dict.fromkeys(r.missing for r in self.point.ops if r.missing))


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything a report shows.

    Attributes
    ----------
    question : Question
        What was asked.
    batches : tuple of int
        The grid of batches that can be looked at; the batch asked for is among them.
    choices : tuple of Choice
        Precision policies; the one asked for is the first.
    """

    question: Question
    batches: tuple[int, ...]
    choices: tuple[Choice, ...]

    @property
    def model(self) -> Model:
        """The model."""
        return self.question.model

    @property
    def hardware(self) -> Hardware:
        """The chip."""
        return self.question.hardware

    @property
    def step(self) -> Step:
        """The step."""
        return self.question.step

    @property
    def layout(self) -> Layout:
        """How the replica is laid out."""
        return self.question.layout

    @property
    def asked(self) -> Choice:
        """The policy asked for."""
        return self.choices[0]


def key(op: Op) -> OpKey:
    """Return what identifies an operation within a step."""
    return op.group, op.name


def study(question: Question, precisions: Sequence[Precision]) -> Study:
    """Rate a step in every policy, at the batch asked for and over a grid of batches.

    Parameters
    ----------
    question : Question
        What is asked.
    precisions : sequence of Precision
        The policy asked for, and those to compare with. A name that stands twice is taken once.

    Raises
    ------
    InputError
        If engines do not run the layout, or the chip's links do not allow it.
    """
    names = [precision.name for precision in precisions]
    policies = [precision for index, precision in enumerate(precisions) if precision.name not in names[:index]]
    tried = np.append(np.arange(1, LAST_OF_ALL + 1), BEYOND_ALL)
    found = [_thresholds(question.at(precision, tried), tried) for precision in policies]
    plans = [question.memory(precision) for precision in policies]
    events = [t.batch for ops, whole in found for t in (*ops.values(), whole)] + [plan.max_batch for plan in plans]
    batches = _grid(int(question.step.batch), [event for event in events if event])
    choices = tuple(
        Choice(
            precision=precision,
            point=question.at(precision),
            sweep=question.at(precision, batches),
            limit=question.at(precision, BEYOND_ALL),
            thresholds=ops,
            threshold=whole,
            weights=weight_bytes(question.model, precision),
            cache=cache_bytes(question.model, precision.kv),
            sequence_bytes=float(sequence_bytes(question.model, question.tokens, precision.kv)),
            memory=plan,
            taken_bytes=np.broadcast_to(question.memory(precision, batches).total_bytes, (len(batches),)),
        )
        for precision, (ops, whole), plan in zip(policies, found, plans, strict=True)
    )
    return Study(question=question, batches=batches, choices=choices)


def _thresholds(rating: StepRating, batches: NDArray[np.int64]) -> tuple[dict[OpKey, Threshold], Threshold]:
    ops = {
        key(r.op): first_compute_bound((r.compute_s, r.memory_s, r.network_s), batches)
        for r in rating.ops
        if np.any(np.greater(r.flops, 0))
    }
    return ops, first_compute_bound((rating.compute_s, rating.memory_s, rating.network_s), batches)


def first_compute_bound(times: Times, batches: NDArray[np.int64]) -> Threshold:
    """Return from which batch on the time to compute is the largest of three, and stays it.

    Parameters
    ----------
    times : tuple
        Seconds to compute, on memory and on the network, each a number or an array [batch]; None where not known.
    batches : numpy.ndarray
        Every batch from 1 on, and last one that stands for the limit.
    """
    compute_s, memory_s, network_s = times
    if compute_s is None or memory_s is None or network_s is None:
        return Threshold(is_known=False)
    others = np.maximum(memory_s, network_s)
    is_bound = np.broadcast_to(np.greater_equal(compute_s, others), batches.shape)
    if not is_bound[-1]:
        return Threshold(is_never=True)
    failing = np.flatnonzero(~is_bound[:-1])
    first = int(failing[-1]) + 1 if failing.size else 0
    return Threshold(int(batches[first])) if first < batches.size - 1 else Threshold()


def _grid(asked: int, events: Sequence[int]) -> tuple[int, ...]:
    """Return batches to look at: powers of two and the steps half-way between, past every batch at which something happens."""
    last = max(LEAST_SHOWN, asked, *(min(2 * event, LAST_OF_ALL) for event in (asked, *events)))
    batches, power = {1, asked}, 1
    while power < last:
        batches |= {2 * power, 3 * power // 2} if power > 1 else {2}
        power *= 2
    return tuple(sorted(batches))


def digest(question: Question) -> str:
    """Return a checksum of the descriptions of model, chip and engine, so that a reader can tell whether a report is of the same ones."""
    parts = (question.model, question.hardware, question.engine)
    data = [part.model_dump(mode="json", exclude_defaults=True) for part in parts]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
