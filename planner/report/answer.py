"""The answer of a study in sentences: what limits the step, how long it takes, from which batch on it is compute-bound, what fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.op import Kind
from planner.report import solved, words
from planner.report.study import MOST_CHIPS, Choice, Study
from planner.report.tables import laid_out
from planner.roofline import BOUNDS
from planner.workload import Phase


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader should take away.

    Attributes
    ----------
    lead : str
        The answer in one sentence.
    points : tuple of str
        What it rests on, a sentence or two each.
    """

    lead: str
    points: tuple[str, ...]


def answer(study: Study) -> Answer:
    """Return the answer for the precision asked for, with a look at the others."""
    choice = study.asked
    if choice.point.lower_s is None:
        reasons = dict.fromkeys(r.missing for r in choice.point.ops if not r.is_rated)
        lead = f"No time can be given for {asked(study)}: {'; '.join(reasons) or 'the memory bandwidth is not known'}."
        return Answer(lead, tuple(filter(None, (_room(study), _chips(study), _others(study)))))
    points = (
        _layout(study),
        _bounds(choice),
        _operations(choice),
        _threshold(study),
        _others(study),
        _room(study),
        _chips(study),
    )
    return Answer(_lead(study), tuple(point for point in points if point))


def asked(study: Study) -> str:
    """Return what was asked in a phrase."""
    step = study.step
    sequences = words.counted(int(step.batch), "sequence")
    if step.phase is Phase.DECODE:
        return f"a decode step of {sequences} with {step.context:,} tokens of context in {study.asked.name}"
    context = f" after {step.context:,} tokens of context" if step.context else ""
    return f"a prefill of {words.counted(int(step.new_tokens), 'token')} in {sequences}{context} in {study.asked.name}"


def _lead(study: Study) -> str:
    point, subject = study.asked.point, asked(study)
    return (
        f"{subject[0].upper()}{subject[1:]} is {point.bound}-bound, takes at least {words.duration(point.lower_s)} "
        f"({words.number(point.tokens_per_s)} tokens/s at most), and is limited by {_limit(study.asked)}."
    )


def _limit(choice: Choice) -> str:
    """Return what the largest of the three times goes into."""
    point = choice.point
    if point.bound == "network":
        return "the links between chips"
    if point.bound == "memory":
        parts = {
            "reading weights": sum(float(r.weight_bytes) for r in point.ops),
            "reading and writing the KV cache": sum(float(r.kv_bytes) for r in point.ops),
            "moving activations": sum(float(r.activation_bytes) for r in point.ops),
        }
        name = max(parts, key=lambda part: parts[part])
        return f"{name}, {words.percent(parts[name], point.memory_bytes)} of the bytes it moves"
    times: dict[str, float] = {}
    for rating in point.ops:
        times[rating.op.name] = times.get(rating.op.name, 0.0) + float(rating.compute_s or 0.0)
    name = max(times, key=lambda op: times[op])
    return f"arithmetic, of which {name} takes {words.percent(times[name], point.compute_s)}"


def _bounds(choice: Choice) -> str:
    point = choice.point
    return (
        f"Operation by operation the step takes {words.duration(point.lower_s)} if each one moves bytes while it computes, and "
        f"{words.duration(point.upper_s)} if none does; not even operations that overlap each other get below "
        f"{words.duration(point.overlap_floor_s)}. All three are at datasheet rates, which no chip quite reaches: "
        "a measured step takes longer than the first."
    )


def _operations(choice: Choice) -> str:
    computing = [r for r in choice.point.ops if np.any(np.greater(r.flops, 0))]
    names = {bound: list(dict.fromkeys(r.op.name for r in computing if r.bound == bound)) for bound in BOUNDS}
    parts = [
        f"{words.listed(found)} {'are' if len(found) > 1 else 'is'} {bound}-bound"
        for bound, found in names.items()
        if found
    ]
    sentence = f"Of the operations that compute, {'; '.join(parts)}."
    rest = [r for r in choice.point.ops if r not in computing and r.op.kind is not Kind.COLLECTIVE]
    share = words.percent(sum(float(r.lower_s or 0.0) for r in rest), choice.point.lower_s)
    sentence += f" Norms, activation functions and look-ups only move data, for {share} of the time"
    sent = [r for r in choice.point.ops if r.cost is not None]
    if not sent:
        return f"{sentence}."
    waits = words.percent(sum(float(r.lower_s or 0.0) for r in sent), choice.point.lower_s)
    return f"{sentence}; collectives between chips take {waits}."


def _layout(study: Study) -> str:
    """Return how the step is laid out over chips; empty for one chip."""
    return "" if study.layout.is_single else f"Figures are for {laid_out(study)}; tokens/s are of the whole replica."


def _threshold(study: Study) -> str:
    choice = study.asked
    if choice.critical_batch is None:
        return f"As a whole the step is compute-bound at no batch, however large: {choice.solved.step.reason}."
    return f"As a whole the step is compute-bound {_from(choice)}{_reach(choice)}."


def _from(choice: Choice) -> str:
    """Return from which batch on, as the end of a sentence."""
    if not choice.is_known:
        return "unknown, for want of a rate"
    batch = choice.critical_batch
    if batch is None:
        return "never"
    return "at any batch" if batch == 1 else f"from a batch of {batch:,} on"


def _reach(choice: Choice) -> str:
    """Return whether the memory holds a batch that is compute-bound."""
    most, critical = choice.memory.max_batch, choice.critical_batch
    if most is None or critical is None or critical <= max(1, most):
        return ""
    return ", more than fit into memory" if most else ", but not even one sequence fits into memory"


def _others(study: Study) -> str:
    found = [f"{choice.name} {_from(choice)}" for choice in study.choices[1:]]
    return f"In other precisions the whole step is compute-bound: {'; '.join(found)}." if found else ""


def _chips(study: Study) -> str:
    """Return the fewest chips that hold the model and that are compute-bound in the precision asked for."""
    chips, name = study.asked.solved.chips, study.asked.name
    if chips.minimum_to_fit is None:
        return f"In {name} the model fits on no layout of up to {MOST_CHIPS} chips."
    holds = f"In {name} the model fits on {words.counted(chips.minimum_to_fit, 'chip')}"
    if not study.asked.is_known:
        return f"{holds}."
    if chips.minimum_compute_bound is None:
        return f"{holds}; no layout of up to {MOST_CHIPS} chips is compute-bound at a batch that fits."
    return (
        f"{holds}; the fewest that are compute-bound at a batch that fits are {chips.minimum_compute_bound} ({solved.layout(chips)})"
        f", from {chips.batch:,} sequences on."
    )


def _room(study: Study) -> str:
    plan, tokens = study.asked.memory, study.asked.question.tokens
    one = "the chip" if study.layout.is_single else "the fullest chip"
    held = (
        f"{words.scaled(plan.weights_bytes, 'B')} of weights and {words.scaled(plan.kv_bytes, 'B')} of KV cache make "
        f"{words.scaled(plan.total_bytes, 'B')} on {one}, with activations, buffers and what {study.engine.name} keeps free"
    )
    if plan.capacity_bytes is None:
        return f"{study.hardware.name} has no fixed memory size: what fits cannot be said. {held[0].upper()}{held[1:]}."
    verdict = f"{held}, of {words.scaled(plan.capacity_bytes, 'B')}"
    if plan.fits:
        return (
            f"It fits: {verdict}. At most {words.counted(plan.max_batch or 0, 'sequence')} of {tokens:,} tokens fit, or "
            f"sequences of {plan.max_context or 0:,} tokens at this batch."
        )
    wanted = f" What would fit: {', or '.join(plan.advice)}." if plan.advice else ""
    return f"It does not fit: {verdict}.{wanted}"
