"""Turns layers read one by one into the shortest description of the stack."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model import LayerGroup

MAX_PERIOD = 32
"""Longest pattern looked for."""

Run = tuple[int, int]
"""A kind of layer by number, and how many of it follow each other."""


def group_layers(layers: Sequence[LayerGroup]) -> tuple[LayerGroup, ...]:
    """Return groups that unfold into `layers`: runs of equal layers, or a pattern that repeats.

    The pattern is used where it gives fewer groups than the runs do.
    """
    kinds: dict[LayerGroup, int] = {}
    by_object: dict[int, int] = {}
    for layer in layers:
        # Equal layers are mostly one object: hashing a layer is slow, its identity is not.
        if id(layer) not in by_object:
            by_object[id(layer)] = kinds.setdefault(layer, len(kinds))
    found = tuple(kinds)
    sequence = [by_object[id(layer)] for layer in layers]
    runs, best = _runs(sequence), None
    least = len(runs)
    for period in range(2, min(MAX_PERIOD, len(sequence) // 2) + 1):
        repeats = _repeats(sequence, period)
        if repeats == 1:
            continue
        pattern, rest = _runs(sequence[:period]), _runs(sequence[repeats * period :])
        if len(pattern) + len(rest) < least:
            least, best = len(pattern) + len(rest), (repeats, pattern, rest)
    if best is None:
        return _groups(found, runs)
    repeats, pattern, rest = best
    return (LayerGroup(repeat=repeats, pattern=_groups(found, pattern)), *_groups(found, rest))


def _repeats(sequence: list[int], period: int) -> int:
    """Return how often the first `period` kinds follow each other from the start."""
    first, repeats = sequence[:period], 1
    while sequence[repeats * period : (repeats + 1) * period] == first:
        repeats += 1
    return repeats


def _runs(sequence: Sequence[int]) -> list[Run]:
    runs: list[Run] = []
    for kind in sequence:
        if runs and runs[-1][0] == kind:
            runs[-1] = (kind, runs[-1][1] + 1)
        else:
            runs.append((kind, 1))
    return runs


def _groups(kinds: Sequence[LayerGroup], runs: Sequence[Run]) -> tuple[LayerGroup, ...]:
    return tuple(kinds[kind].model_copy(update={"repeat": count}) for kind, count in runs)
