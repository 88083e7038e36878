"""Solutions as plain mappings, under the keys of the JSON interface."""

from __future__ import annotations

from typing import Any

from planner.records import layout_record
from planner.solve.chips import ChipsAnswer
from planner.solve.critical import OpAnswer, StepAnswer
from planner.solve.levers import Lever
from planner.solve.solution import PrecisionAnswer, Solution

Record = dict[str, Any]


def solution_record(solution: Solution) -> Record:
    """Return a whole solution."""
    return {
        "model": solution.model.name,
        "hardware": solution.hardware.name,
        "phase": str(solution.phase),
        "context": solution.context,
        "new_tokens": solution.new_tokens,
        "target": solution.target.text,
        "max_chips": solution.max_chips,
        "engine": solution.engine.name,
        "records": [_answer(answer) for answer in solution.answers],
        "unverified": list(solution.recalled),
        "provenance": "bound",
    }


def _answer(answer: PrecisionAnswer) -> Record:
    return {
        "precision": answer.precision.name,
        "critical_intensity": answer.critical_intensity,
        "ops": [_op(op) for op in answer.ops],
        "step": _step(answer.step),
        "chips": _chips(answer.chips),
        "levers": [_lever(lever) for lever in answer.levers],
    }


def _op(op: OpAnswer) -> Record:
    return {
        "name": op.name,
        "group": op.group,
        "critical_batch": op.critical_batch,
        "critical_tokens": op.critical_tokens,
        "reason": op.reason,
    }


def _step(step: StepAnswer) -> Record:
    return {
        "critical_batch": step.critical_batch,
        "max_context_compute_bound": step.max_context_compute_bound,
        "saturated_intensity": step.saturated_intensity,
        "needed_intensity": step.needed_intensity,
        "reason": step.reason,
        "context_reason": step.context_reason,
    }


def _chips(chips: ChipsAnswer) -> Record:
    return {
        "minimum_to_fit": chips.minimum_to_fit,
        "minimum_compute_bound": chips.minimum_compute_bound,
        "parallelism": None if chips.layout is None else layout_record(chips.layout),
        "batch": chips.batch,
        "largest_batch": chips.largest_batch,
        "limited_by": chips.limited_by or None,
        "reason": chips.reason,
    }


def _lever(lever: Lever) -> Record:
    return {"lever": lever.name, "critical_batch": lever.critical_batch, "compute_share": lever.share}
