"""What a report shows, in numbers: a step in several precisions, over a grid of batches, and what fits in memory.

From which batch on an operation or a step is compute-bound is read off a grid of every batch up to `LAST_OF_ALL`, evaluated as one
array, and one batch so large that nothing changes any more. What is not compute-bound there never is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from planner.hardware import Hardware
from planner.memory import CacheBytes, cache_bytes, sequence_bytes, weight_bytes
from planner.model import Model
from planner.op import Op
from planner.precision import Precision, Role
from planner.step import StepRating, rate_step
from planner.units import Numeric
from planner.workload import Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAST_OF_ALL = 2**16
"""Every batch up to this one is tried."""

BEYOND_ALL = 10**9
"""A batch at which intensities have long reached their limits."""

LEAST_SHOWN = 64
"""The grid of batches to look at reaches at least this far."""

OpKey: TypeAlias = tuple[str, str]
"""Group and name of an operation."""

Times: TypeAlias = "tuple[Numeric | None, Numeric | None, Numeric | None]"
"""Seconds to compute, on memory and on the network."""


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
        Bytes of the weights by tensor class [B].
    cache : CacheBytes
        What a sequence keeps, by the way it grows.
    sequence_bytes : float
        What one sequence keeps after the step [B].
    fitting : int or None
        Sequences that fit beside the weights; negative where the weights do not, None where the chip's memory has no fixed size.
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
    fitting: int | None

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.precision.name

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights [B]."""
        return sum(self.weights.values())

    def needed_bytes(self, batch: int) -> float:
        """Return the bytes of weights and KV cache of a batch [B]."""
        return self.weight_bytes + batch * self.sequence_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything a report shows.

    Attributes
    ----------
    model, hardware, step
        What was asked.
    batches : tuple of int
        The grid of batches that can be looked at; the batch asked for is among them.
    choices : tuple of Choice
        Precision policies; the one asked for is the first.
    """

    model: Model
    hardware: Hardware
    step: Step
    batches: tuple[int, ...]
    choices: tuple[Choice, ...]

    @property
    def asked(self) -> Choice:
        """The policy asked for."""
        return self.choices[0]

    @property
    def room(self) -> float | None:
        """Bytes of memory to plan on [B]."""
        return self.hardware.memory.plannable_bytes


def key(op: Op) -> OpKey:
    """Return what identifies an operation within a step."""
    return op.group, op.name


def study(model: Model, hardware: Hardware, step: Step, precisions: Sequence[Precision]) -> Study:
    """Rate a step in every policy, at the batch asked for and over a grid of batches.

    Parameters
    ----------
    model, hardware : Model, Hardware
        Descriptions.
    step : Step
        What is asked; plain numbers.
    precisions : sequence of Precision
        The policy asked for, and those to compare with. A name that stands twice is taken once.
    """
    names = [precision.name for precision in precisions]
    policies = [precision for index, precision in enumerate(precisions) if precision.name not in names[:index]]
    tried = np.append(np.arange(1, LAST_OF_ALL + 1), BEYOND_ALL)
    swept = [_at(model, hardware, step, precision, tried) for precision in policies]
    found = [_thresholds(rating, tried) for rating in swept]
    fitting = [_fitting(model, hardware, step, precision) for precision in policies]
    batches = _grid(int(step.batch), [t for ops, whole in found for t in (*ops.values(), whole)], fitting)
    choices = tuple(
        Choice(
            precision=precision,
            point=rate_step(model, hardware, step, precision),
            sweep=_at(model, hardware, step, precision, batches),
            limit=_at(model, hardware, step, precision, BEYOND_ALL),
            thresholds=ops,
            threshold=whole,
            weights=weight_bytes(model, precision),
            cache=cache_bytes(model, precision.kv),
            sequence_bytes=float(sequence_bytes(model, step.context + step.new_tokens, precision.kv)),
            fitting=fits,
        )
        for precision, (ops, whole), fits in zip(policies, found, fitting, strict=True)
    )
    return Study(model=model, hardware=hardware, step=step, batches=batches, choices=choices)


def _at(model: Model, hardware: Hardware, step: Step, precision: Precision, batch: Any) -> StepRating:
    """Rate the step at other batches, in floating point: counts at the largest do not fit in 64-bit integers."""
    return rate_step(model, hardware, replace(step, batch=np.multiply(batch, 1.0)), precision)


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


def _fitting(model: Model, hardware: Hardware, step: Step, precision: Precision) -> int | None:
    """Return how many sequences fit beside the weights, before what activations and an engine take."""
    room = hardware.memory.plannable_bytes
    each = float(sequence_bytes(model, step.context + step.new_tokens, precision.kv))
    if room is None or not each:
        return None
    return int((room - sum(weight_bytes(model, precision).values())) // each)


def _grid(asked: int, thresholds: Sequence[Threshold], fitting: Sequence[int | None]) -> tuple[int, ...]:
    """Return batches to look at: powers of two and the steps half-way between, past every batch at which something happens."""
    events = [asked, *(t.batch for t in thresholds if t.batch), *(count for count in fitting if count)]
    last = max(LEAST_SHOWN, *(min(2 * event, LAST_OF_ALL) for event in events), asked)
    batches, power = {1, asked}, 1
    while power < last:
        batches |= {2 * power, 3 * power // 2} if power > 1 else {2}
        power *= 2
    return tuple(sorted(batches))


def digest(model: Model, hardware: Hardware) -> str:
    """Return a checksum of the two descriptions, so that a reader can tell whether a report is of the same ones."""
    data = [part.model_dump(mode="json", exclude_defaults=True) for part in (model, hardware)]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
