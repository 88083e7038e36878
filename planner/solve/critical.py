"""The smallest batch that is compute-bound, for each operation and for the step, or why there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.numeric import Numeric
from planner.op import Attention, Kind, Matmul, Op
from planner.roofline import Rating
from planner.solve.crossing import LARGEST_BATCH, decisive_batches, roots, smallest_batch
from planner.solve.question import Question
from planner.solve.target import ComputeBound, Target
from planner.step import COUNTED, StepRating
from planner.units import LARGEST_COUNT

if TYPE_CHECKING:
    from planner.solve.crossing import Floats, Indices

ANY_BATCH = "compute-bound at any batch"
COMPUTE_BOUND = ComputeBound()
MICRO = 10**6
LARGEST_CONTEXT = LARGEST_COUNT
"""Contexts are looked at up to here [tokens]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpAnswer:
    """Where one operation turns compute-bound.

    Attributes
    ----------
    name, group : str
        The operation.
    critical_batch : int or None
        The smallest number of sequences; 1 where any number is enough, None where none is.
    critical_tokens : float or None
        The real-valued root, in tokens of the step; 0 where it is compute-bound however few there are.
    reason : str
        Why there is none, or that any batch does; empty else.
    """

    name: str
    group: str
    critical_batch: int | None
    critical_tokens: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAnswer:
    """Where a whole step turns compute-bound: the sum of compute times is at least that of memory and that of network.

    Attributes
    ----------
    critical_batch : int or None
        The smallest number of sequences, None where no number is enough.
    max_context_compute_bound : int or None
        The longest context at which some batch is enough; None where there is none, or no end to it: see `context_reason`.
    saturated_intensity : float or None
        FLOPs for each byte as the batch grows without end [FLOP/B].
    needed_intensity : float or None
        FLOPs for each byte at which compute takes as long as memory [FLOP/B].
    reason, context_reason : str
        Why there is no such batch, and no such context.
    """

    critical_batch: int | None
    max_context_compute_bound: int | None
    saturated_intensity: float | None
    needed_intensity: float | None
    reason: str
    context_reason: str


# ---- operations ------------------------------------------------------------------------------------------------------


def solve_ops(question: Question) -> tuple[OpAnswer, ...]:
    """Find the critical batch of every operation of a step, all together."""
    ratings = question.at(1).ops

    def excess(batches: Floats, which: Indices) -> Floats:
        rated = question.at(batches).ops
        pairs = ((rated[i], position) for position, i in enumerate(which))
        return np.array([_op_excess(rating, position, batches.size) for rating, position in pairs])

    found = roots(excess, len(ratings))
    far = question.at(LARGEST_BATCH).ops
    return tuple(_op_answer(question, index, root, far[index]) for index, root in enumerate(found.tolist()))


def _op_excess(rating: Rating, position: int, count: int) -> float:
    """Return compute time less memory time of one operation at one of the batches; -1 where it has no arithmetic or no rate."""
    if rating.op.kind not in COUNTED or rating.compute_s is None or rating.memory_s is None:
        return -1.0
    difference: Numeric = rating.compute_s - rating.memory_s
    return float(np.broadcast_to(difference, (count,))[position])


def _op_answer(question: Question, index: int, root: float, far: Rating) -> OpAnswer:
    op = far.op
    if math.isnan(root):
        return OpAnswer(name=op.name, group=op.group, critical_batch=None, critical_tokens=None, reason=_op_reason(far))
    batch = smallest_batch(lambda b: _op_excess(question.at(b).ops[index], 0, 1), question.quantum, near=root)
    tokens = root * question.new_tokens
    reason = ANY_BATCH if batch == 1 else ""
    return OpAnswer(name=op.name, group=op.group, critical_batch=batch, critical_tokens=tokens, reason=reason)


def _op_reason(rating: Rating) -> str:
    """Say with numbers why an operation is memory-bound at any batch."""
    op = rating.op
    if op.kind is Kind.COLLECTIVE:
        return "sends over the network, and does no arithmetic that counts"
    if op.kind not in COUNTED:
        return "moves memory, and does no arithmetic that counts"
    if rating.compute_s is None or rating.memory_s is None:
        return rating.missing
    limit = f"{_number(float(np.max(rating.intensity)))} FLOP/byte at any batch, critical is {_number(rating.critical_intensity)}"
    return f"{_what_it_does(op, rating)}: {limit}"


def _what_it_does(op: Op, rating: Rating) -> str:
    if isinstance(op, Attention):
        tokens = float(op.cache_read + op.cache_written)
        moved, done = float(rating.kv_bytes) / tokens, float(rating.flops) / tokens
        return f"{op.name} reads {moved:,.0f} B of KV per token and does {_flop(done)} with it"
    if isinstance(op, Matmul):
        rows = float(np.multiply(op.rows, op.count))
        moved, done = float(rating.activation_bytes) / rows, float(rating.flops) / rows
        return (
            f"{op.name} moves {moved:,.0f} B of activations per row and does {_flop(done)} with them, weights left out"
        )
    return f"{op.name} moves {rating.memory_bytes:,.0f} B and does {_flop(float(rating.flops))}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.2g}"  # three digits


def _flop(value: float) -> str:
    """Return a count of FLOPs with a prefix."""
    from quantiphy import Quantity  # only where words are made

    return str(Quantity(value, "FLOP").render(prec=1))


# ---- the step --------------------------------------------------------------------------------------------------------


def solve_step(question: Question, target: Target = COMPUTE_BOUND) -> StepAnswer:
    """Find the smallest batch that reaches a target, and the context beyond which no batch is compute-bound."""
    far = question.at(LARGEST_BATCH)
    if far.compute_s is None or far.memory_s is None or far.network_s is None:
        note = next(r.missing for r in far.ops if not r.is_rated)
        return StepAnswer(
            critical_batch=None,
            max_context_compute_bound=None,
            saturated_intensity=None,
            needed_intensity=None,
            reason=note,
            context_reason=note,
        )
    batch = first_batch(question, target)
    longest, context_reason = longest_context(question)
    saturated = float(far.flops() / far.memory_bytes)
    needed = saturated * float(far.memory_s / far.compute_s)
    return StepAnswer(
        critical_batch=batch,
        max_context_compute_bound=longest,
        saturated_intensity=saturated,
        needed_intensity=needed,
        reason=_step_words(question, target, batch, far),
        context_reason=context_reason,
    )


def first_batch(question: Question, target: Target) -> int | None:
    """Return the smallest batch that reaches a target, or None where none does."""
    if not target.grows:
        return 1 if target.excess(question.at(1)) >= 0 else None
    return smallest_batch(lambda batch: float(target.excess(question.at(batch))), question.quantum)


def is_reached(question: Question, target: Target, most: int) -> bool:
    """Whether some batch up to `most` reaches a target."""
    if not target.grows:
        return bool(target.excess(question.at(1)) >= 0)
    batches = np.array(decisive_batches(most, question.quantum), dtype=float)
    return bool(np.any(np.asarray(target.excess(question.at(batches))) >= 0))


def _step_words(question: Question, target: Target, batch: int | None, far: StepRating) -> str:
    if batch == 1:
        return ANY_BATCH if isinstance(target, ComputeBound) else "reached by one sequence"
    if batch is not None:
        return ""
    if not isinstance(target, ComputeBound):
        return target.shortfall(question.at(1) if not target.grows else far)
    return saturation(question, far)


def saturation(question: Question, far: StepRating) -> str:
    """Say with numbers why no batch makes a step compute-bound.

    Parameters
    ----------
    question : Question
        What was asked.
    far : StepRating
        The step at a batch so large that weights do not count.
    """
    sequences = LARGEST_BATCH
    compute, memory, network = (float(t or 0) / sequences for t in (far.compute_s, far.memory_s, far.network_s))
    if network > max(compute, memory):
        return f"each sequence takes {compute * MICRO:,.3g} µs to compute and {network * MICRO:,.3g} µs on the network at any batch"
    done, moved = float(far.flops()) / sequences, float(far.memory_bytes) / sequences
    kv = sum(float(r.kv_bytes) for r in far.ops) / sequences
    return (
        f"with {question.context:,} tokens of context each sequence does {_flop(done)} and moves {moved:,.0f} B ({kv:,.0f} B of "
        f"them KV cache): {_number(done / moved)} FLOP/byte at any batch, critical is {_number(done / moved * memory / compute)}"
    )


def longest_context(question: Question) -> tuple[int | None, str]:
    """Return the longest context at which some batch makes the step compute-bound, or None and the reason.

    Notes
    -----
    With a batch without end only what each sequence adds matters. Contexts are scanned on a grid that doubles, together, and the last
    interval in which the answer turns is searched by halving.
    """

    def spare(contexts: Floats) -> Floats:
        return np.asarray(COMPUTE_BOUND.excess(question.at(LARGEST_BATCH, contexts)))

    steps = np.unique(np.round(np.geomspace(1, LARGEST_CONTEXT, 2048)))
    grid = np.concatenate(([0.0], steps))
    enough = np.broadcast_to(spare(grid) >= 0, grid.shape)
    if enough[-1]:
        return None, "compute-bound at any context, from some batch on"
    if not enough.any():
        return None, "not compute-bound at any context, not even an empty one"
    last = int(np.flatnonzero(enough)[-1])
    low, high = int(grid[last]), int(grid[last + 1])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if spare(np.array([float(middle)]))[0] >= 0 else (low, middle)
    return low, ""
