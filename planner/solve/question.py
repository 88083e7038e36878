"""What the solver varies and what it holds fixed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from planner.engine import Engine
from planner.hardware import Hardware
from planner.memory import Footprint, MemoryPlan, footprint, memory_plan
from planner.model import Model
from planner.numeric import Numeric
from planner.parallel import SINGLE_CHIP, Layout
from planner.precision import Precision
from planner.step import StepRating, rate_step
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
    engine : Engine
        Whose memory rules say what fits.
    layout : Layout
        Over how many chips, and how.
    stage_index : int, optional
        The pipeline stage that is looked at; the slowest of each batch where not given.
    mask, logits, mla
        See `planner.workload.Step`.
    """

    model: Model
    hardware: Hardware
    precision: Precision
    phase: Phase
    context: int
    new_tokens: int
    engine: Engine
    layout: Layout = SINGLE_CHIP
    stage_index: int | None = None
    mask: Literal["causal", "full"] = "causal"
    logits: Literal["last", "all"] = "last"
    mla: Literal["auto", "absorbed", "expanded"] = "auto"

    def at(self, batch: Numeric, context: Numeric | None = None) -> StepRating:
        """Return the step with a batch, or with an array of them."""
        step = Step(
            phase=self.phase,
            batch=batch,
            new_tokens=self.new_tokens,
            context=self.context if context is None else context,
            mask=self.mask,
            logits=self.logits,
            mla=self.mla,
        )
        return rate_step(self.model, self.hardware, step, self.precision, self.layout, self.stage_index)

    def but(self, **changes: object) -> Question:
        """Return the same question with some of it changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def quantum(self) -> int:
        """Sequences that a layout deals out together: one for each attention-DP rank and, in decode, each stage."""
        stages = self.layout.pp if self.phase is Phase.DECODE else 1
        return self.layout.attention_dp * stages

    @property
    def tokens(self) -> int:
        """Tokens of a sequence after the step."""
        return self.context + self.new_tokens

    @property
    def least_batch(self) -> int:
        """The smallest batch that gives every attention-DP rank a sequence."""
        return self.layout.attention_dp

    def footprint(self) -> Footprint:
        """Return what the layout takes of each chip, whatever the batch."""
        capacity = self.hardware.memory.plannable_bytes
        return footprint(self.model, capacity, self.precision, self.layout, self.engine)

    def memory(self, batch: int) -> MemoryPlan:
        """Return what the memory of the fullest chip holds at a batch, and what would fit."""
        return memory_plan(
            self.model,
            self.hardware,
            self.precision,
            self.layout,
            batch=batch,
            context=self.tokens,
            engine=self.engine,
        )
