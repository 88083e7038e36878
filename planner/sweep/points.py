"""The points of a sweep, evaluated in blocks that fit a processor's cache.

Batches and contexts of a block are a column and a row that broadcast against each other: what depends on the batch alone (every
matmul) is computed once for each batch, and only what depends on both is computed for each point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.engine import Engine
from planner.errors import InputError
from planner.hardware import Hardware
from planner.memory import footprint
from planner.model import Model
from planner.numeric import Numeric, maximum
from planner.parallel import Layout, check_layout
from planner.precision import Precision
from planner.roofline import BOUNDS
from planner.step import COUNTED, StepRating, rate_step
from planner.workload import Phase, Step

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BLOCK_POINTS = 1 << 16
"""Points of a block: its arrays of 8-byte numbers stay within a level-2 cache of a few MB."""

DEGREES = ("tp", "pp", "ep", "attention_dp", "cp")

COLUMNS = (
    "model",
    "hardware",
    "precision",
    "kv_precision",
    "phase",
    *DEGREES,
    "chips",
    "batch",
    "new_tokens",
    "context",
    "flops",
    "bytes",
    "network_bytes",
    "compute_s",
    "memory_s",
    "network_s",
    "lower_s",
    "upper_s",
    "overlap_floor_s",
    "tokens_per_s",
    "bound",
    "chip_memory_bytes",
    "fits",
)
"""Columns of the result. Figures are for one chip of the slowest stage, `tokens_per_s` for the replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One choice of everything but batch and context.

    Attributes
    ----------
    model_name, hardware_name : str
        As the user named them.
    model, hardware, precision, layout
        What they stand for.
    """

    model_name: str
    hardware_name: str
    model: Model
    hardware: Hardware
    precision: Precision
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All points that are asked for.

    Attributes
    ----------
    cases : tuple of Case
        The discrete choices.
    phase : Phase
        Prefill or decode.
    batches, contexts : tuple of int
        The grid of each case.
    new_tokens : int
        Tokens that each sequence adds.
    engine : Engine
        Whose memory rules say what fits.
    """

    cases: tuple[Case, ...]
    phase: Phase
    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    new_tokens: int
    engine: Engine

    @property
    def points(self) -> int:
        """Number of points."""
        return len(self.cases) * len(self.batches) * len(self.contexts)

    def blocks(self, points: int = BLOCK_POINTS) -> Iterator[Block]:
        """Yield the points in order, in blocks of at most so many, each of one case and whole rows of contexts if they fit."""
        width = min(len(self.contexts), points)
        height = max(1, points // width)
        for case in self.cases:
            for top in range(0, len(self.batches), height):
                for left in range(0, len(self.contexts), width):
                    rows, columns = self.batches[top : top + height], self.contexts[left : left + width]
                    yield Block(sweep=self, case=case, batches=rows, contexts=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A rectangle of the grid of one case."""

    sweep: Sweep
    case: Case
    batches: Sequence[int]
    contexts: Sequence[int]

    @property
    def points(self) -> int:
        """Number of points."""
        return len(self.batches) * len(self.contexts)

    def frame(self) -> pd.DataFrame:
        """Return the points as a table with the columns `COLUMNS`; text is categorical, so that it costs a byte a row."""
        import pandas as pd  # only where tables leave the package

        figures, size = evaluate(self), self.points
        layout = self.case.layout
        constant: dict[str, Any] = {
            "model": self.case.model_name,
            "hardware": self.case.hardware_name,
            "precision": self.case.precision.name,
            "kv_precision": self.case.precision.kv.name,
            "phase": str(self.sweep.phase),
        }
        whole = {name: getattr(layout, name) for name in DEGREES} | {
            "chips": layout.chips,
            "new_tokens": self.sweep.new_tokens,
        }
        columns: dict[str, Any] = {name: _categorical(np.zeros(size), [text]) for name, text in constant.items()}
        columns |= {name: np.full(size, value, dtype=np.int32) for name, value in whole.items()}
        columns["batch"] = np.repeat(np.asarray(self.batches, dtype=np.int64), len(self.contexts))
        columns["context"] = np.tile(np.asarray(self.contexts, dtype=np.int64), len(self.batches))
        columns["bound"] = _categorical(figures.pop("bound"), list(BOUNDS))
        columns |= figures
        return pd.DataFrame({name: columns[name] for name in COLUMNS})


def _categorical(codes: NDArray[Any], categories: list[str]) -> pd.Categorical[str]:
    import pandas as pd  # only where tables leave the package

    return pd.Categorical.from_codes(codes.astype(np.int8), categories=pd.Index(categories))


def evaluate(block: Block) -> dict[str, NDArray[Any]]:
    """Return the figures of a block's points, flat, batch by batch.

    Returns
    -------
    dict
        The numeric columns of `COLUMNS`; `bound` as an index into `planner.roofline.BOUNDS`, -1 where times are not known.
    """
    sweep, case = block.sweep, block.case
    step = Step(
        phase=sweep.phase,
        batch=np.asarray(block.batches, dtype=float)[:, np.newaxis],
        new_tokens=sweep.new_tokens,
        context=np.asarray(block.contexts, dtype=float)[np.newaxis, :],
    )
    shape = (len(block.batches), len(block.contexts))
    result = rate_step(case.model, case.hardware, step, case.precision, case.layout)
    figures = {name: _full(value, shape) for name, value in _sums(result).items()}
    compute, memory, network = (figures[name] for name in ("compute_s", "memory_s", "network_s"))
    floor = np.maximum(np.maximum(compute, memory), network)
    bound = np.where(compute >= floor, 0, np.where(memory >= floor, 1, 2))
    unknown = np.isnan(floor)
    figures["overlap_floor_s"] = floor
    figures["tokens_per_s"] = step.tokens * (1 - result.flow.bubble) / figures["lower_s"]
    held = footprint(case.model, case.hardware.memory.plannable_bytes, case.precision, case.layout, sweep.engine)
    tokens = step.context + sweep.new_tokens
    figures["chip_memory_bytes"] = _full(held.fullest(step.batch, tokens)[1].total_bytes, shape)
    flat: dict[str, NDArray[Any]] = {name: np.broadcast_to(value, shape).ravel() for name, value in figures.items()}
    flat["bound"] = np.where(unknown, -1, bound).ravel()
    flat["fits"] = flat["chip_memory_bytes"] <= (held.capacity_bytes or 0.0)
    return flat


def _full(value: Numeric | None, shape: tuple[int, int]) -> Floats:
    return np.broadcast_to(np.nan if value is None else np.asarray(value, dtype=float), shape)


def _sums(result: StepRating) -> Mapping[str, Numeric | None]:
    """Return the sums over a step's operations, those of equal shape first: few of them have a value for each point."""
    ops = result.ops
    counted = [rating for rating in ops if rating.op.kind in COUNTED]
    return {
        "flops": _sum(rating.flops for rating in counted),
        "bytes": _sum(rating.memory_bytes for rating in ops),
        "network_bytes": _sum(rating.network_bytes for rating in ops),
        "compute_s": _sum(rating.compute_s for rating in ops),
        "memory_s": _sum(rating.memory_s for rating in ops),
        "network_s": _sum(rating.network_s for rating in ops),
        "lower_s": _sum(_lower(rating.compute_s, rating.memory_s, rating.network_s) for rating in ops),
        "upper_s": _sum(rating.upper_s for rating in ops),
    }


def _lower(*times: Numeric | None) -> Numeric | None:
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return None
    compute, memory, network = known
    slower = maximum(compute, memory)
    return slower if isinstance(network, float) and network == 0 else maximum(slower, network)


def _sum(values: Iterable[Numeric | None]) -> Numeric | None:
    by_shape: dict[tuple[int, ...], Numeric] = {}
    for value in values:
        if value is None:
            return None
        shape = np.shape(value)
        by_shape[shape] = by_shape[shape] + value if shape in by_shape else value
    return sum(by_shape.values())


def legal_cases(cases: Iterable[Case], phase: Phase) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the cases that engines can run, and why each of the others is left out."""
    legal, reasons = [], []
    for case in cases:
        try:
            check_layout(case.model, case.hardware, case.layout, phase)
        except InputError as error:
            reasons.append(str(error))
        else:
            legal.append(case)
    return tuple(legal), tuple(dict.fromkeys(reasons))
