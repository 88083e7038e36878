"""What a report shows, in numbers: a step in several precisions, over a grid of batches, what fits, and where it turns compute-bound."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from planner.engine import Engine
from planner.hardware import Hardware
from planner.memory import CacheBytes, Footprint, MemoryPlan, Parts, cache_bytes
from planner.model import Model
from planner.op import Op
from planner.parallel import SINGLE_CHIP, Layout
from planner.precision import Precision
from planner.solve import ComputeBound, OpAnswer, PrecisionAnswer, Question, answer_in_full
from planner.step import StepRating, rate_step
from planner.workload import Step

MOST_CHIPS = 16
"""A report looks for layouts on at most this many chips; `planner solve --max-chips` looks further."""

LEAST_SHOWN = 64
"""The grid of batches to look at reaches at least this far."""

LAST_SHOWN = 2**16
"""It reaches past every batch at which something happens, but no further than this, unless a larger one is asked for."""

OpKey: TypeAlias = tuple[str, str]
"""Group and name of an operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One precision policy, looked at from all sides.

    Attributes
    ----------
    precision : Precision
        The policy.
    question : Question
        What is asked of the solver, in the layout of the step.
    point : StepRating
        The step as asked.
    sweep : StepRating
        The same stage of the step over the grid of batches, as arrays.
    solved : PrecisionAnswer
        Where operations and step turn compute-bound, and on how many chips.
    footprint : Footprint
        What the layout takes of each chip.
    memory : MemoryPlan
        What the fullest chip holds at the batch asked for.
    cache : CacheBytes
        What the whole model keeps of a sequence, by the way it grows.
    """

    precision: Precision
    question: Question
    point: StepRating
    sweep: StepRating
    solved: PrecisionAnswer
    footprint: Footprint
    memory: MemoryPlan
    cache: CacheBytes

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.precision.name

    @property
    def is_known(self) -> bool:
        """Whether the chip has rates for all of it."""
        return self.point.lower_s is not None

    @property
    def critical(self) -> Mapping[OpKey, OpAnswer]:
        """Where each operation turns compute-bound."""
        return {(op.group, op.name): op for op in self.solved.ops}

    @property
    def critical_batch(self) -> int | None:
        """From which batch on the step is compute-bound; None where there is none, or that is not known."""
        return self.solved.step.critical_batch

    def parts(self, batch: int) -> Parts:
        """Return what the fullest chip holds at a batch."""
        return self.footprint.fullest(batch, self.question.tokens)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything a report shows.

    Attributes
    ----------
    model, hardware, step, layout, engine
        What was asked.
    batches : tuple of int
        The grid of batches that can be looked at; the batch asked for is among them.
    choices : tuple of Choice
        Precision policies; the one asked for is the first.
    """

    model: Model
    hardware: Hardware
    step: Step
    layout: Layout
    engine: Engine
    batches: tuple[int, ...]
    choices: tuple[Choice, ...]

    @property
    def asked(self) -> Choice:
        """The policy asked for."""
        return self.choices[0]

    @property
    def room(self) -> float | None:
        """Bytes of memory of a chip to plan on [B]."""
        return self.hardware.memory.plannable_bytes

    @property
    def has_network(self) -> bool:
        """Whether chips exchange anything."""
        return any(rating.cost is not None for choice in self.choices for rating in choice.point.ops)


def key(op: Op) -> OpKey:
    """Return what identifies an operation within a step."""
    return op.group, op.name


def study(
    model: Model,
    hardware: Hardware,
    step: Step,
    precisions: Sequence[Precision],
    *,
    engine: Engine,
    layout: Layout = SINGLE_CHIP,
) -> Study:
    """Rate a step in every policy, at the batch asked for and over a grid of batches.

    Parameters
    ----------
    model, hardware : Model, Hardware
        Descriptions.
    step : Step
        What is asked; plain numbers.
    precisions : sequence of Precision
        The policy asked for, and those to compare with. A name that stands twice is taken once.
    engine : Engine
        Whose rules say what fits.
    layout : Layout, optional
        How the replica is laid out over chips; one chip where not given.

    Raises
    ------
    InputError
        If engines do not run the layout, or the chip's links do not allow it.
    """
    names = [precision.name for precision in precisions]
    policies = [precision for index, precision in enumerate(precisions) if precision.name not in names[:index]]
    asked = [_question(model, hardware, step, precision, engine=engine, layout=layout) for precision in policies]
    points = [rate_step(model, hardware, step, question.precision, layout) for question in asked]
    # Operations are compared within one stage, that of the step as asked, whichever is the slowest at other batches.
    asked = [q.but(stage_index=p.stage.index) for q, p in zip(asked, points, strict=True)]
    solved = [answer_in_full(question, ComputeBound(), MOST_CHIPS) for question in asked]
    plans = [question.memory(int(step.batch)) for question in asked]
    batches = _grid(int(step.batch), [event for pair in zip(solved, plans, strict=True) for event in _events(*pair)])
    choices = tuple(
        Choice(
            precision=question.precision,
            question=question,
            point=point,
            sweep=question.at(np.multiply(batches, 1.0)),
            solved=answer,
            footprint=question.footprint(),
            memory=plan,
            cache=cache_bytes(model, question.precision.kv),
        )
        for question, point, answer, plan in zip(asked, points, solved, plans, strict=True)
    )
    return Study(
        model=model, hardware=hardware, step=step, layout=layout, engine=engine, batches=batches, choices=choices
    )


def _question(model: Model, hardware: Hardware, step: Step, precision: Precision, **given: Any) -> Question:
    return Question(
        model=model,
        hardware=hardware,
        precision=precision,
        phase=step.phase,
        context=int(step.context),
        new_tokens=int(step.new_tokens),
        mask=step.mask,
        logits=step.logits,
        mla=step.mla,
        **given,
    )


def _events(answer: PrecisionAnswer, plan: MemoryPlan) -> tuple[int, ...]:
    """Return the batches at which something happens."""
    found = (*(op.critical_batch for op in answer.ops), answer.step.critical_batch, plan.max_batch)
    return tuple(batch for batch in found if batch)


def _grid(asked: int, events: Sequence[int]) -> tuple[int, ...]:
    """Return batches to look at: powers of two and the steps half-way between, past every batch at which something happens."""
    last = max(LEAST_SHOWN, *(min(2 * event, LAST_SHOWN) for event in (asked, *events)), asked)
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
