"""The fewest chips, and how to lay the model out over them: an exact search of the discrete space.

For each number of chips in turn every legal layout is looked at. The smallest batch that reaches the target in a layout is the one that
needs least memory; so if that one does not fit, none does.

Ties are broken by the smaller batch, then fewer pipeline stages, fewer attention-DP ranks, less tensor parallelism, and less
expert parallelism: what is simpler to run comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.memory import MemoryPlan, largest
from planner.parallel import DEGREES, SINGLE_CHIP, Layout, legal_layouts
from planner.solve.critical import first_batch, is_reached, saturation
from planner.solve.crossing import LARGEST_BATCH
from planner.solve.question import Question
from planner.solve.target import ComputeBound, Target
from planner.units import GIGA, TRILLION

DEFAULT_MAX_CHIPS = 64
"""Chips looked at where no limit is given."""


LARGEST_HELD = TRILLION
"""Batches above this are not looked at: a model that caches nothing has no largest one [sequences]."""

Miss = tuple[Question, float]
"""A layout that holds the model but does not reach the target, with how close all its chips come, at the largest batch they hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipsAnswer:
    """How many chips a question takes.

    Attributes
    ----------
    minimum_to_fit : int or None
        Chips whose memory holds the weights and one sequence for each rank; None where no number up to the limit does.
    minimum_compute_bound : int or None
        Chips that reach the target at a batch whose KV cache fits, the network counted.
    layout : Layout or None
        The layout for the latter; for the former where there is no latter.
    batch : int or None
        The smallest batch that reaches the target in it.
    largest_batch : int or None
        The largest batch that fits in it.
    limited_by : str
        What decides: `weights`, `kv_cache`, `memory_bandwidth`, `network`, `links`, or `unknown`; empty where one chip is enough.
    reason : str
        The same in words, with numbers.
    """

    minimum_to_fit: int | None
    minimum_compute_bound: int | None
    layout: Layout | None
    batch: int | None
    largest_batch: int | None
    limited_by: str
    reason: str


def _simplicity(layout: Layout) -> tuple[int, int, int, int]:
    return layout.pp, layout.attention_dp, layout.tp, layout.ep


def layouts_of(question: Question, chips: int) -> Iterator[Question]:
    """Yield the question over every legal layout of a number of chips, the simplest first."""
    found = legal_layouts(question.model, question.hardware, chips, question.phase)
    for layout in sorted(found, key=_simplicity):
        yield question.but(layout=layout)


def solve_chips(question: Question, target: Target, max_chips: int = DEFAULT_MAX_CHIPS) -> ChipsAnswer:
    """Find the fewest chips that hold the model, and the fewest that reach the target.

    Parameters
    ----------
    question : Question
        What is asked; its layout is not looked at.
    target : Target
        What is to be reached.
    max_chips : int
        Chips at most.
    """
    holder: Question | None = None
    closest: Miss | None = None
    alone = question.but(layout=SINGLE_CHIP).at(1)
    is_rated = alone.compute_s is not None and alone.memory_s is not None
    for chips in range(1, max_chips + 1):
        best: tuple[int, Question] | None = None
        for candidate in layouts_of(question, chips):
            most = _most_that_fits(candidate)
            if most is None:
                continue
            holder = holder or candidate
            if is_reached(candidate, target, most):
                batch = first_batch(candidate, target) or 1
                best = (batch, candidate) if best is None or batch < best[0] else best
            elif best is None:
                closest = _closer(closest, candidate, most, target)
        if holder is not None and not is_rated:
            break  # what no layout has a rate for is not reached on any number of chips
        if best is not None and holder is not None:
            return _found(holder, best[1], best[0], closest, target)
    return _not_found(question, holder, closest, max_chips, target)


def _most_that_fits(question: Question) -> int | None:
    """Return the largest batch whose weights and KV cache fit; None where not every rank can have a sequence."""
    held, tokens, least = question.footprint(), question.tokens, question.least_batch
    if not held.fits(least, tokens):
        return None
    return max(least, min(largest(lambda batch: held.fits(batch, tokens)), LARGEST_HELD))


def _closer(closest: Miss | None, missing: Question, most: int, target: Target) -> Miss:
    """Return the miss that comes closer to the target at the largest batch that it holds."""
    ahead = float(target.excess(missing.at(most))) * missing.layout.chips
    return (missing, ahead) if closest is None or ahead > closest[1] else closest


def _found(holder: Question, winner: Question, batch: int, closest: Miss | None, target: Target) -> ChipsAnswer:
    limited_by, reason = "", ""
    if winner.layout.chips > 1:
        plan = holder.but(layout=SINGLE_CHIP).memory(1)
        limited_by, reason = "weights", f"on 1 chip the model does not fit: {_in_words(plan)}"
    if closest is not None:
        limited_by, reason = _why_missed(closest[0], target)
    return ChipsAnswer(
        minimum_to_fit=holder.layout.chips,
        minimum_compute_bound=winner.layout.chips,
        layout=winner.layout,
        batch=batch,
        largest_batch=winner.memory(batch).max_batch,
        limited_by=limited_by,
        reason=reason,
    )


def _in_words(plan: MemoryPlan) -> str:
    """Say what a chip would have to hold."""
    total = float(plan.total_bytes) / GIGA
    parts = (
        f"{float(plan.weights_bytes) / GIGA:,.1f} GB of weights and {float(plan.kv_bytes) / GIGA:,.1f} GB of KV cache"
    )
    if plan.capacity_bytes is None:
        return f"{parts}, and the chip has no fixed memory size"
    return f"{parts} make {total:,.1f} GB with what the engine needs, of {plan.capacity_bytes / GIGA:,.1f} GB"


def _why_missed(question: Question, target: Target) -> tuple[str, str]:
    """Say why a layout that holds the model does not reach the target."""
    layout = question.layout
    degrees = [f"{name} {getattr(layout, name)}" for name in DEGREES if getattr(layout, name) > 1]
    chips = f"on {layout.chips} chips ({', '.join(degrees)})" if degrees else "on 1 chip"
    batch = first_batch(question, target)
    if batch is not None:
        plan = question.memory(max(batch, question.least_batch))
        return "kv_cache", f"{chips} the smallest batch that is enough, {batch:,}, does not fit: {_in_words(plan)}"
    far = question.at(LARGEST_BATCH if target.grows else 1.0)
    if far.compute_s is None or far.memory_s is None or far.network_s is None:
        return "unknown", next(r.missing for r in far.ops if not r.is_rated)
    limited_by = "network" if float(far.network_s) > float(far.memory_s) else "memory_bandwidth"
    said = saturation(question, far) if isinstance(target, ComputeBound) else target.shortfall(far)
    return limited_by, f"{chips} {said}"


def _not_found(
    question: Question, holder: Question | None, closest: Miss | None, max_chips: int, target: Target
) -> ChipsAnswer:
    if closest is None or holder is None:
        plan = question.but(layout=SINGLE_CHIP).memory(1)
        limited_by, reason = "weights", f"the model does not fit: one chip would need {_in_words(plan)}"
    else:
        limited_by, reason = _why_missed(closest[0], target)
    return ChipsAnswer(
        minimum_to_fit=holder.layout.chips if holder else None,
        minimum_compute_bound=None,
        layout=holder.layout if holder else None,
        batch=None,
        largest_batch=holder.memory(holder.least_batch).max_batch if holder else None,
        limited_by=limited_by,
        reason=f"{reason} (up to {max_chips} chips)",
    )
