"""Answers of the solver in words: batches, layouts, and reasons that several precisions share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from planner.parallel import Layout
from planner.report import words
from planner.solve import ChipsAnswer, Lever, PrecisionAnswer, StepAnswer

DEGREES = {"tp": "tp", "pp": "pp", "ep": "ep", "attention_dp": "dp", "cp": "cp"}
"""What degrees are called where there is little room."""

LIMITS = {"kv_cache": "KV cache", "memory_bandwidth": "bandwidth"}
"""What limits, where the name in records is not a word."""

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def batch(value: int | None, *, is_known: bool = True) -> str:
    """Return from which batch on something is compute-bound, in a word.

    >>> batch(1), batch(1234), batch(None), batch(None, is_known=False)
    ('any', '1,234', 'never', '–')
    """
    if value is None:
        return "never" if is_known else words.NOTHING
    return "any" if value == 1 else f"{value:,}"


def is_known(step: StepAnswer) -> bool:
    """Whether the chip has the rates to say where a step turns compute-bound."""
    return step.saturated_intensity is not None


def context(step: StepAnswer) -> str:
    """Return up to which context some batch is compute-bound, in a word."""
    if step.max_context_compute_bound is not None:
        return f"{step.max_context_compute_bound:,}"
    if not is_known(step):
        return words.NOTHING
    return "any" if step.context_reason.startswith("compute-bound") else "none"


def layout(chips: ChipsAnswer) -> str:
    """Return the layout of the fewest chips that reach the target."""
    if chips.layout is None or chips.minimum_compute_bound is None:
        return words.NOTHING
    return degrees(chips.layout)


def degrees(laid_out: Layout) -> str:
    """Return the degrees of a layout that are more than one.

    >>> degrees(Layout(tp=4, attention_dp=2))
    'tp4 dp2'
    """
    found = (f"{short}{getattr(laid_out, name)}" for name, short in DEGREES.items() if getattr(laid_out, name) > 1)
    return " ".join(found) or "one chip"


def limited_by(chips: ChipsAnswer) -> str:
    """Return what decides on the number of chips."""
    return LIMITS.get(chips.limited_by, chips.limited_by) or words.NOTHING


def lever(found: Lever) -> str:
    """Return what a lever does."""
    if found.critical_batch is None:
        then = "never yet"
    else:
        then = "at any batch" if found.critical_batch == 1 else f"from a batch of {found.critical_batch:,}"
    return f"{found.name}: {then} ({found.share:.2f} of compute over memory or network)"


def reasons(answers: Sequence[PrecisionAnswer]) -> list[str]:
    """Return why there is no batch or no chip; one line for the precisions that differ in numbers only."""
    kinds = (_attention, _step, _chips)
    return [line for kind in kinds for line in merged((a.precision.name, kind(a)) for a in answers)]


def helps(answers: Sequence[PrecisionAnswer]) -> list[str]:
    """Return what would help most, likewise."""
    return list(merged((answer.precision.name, _help(answer)) for answer in answers))


def _attention(answer: PrecisionAnswer) -> str:
    found = next((op.reason for op in answer.ops if op.name == "attention" and op.critical_batch is None), "")
    return "" if found == answer.step.reason else found


def _step(answer: PrecisionAnswer) -> str:
    return answer.step.reason if answer.step.critical_batch is None else ""


def _chips(answer: PrecisionAnswer) -> str:
    reason = answer.chips.reason
    return "" if not reason or (_step(answer) and answer.step.reason in reason) else f"chips: {reason}"


def _help(answer: PrecisionAnswer) -> str:
    if not answer.levers or not is_known(answer.step) or answer.step.critical_batch == 1:
        return ""
    return f"what would help most is {lever(answer.levers[0])}"


def merged(said: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield one line for all sentences that are the same but for their numbers; numbers that differ stand side by side.

    >>> list(merged([("int8", "8 FLOP, critical is 591"), ("bf16", "8 FLOP, critical is 295"), ("fp32", "no rate")]))
    ['int8, bf16: 8 FLOP, critical is 591 | 295', 'fp32: no rate']
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for name, sentence in said:
        if sentence:
            alike.setdefault(_NUMBER.sub("#", sentence), []).append((name, sentence))
    for pairs in alike.values():
        numbers = [_NUMBER.findall(sentence) for _, sentence in pairs]
        together = iter(
            [
                " | ".join(dict.fromkeys(column) if len(set(column)) == 1 else column)
                for column in zip(*numbers, strict=True)
            ]
        )
        text = _NUMBER.sub(lambda _, values=together: next(values), pairs[0][1])  # type: ignore[misc]
        yield f"{', '.join(name for name, _ in pairs)}: {text}"
