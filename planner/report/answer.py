"""The answer of a study in sentences: what limits the step, how long it takes, from which batch on it is compute-bound, what fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.op import Kind
from planner.parallel import DEGREES, Layout
from planner.report import words
from planner.report.study import LAST_OF_ALL, Choice, Study, Threshold
from planner.roofline import BOUNDS, Rating
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
        return Answer(
            f"No time can be given for {asked(study)}: {choice.missing}.", tuple(filter(None, (_others(study),)))
        )
    points = (_bounds(choice), _operations(choice), _threshold(study), _others(study), _room(study))
    return Answer(_lead(study), tuple(point for point in points if point))


def asked(study: Study) -> str:
    """Return what was asked in a phrase."""
    step = study.step
    sequences = words.counted(int(step.batch), "sequence")
    if step.phase is Phase.DECODE:
        return (
            f"a decode step of {sequences} with {step.context:,} tokens of context in {study.asked.name}{_chips(study)}"
        )
    context = f" after {step.context:,} tokens of context" if step.context else ""
    tokens = words.counted(int(step.new_tokens), "token")
    return f"a prefill of {tokens} in {sequences}{context} in {study.asked.name}{_chips(study)}"


def _chips(study: Study) -> str:
    """Return over how many chips, as the end of a phrase; nothing for one."""
    return "" if study.layout.is_single else f" on {study.layout.chips} chips ({degrees(study.layout)})"


def degrees(layout: Layout) -> str:
    """Return the ways in which a replica is split, in words."""
    return ", ".join(f"{name} {getattr(layout, name)}" for name in DEGREES if getattr(layout, name) > 1) or "one chip"


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
    others = [r for r in choice.point.ops if not np.any(np.greater(r.flops, 0))]
    sent = [r for r in others if r.op.kind is Kind.COLLECTIVE]
    moved = [r for r in others if r.op.kind is not Kind.COLLECTIVE]
    sentence += f" Norms, activation functions and look-ups only move data, for {_share(moved, choice)} of the time."
    return sentence + (f" Exchanges between chips take {_share(sent, choice)}." if sent else "")


def _share(ratings: Sequence[Rating], choice: Choice) -> str:
    return words.percent(sum(float(r.lower_s or 0.0) for r in ratings), choice.point.lower_s)


def _threshold(study: Study) -> str:
    choice = study.asked
    if choice.threshold.is_never:
        return f"As a whole the step is compute-bound at no batch, however large: {_why_never(choice)}."
    return f"As a whole the step is compute-bound {_from(choice.threshold)}{_reach(study)}."


def _from(threshold: Threshold) -> str:
    """Return from which batch on, as the end of a sentence."""
    if threshold.is_never:
        return "never"
    if threshold.batch == 1:
        return "at any batch"
    return f"from a batch of {threshold.batch:,} on" if threshold.batch else f"only beyond a batch of {LAST_OF_ALL:,}"


def _reach(study: Study) -> str:
    """Return whether the memory holds a batch that is compute-bound."""
    batch, most = study.asked.threshold.batch, study.asked.memory.max_batch
    return (
        f", more than the {most:,} that fit" if batch is not None and most is not None and batch > max(most, 1) else ""
    )


def _why_never(choice: Choice) -> str:
    """Name the operation that keeps the step from becoming compute-bound: the one whose excess of memory time is the largest."""
    worst = max(choice.limit.ops, key=lambda r: float(r.lower_s or 0.0) - float(r.compute_s or 0.0))
    if float(worst.network_s or 0.0) >= float(worst.memory_s or 0.0):
        return f"{worst.op.name} waits for the links between chips"
    if not float(worst.flops):
        return f"{worst.op.name} moves more data than the rest computes"
    own = " reads a cache of its own for every sequence and" if worst.op.kind is Kind.ATTENTION else ""
    return (
        f"{worst.op.name}{own} stays at {words.number(worst.intensity)} FLOP/B, "
        f"below the {words.number(worst.critical_intensity)} at which {_arithmetic(worst)} arithmetic is the limit"
    )


def _arithmetic(rating: Rating) -> str:
    return rating.rate.used


def from_batch(threshold: Threshold) -> str:
    """Return from which batch on something is compute-bound, in a word."""
    if not threshold.is_known:
        return words.NOTHING
    if threshold.batch is not None:
        return f"{threshold.batch:,}"
    return "never" if threshold.is_never else f"> {LAST_OF_ALL:,}"


def _others(study: Study) -> str:
    found = [
        f"{choice.name} {_from(choice.threshold) if choice.threshold.is_known else 'unknown, for want of a rate'}"
        for choice in study.choices[1:]
    ]
    return f"In other precisions the whole step is compute-bound: {'; '.join(found)}." if found else ""


def _room(study: Study) -> str:
    plan, chip = study.asked.memory, study.hardware.name
    weights = words.scaled(study.asked.weight_bytes, "B")
    if plan.capacity_bytes is None:
        return f"{chip} has no fixed memory size: what fits cannot be said. The weights take {weights}."
    taken = f"{words.scaled(plan.total_bytes, 'B')} of {words.scaled(plan.capacity_bytes, 'B')}"
    if not plan.max_batch:
        return f"The weights alone take {weights}, and not even one sequence of this length fits."
    most = (
        f"a batch of {plan.max_batch:,} would be the largest"
        if plan.fits
        else f"at most a batch of {plan.max_batch:,} fits"
    )
    where = "The chip" if study.layout.is_single else "The fullest chip"
    return f"{where} holds {taken} under the memory rules of {plan.engine}; at this length {most}."
