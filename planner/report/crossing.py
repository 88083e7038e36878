"""The picture of the solver as tidy tables: intensity and attained share of peak over the batch, ridges, and what chips hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.memory import largest
from planner.numeric import Numeric
from planner.op import Kind, Matmul, Op
from planner.report import solved, words
from planner.report.frames import Row, item, rounded, tidy
from planner.roofline import Rating, total
from planner.solve import PrecisionAnswer, Question, layouts_of
from planner.step import COUNTED, StepRating

if TYPE_CHECKING:
    import pandas as pd

STEP = "whole step"
CLASSES = (STEP, "linear layers", "experts", "attention", "indexer", "state space", "LM head")
"""Classes of operations, in the order of a legend."""

KINDS = {Kind.ATTENTION: "attention", Kind.INDEXER: "indexer", Kind.STATE_SPACE: "state space"}

CHIPS = (1, 2, 4, 8)
"""Numbers of chips whose memory limit is shown."""

LEAST_LAST, MOST_LAST = 2**10, 2**19
"""The batch axis ends between these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables of the picture; see `planner.charts.crossing_charts`."""

    curves: pd.DataFrame
    ridges: pd.DataFrame
    limits: pd.DataFrame

    @property
    def named(self) -> dict[str, pd.DataFrame]:
        """The tables by name."""
        return {"curves": self.curves, "ridges": self.ridges, "limits": self.limits}


def class_of(op: Op) -> str:
    """Return the class that an operation which computes belongs to."""
    if not isinstance(op, Matmul):
        return KINDS[op.kind]
    if any(axis.name == "vocab" for axis in op.outer):
        return "LM head"
    return "experts" if op.copies.name == "experts" else "linear layers"


def tables(questions: Sequence[Question], answers: Sequence[PrecisionAnswer]) -> Tables:
    """Return the tables of the picture for questions that differ in their precision, with their answers."""
    limits = [row for question in questions for row in _limits(question)]
    critical = [op.critical_batch or 1 for answer in answers for op in answer.ops]
    critical += [answer.step.critical_batch or 1 for answer in answers]
    events = [*critical, *(row["batch"] for row in limits)]
    grid = _batches(2 * max(events, default=1))
    batches = sorted({*grid, *(event for event in critical if event < grid[-1])})  # lines bend where a regime begins
    curves = [row for question in questions for row in _curves(question, batches)]
    ridges = [row for question in questions for row in _ridges(question)]
    return Tables(
        curves=tidy(curves, ("precision", "operations", "batch", "arithmetic_intensity", "share_of_peak")),
        ridges=tidy(ridges, ("precision", "arithmetic_intensity", "text")),
        limits=tidy(
            [row for row in limits if row["batch"] <= batches[-1]], ("precision", "chips", "batch", "layout", "text")
        ),
    )


def _batches(last: int) -> list[int]:
    """Return powers of two and the steps half-way between."""
    end = max(LEAST_LAST, min(1 << (last - 1).bit_length(), MOST_LAST))
    powers = [1 << n for n in range(end.bit_length())]
    return sorted({*powers, *(3 * power // 2 for power in powers[1:-1])})


def _curves(question: Question, batches: Sequence[int]) -> Iterator[Row]:
    result = question.at(np.array(batches, dtype=float))
    classes: dict[str, list[Rating]] = {}
    for rating in result.ops:
        if rating.op.kind in COUNTED and np.any(np.greater(rating.flops, 0)):
            classes.setdefault(class_of(rating.op), []).append(rating)
    for name in CLASSES:
        figures = _of_step(result) if name == STEP else _of_class(classes.get(name, []))
        if figures is None:
            continue
        for index, batch in enumerate(batches):
            intensity, share = (rounded(item(value, index)) for value in figures)
            yield {
                "precision": question.precision.name,
                "operations": name,
                "batch": batch,
                "arithmetic_intensity": intensity,
                "share_of_peak": share,
            }


def _of_class(ratings: Sequence[Rating]) -> tuple[Numeric, Numeric] | None:
    """Return the intensity of operations together, and their time at peak as a share of their lower bound."""
    compute_s, lower_s = total([r.compute_s for r in ratings]), total([r.lower_s for r in ratings])
    if not ratings or compute_s is None or lower_s is None:
        return None
    return sum(r.flops for r in ratings) / sum(r.memory_bytes for r in ratings), compute_s / lower_s


def _of_step(result: StepRating) -> tuple[Numeric, Numeric] | None:
    if result.compute_s is None or result.lower_s is None:
        return None
    share = result.compute_s / result.lower_s * (1 - result.flow.bubble)
    return result.flops() / result.memory_bytes, share


def _ridges(question: Question) -> Iterator[Row]:
    """Yield the critical intensity of each arithmetic; formats with one peak share a line."""
    ridges: dict[float, dict[str, None]] = {}
    for rating in question.at(1).ops:
        if rating.op.kind in COUNTED and rating.flops and rating.critical_intensity is not None:
            ridges.setdefault(rating.critical_intensity, {})[rating.rate.used] = None
    for ridge, formats in sorted(ridges.items()):
        text = f"ridge of {', '.join(formats)}: {words.number(ridge)}"
        yield {"precision": question.precision.name, "arithmetic_intensity": rounded(ridge), "text": text}


def _limits(question: Question) -> Iterator[Row]:
    """Yield the largest batch that some numbers of chips hold, each in its simplest legal layout; none where the model does not fit."""
    for chips in CHIPS:
        laid_out = next(layouts_of(question, chips), None)
        most = 0 if laid_out is None else _most(laid_out)
        if laid_out is not None and most:
            yield {
                "precision": question.precision.name,
                "chips": chips,
                "batch": most,
                "layout": solved.degrees(laid_out.layout),
                "text": f"{chips} chip{'s' if chips > 1 else ''} hold{'' if chips > 1 else 's'} {most:,}",
            }


def _most(question: Question) -> int:
    held, tokens = question.footprint(), question.tokens
    return largest(lambda batch: held.fits(batch, tokens))
