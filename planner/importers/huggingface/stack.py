"""Turns layers read one by one into the shortest description of the stack."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model import LayerGroup

MAX_PERIOD = 32
"""Longest pattern looked for."""


def group_layers(layers: Sequence[LayerGroup]) -> tuple[LayerGroup, ...]:
    """Return groups that unfold into `layers`: runs of equal layers, or a pattern that repeats.

    The pattern is used where it gives fewer groups than the runs do.
    """
    runs = _runs(layers)
    best = runs
    for period in range(2, min(MAX_PERIOD, len(layers) // 2) + 1):
        repeats = 1
        while layers[repeats * period : (repeats + 1) * period] == layers[:period]:
            repeats += 1
        rest = _runs(layers[repeats * period :])
        pattern = _runs(layers[:period])
        if repeats > 1 and len(pattern) + len(rest) < sum(_size(group) for group in best):
            best = (LayerGroup(repeat=repeats, pattern=pattern), *rest)
    return best


def _size(group: LayerGroup) -> int:
    return 1 if group.pattern is None else len(group.pattern)


def _runs(layers: Sequence[LayerGroup]) -> tuple[LayerGroup, ...]:
    runs: list[tuple[LayerGroup, int]] = []
    for layer in layers:
        if runs and runs[-1][0] == layer:
            runs[-1] = (layer, runs[-1][1] + 1)
        else:
            runs.append((layer, 1))
    return tuple(layer.model_copy(update={"repeat": count}) for layer, count in runs)
