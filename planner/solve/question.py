"""What the solver varies and what it holds fixed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.hardware import Hardware
from planner.model import Model
from planner.precision import Precision
from planner.step import StepRating, rate_step
from planner.units import Numeric
from planner.workload import Phase, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A model on a chip, in a precision and a phase, whose batch is to be found.

    Attributes
    ----------
    model, hardware, precision
        Descriptions.
    phase : Phase
        Prefill or decode.
    context, new_tokens : int
        Lengths of each sequence; see `planner.workload.Step`.
    """

    model: Model
    hardware: Hardware
    precision: Precision
    phase: Phase
    context: int
    new_tokens: int

    def at(self, batch: Numeric, context: Numeric | None = None) -> StepRating:
        """Return the step with a batch, or with an array of them."""
        step = Step(
            phase=self.phase,
            batch=batch,
            new_tokens=self.new_tokens,
            context=self.context if context is None else context,
        )
        return rate_step(self.model, self.hardware, step, self.precision)

    def but(self, **changes: object) -> Question:
        """Return the same question with some of it changed."""
        return replace(self, **changes)  # type: ignore[arg-type]
