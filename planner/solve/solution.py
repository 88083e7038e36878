"""All answers to a question, for several precisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.engine import Engine
from planner.hardware import Hardware
from planner.model import Model
from planner.precision import Precision
from planner.roofline import critical_intensity
from planner.solve.chips import DEFAULT_MAX_CHIPS, ChipsAnswer, solve_chips
from planner.solve.critical import OpAnswer, StepAnswer, solve_ops, solve_step
from planner.solve.levers import Lever, pull_levers
from planner.solve.question import Question
from planner.solve.target import ComputeBound, Target
from planner.workload import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionAnswer:
    """The answers in one precision.

    Attributes
    ----------
    precision : Precision
        The policy.
    critical_intensity : float or None
        The ridge for the arithmetic of linear layers [FLOP/B].
    ops : tuple of OpAnswer
        Every operation, in the layout of the question: one chip for `solve`.
    step : StepAnswer
        The step, likewise.
    chips : ChipsAnswer
        The fewest chips.
    levers : tuple of Lever
        What would help most, first.
    """

    precision: Precision
    critical_intensity: float | None
    ops: tuple[OpAnswer, ...]
    step: StepAnswer
    chips: ChipsAnswer
    levers: tuple[Lever, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """The answers to a question.

    Attributes
    ----------
    model, hardware, engine, phase, context, new_tokens, target, max_chips
        What was asked.
    answers : tuple of PrecisionAnswer
        One for each precision.
    """

    model: Model
    hardware: Hardware
    engine: Engine
    phase: Phase
    context: int
    new_tokens: int
    target: Target
    max_chips: int
    answers: tuple[PrecisionAnswer, ...]

    @property
    def is_feasible(self) -> bool:
        """Whether the model fits on the chips allowed, in any of the precisions."""
        return any(answer.chips.minimum_to_fit is not None for answer in self.answers)

    @property
    def recalled(self) -> tuple[str, ...]:
        """The figures of the chip that the answers rest on and that were recalled, not read again."""
        asked = {arithmetic for answer in self.answers for arithmetic in answer.precision.arithmetics}
        return self.hardware.recalled({self.hardware.rate(name).used for name in asked}, linked=self.max_chips > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What is asked, but for the precision.

    Attributes
    ----------
    model, hardware, engine
        Descriptions.
    phase, context, new_tokens
        See `planner.workload.Step`.
    target : Target
        What is to be reached.
    max_chips : int
        Chips at most.
    """

    model: Model
    hardware: Hardware
    engine: Engine
    phase: Phase = Phase.DECODE
    context: int
    new_tokens: int = 1
    target: Target = ComputeBound()
    max_chips: int = DEFAULT_MAX_CHIPS

    def question(self, precision: Precision) -> Question:
        """Return the question in one precision, on one chip."""
        return Question(
            model=self.model,
            hardware=self.hardware,
            precision=precision,
            phase=self.phase,
            context=self.context,
            new_tokens=self.new_tokens,
            engine=self.engine,
        )


def solve(ask: Ask, precisions: Sequence[Precision]) -> Solution:
    """Answer a question in several precisions."""
    return Solution(
        model=ask.model,
        hardware=ask.hardware,
        engine=ask.engine,
        phase=ask.phase,
        context=ask.context,
        new_tokens=ask.new_tokens,
        target=ask.target,
        max_chips=ask.max_chips,
        answers=tuple(_answer(ask, precision) for precision in precisions),
    )


def _answer(ask: Ask, precision: Precision) -> PrecisionAnswer:
    return answer_in_full(ask.question(precision), ask.target, ask.max_chips)


def answer_in_full(question: Question, target: Target, max_chips: int) -> PrecisionAnswer:
    """Answer a question in one precision: operations, step and levers in its layout, and the fewest chips in any.

    Parameters
    ----------
    question : Question
        What is asked.
    target : Target
        What is to be reached.
    max_chips : int
        Chips at most.
    """
    peak = question.hardware.rate(question.precision.linear.arithmetic).flops_per_s
    bandwidth = question.hardware.memory.bandwidth.value
    whole = question.but(stage_index=None)
    return PrecisionAnswer(
        precision=question.precision,
        critical_intensity=critical_intensity(peak, bandwidth) if peak and bandwidth else None,
        ops=solve_ops(question),
        step=solve_step(whole, target),
        chips=solve_chips(whole, target, max_chips),
        levers=pull_levers(whole, target),
    )
