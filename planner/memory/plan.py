"""Whether a batch fits, how much more would, and what would make it fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from planner.engine import Engine
from planner.errors import InputError
from planner.hardware import Hardware
from planner.memory.capacity import kv_blocks
from planner.memory.footprint import Footprint, Parts, StageBytes, footprint
from planner.model import Model
from planner.numeric import Numeric, maximum
from planner.parallel import Layout, check_layout, divide_up
from planner.precision import Precision
from planner.units import FORMATS, LARGEST_COUNT

MANY_CHIPS = 1000
"""Advice stops at this many chips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Memory of the fullest chip of a replica.

    Attributes
    ----------
    weights_bytes, kv_bytes, activation_bytes, communication_bytes, reserve_bytes : Numeric
        The parts of `total_bytes`: weights, KV cache in whole pages, the peak of activations, buffers of collectives, and what the
        engine leaves free or the runtime takes [B].
    total_bytes : Numeric
        Their sum [B].
    capacity_bytes : float or None
        Memory of a chip; None where it is not fixed [B].
    fits : bool, array of bool or None
        Whether the total is within the capacity; None where that is not known.
    stage : int
        The pipeline stage of that chip, from 1.
    kv_bytes_per_sequence : Numeric
        KV cache of one sequence on that chip [B].
    kv_blocks : Numeric or None
        Pages that fit into what the other parts leave.
    max_batch, max_context : int or None
        Largest batch at this context, and context at this batch, that fit; 0 where none does; None for arrays, or where the
        capacity is not known.
    engine : str
        Whose rules.
    advice : tuple of str
        What would make it fit; empty where it does.
    """

    weights_bytes: Numeric
    kv_bytes: Numeric
    activation_bytes: Numeric
    communication_bytes: Numeric
    reserve_bytes: Numeric
    total_bytes: Numeric
    capacity_bytes: float | None
    fits: Any
    stage: int
    kv_bytes_per_sequence: Numeric
    kv_blocks: Numeric | None
    max_batch: int | None
    max_context: int | None
    engine: str
    advice: tuple[str, ...]


def largest(fits: Callable[[int], bool]) -> int:
    """Return the largest whole number up to `LARGEST_COUNT` that fits, where every smaller one does; 0 where 1 does not.

    >>> largest(lambda n: n * n <= 50)
    7
    """
    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        if high >= LARGEST_COUNT:
            return LARGEST_COUNT
        low, high = high, min(2 * high, LARGEST_COUNT)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _wider(layout: Layout) -> Iterator[Layout]:
    """Yield layouts on more and more chips: tensor parallelism first, then pipeline stages."""
    tp = layout.tp
    while tp * layout.pp <= MANY_CHIPS:
        pp = layout.pp
        while tp * pp <= MANY_CHIPS:
            ep = layout.ep if tp == layout.tp else min(layout.ep, tp * layout.attention_dp * layout.cp)
            yield replace(layout, tp=tp, pp=pp, ep=ep)
            pp *= 2
        tp *= 2


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked of `memory_plan`, for one batch and context."""

    model: Model
    hardware: Hardware
    precision: Precision
    engine: Engine
    batch: int
    tokens: int

    def holds(self, layout: Layout, precision: Precision) -> bool:
        """Whether it fits in another layout or precision that the links allow."""
        try:
            check_layout(self.model, self.hardware, layout)
        except InputError:
            return False
        foot = footprint(self.model, self.hardware.memory.plannable_bytes, precision, layout, self.engine)
        return foot.fits(self.batch, self.tokens)


def _advice(question: _Question, foot: Footprint, max_batch: int, max_context: int) -> Iterator[str]:
    """Yield what would make it fit, each on its own."""
    if max_batch:
        yield f"a batch of at most {max_batch}"
    if max_context:
        yield f"a context of at most {max_context} tokens"
    layout, precision = foot.layout, question.precision
    narrow = replace(precision, kv=FORMATS["fp8"])
    if precision.kv.bits > narrow.kv.bits and question.holds(layout, narrow):
        yield "an fp8 KV cache"
    larger = (wide for wide in sorted(_wider(layout), key=_size) if wide.chips > layout.chips)
    enough = next((wide for wide in larger if question.holds(wide, precision)), None)
    if enough is not None:
        yield f"{enough.chips} chips (tp {enough.tp}, pp {enough.pp})"
    if not foot.fits(1, 1):
        yield "narrower weights"


def _size(layout: Layout) -> tuple[int, int]:
    """Return what layouts are sorted by: chips, then stages."""
    return layout.chips, layout.pp


PARTS = ("weights_bytes", "kv_bytes", "activation_bytes", "communication_bytes", "reserve_bytes")
"""The parts that sum to the total."""


def memory_plan(
    model: Model,
    hardware: Hardware,
    precision: Precision,
    layout: Layout,
    *,
    batch: Numeric,
    context: Numeric,
    engine: Engine,
) -> MemoryPlan:
    """Return what the fullest chip of a replica holds, and whether that fits.

    Parameters
    ----------
    model, hardware : Model, Hardware
        Descriptions.
    precision : Precision
        The policy.
    layout : Layout
        The cuts.
    batch : Numeric
        Sequences of the whole replica.
    context : Numeric
        Tokens of each, those that the step adds included.
    engine : Engine
        The rules of the engine.

    Returns
    -------
    MemoryPlan
        For arrays of batch and context that broadcast, without the largest of either.
    """
    foot = footprint(model, hardware.memory.plannable_bytes, precision, layout, engine)
    stage, parts = foot.fullest(batch, context)
    page = int(engine.page_tokens.value)
    verdict = _UNKNOWN
    if foot.capacity_bytes is not None:
        verdict = _Verdict(fits=parts.total_bytes <= foot.capacity_bytes)
        if isinstance(batch, int | float) and isinstance(context, int | float):
            sequences, tokens = math.ceil(batch), max(math.ceil(context), 1)
            verdict = _verdict(_Question(model, hardware, precision, engine, sequences, tokens), foot)
    return MemoryPlan(
        **{name: getattr(parts, name) for name in PARTS},
        total_bytes=parts.total_bytes,
        capacity_bytes=foot.capacity_bytes,
        stage=stage.stage.index + 1,
        kv_bytes_per_sequence=stage.sequence_bytes(divide_up(context, layout.cp), page),
        kv_blocks=_blocks(foot, stage, parts, page),
        engine=engine.name,
        fits=verdict.fits,
        max_batch=verdict.max_batch,
        max_context=verdict.max_context,
        advice=verdict.advice,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """What fits; nothing where that cannot be said."""

    fits: Any = None
    max_batch: int | None = None
    max_context: int | None = None
    advice: tuple[str, ...] = ()


_UNKNOWN = _Verdict()


def _verdict(question: _Question, foot: Footprint) -> _Verdict:
    """Return what fits of one batch and context."""
    fits = foot.fits(question.batch, question.tokens)
    max_batch = largest(lambda n: foot.fits(n, question.tokens))
    max_context = largest(lambda n: foot.fits(question.batch, n))
    advice = () if fits else tuple(_advice(question, foot, max_batch, max_context))
    return _Verdict(fits=fits, max_batch=max_batch, max_context=max_context, advice=advice)


def _blocks(foot: Footprint, stage: StageBytes, parts: Parts, page: int) -> Numeric | None:
    """Return the pages that fit into what the other parts leave."""
    per_token = sum(layers.per_token for layers in stage.cached)
    if foot.capacity_bytes is None or not per_token:
        return None
    free = foot.capacity_bytes - (parts.total_bytes - parts.kv_bytes)
    return kv_blocks(maximum(free, 0.0), per_token, page)
