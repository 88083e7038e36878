"""A study as tidy tables, a row for each mark of a chart. Units stand in `DataFrame.attrs`, so that charts label themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.collectives import reach
from planner.numeric import Numeric
from planner.op import Group
from planner.report import words
from planner.report.study import Choice, Study
from planner.roofline import BOUNDS, Rating, attainable

if TYPE_CHECKING:
    import pandas as pd

UNITS = {"arithmetic_intensity": "FLOP/B", "attainable_rate": "FLOP/s", "time_of_a_step": "s", "batch": "sequences"}
"""The unit of a column."""

LEAST_NAMED = 0.01
"""Points with a smaller share of the step's time have no label: they would hide those that matter."""

MOST_NAMED = 2
"""Names in a label; of more than these only the first is given, and how many there are beside it."""

NEAR = {"memory": 0.16, "network": 0.16, "compute": 0.4}
"""Decades within which two points share one label; on a flat roof, where labels hang side by side, they need more room."""

STEP = "whole step"
"""The name of the point that stands for all operations together."""

LINKED = "whole step, bytes through links"
"""The same over the bytes that go to other chips: where the roof of a link limits it."""

Row = dict[str, Any]


def tidy(rows: Iterable[Row], columns: tuple[str, ...]) -> pd.DataFrame:
    """Return rows as a table with the units of its columns."""
    import pandas as pd  # only where tables leave the package

    frame = pd.DataFrame(list(rows), columns=list(columns))
    frame.attrs["units"] = {name: UNITS[name] for name in columns if name in UNITS}
    return frame


def rounded(value: float, digits: int = 5) -> float:
    """Return a number to some significant digits, so that a page is small and the same on every machine.

    >>> rounded(123456.789)
    123460.0
    """
    return float(f"{value:.{digits}g}")


# ---- roofs -----------------------------------------------------------------------------------------------------------


def roof_labels(study: Study) -> dict[str, str]:
    """Return the label of the roof that each format's arithmetic is under; formats with one peak share one roof."""
    rates = {
        r.rate.used: r.rate.flops_per_s for c in study.choices for r in c.point.ops if np.any(np.greater(r.flops, 0))
    }
    peaks: dict[float, list[str]] = {}
    for used, rate in rates.items():
        if rate is not None and study.hardware.memory.bandwidth.value is not None:
            peaks.setdefault(rate, []).append(used)
    return {
        used: f"{', '.join(sorted(sharing))} {words.scaled(peak, 'FLOP/s')}"
        for peak, sharing in sorted(peaks.items())
        for used in sharing
    }


def roofs(study: Study, points: pd.DataFrame) -> pd.DataFrame:
    """Return the ends of every roof: the slope of the memory from the left to the highest ridge, then each peak from its ridge on."""
    labels, bandwidth = roof_labels(study), study.hardware.memory.bandwidth.value
    rated = [r.rate for c in study.choices for r in c.point.ops if r.rate.used in labels]
    peaks = sorted({(rate.flops_per_s, labels[rate.used]) for rate in rated if rate.flops_per_s})
    columns = ("roof", "limit", "end", "arithmetic_intensity", "attainable_rate")
    if not bandwidth or not peaks:
        return tidy([], columns)
    highest = peaks[-1][0] / bandwidth
    left = min(*points["arithmetic_intensity"], peaks[0][0] / bandwidth) / 2
    right = max(
        10 * highest, 8 * max(points["arithmetic_intensity"])
    )  # the names of the roofs stand right of the points
    top = peaks[-1][0]
    lines = [(words.scaled(bandwidth, "B/s"), "memory", (left, highest), top, bandwidth)]
    lines += [(label, "compute", (peak / bandwidth, right), peak, bandwidth) for peak, label in peaks]
    lines += [
        (f"{words.scaled(link, 'B/s')} {name}", "network", (left * bandwidth / link, min(top / link, right)), top, link)
        for name, link in _links(study)
    ]
    rows = [
        {
            "roof": label,
            "limit": limit,
            "end": end,
            "arithmetic_intensity": rounded(intensity),
            "attainable_rate": rounded(float(attainable(intensity, peak, slope))),
        }
        for label, limit, pair, peak, slope in lines
        for end, intensity in zip(("from", "to"), pair, strict=True)
    ]
    return tidy(rows, columns)


def _links(study: Study) -> list[tuple[str, float]]:
    """Return the links that chips of the layout send over, with the bandwidth of a chip on each [B/s]."""
    if not study.has_network:
        return []
    reached = reach(study.hardware, Group(study.layout.chips))
    fabrics = {"link": reached.inner, "link between domains": reached.outer}
    return [(name, fabric.port_bytes_per_s) for name, fabric in fabrics.items() if fabric and fabric.port_bytes_per_s]


# ---- points ----------------------------------------------------------------------------------------------------------

POINT_COLUMNS = (
    "batch",
    "precision",
    "operation",
    "group",
    "roof",
    "arithmetic_intensity",
    "attainable_rate",
    "bound",
    "share",
    "time",
    "label",
)


def points(study: Study) -> pd.DataFrame:
    """Return a point for each operation that computes, and for the whole step by memory and by links, at every batch and precision."""
    labels = roof_labels(study)
    rows: list[Row] = []
    for choice in study.choices:
        for index, batch in enumerate(study.batches):
            placed = [*_ops_at(choice, labels, index), *_step_at(choice, index, study)]
            placed.sort(key=lambda row: -row["share"])
            _label(placed)
            rows += [{"batch": batch, "precision": choice.name, **row} for row in placed]
    return tidy(rows, POINT_COLUMNS)


def item(value: Numeric, index: int) -> float:
    """Return one value of an array, or the number that stands for all of them."""
    flat = np.ravel(value)
    return float(flat[index if flat.size > 1 else 0])


def _ops_at(choice: Choice, labels: dict[str, str], index: int) -> Iterator[Row]:
    whole = choice.sweep.lower_s
    for rating in choice.sweep.ops:
        if rating.lower_s is None or rating.rate.used not in labels:
            continue
        flops, lower_s, intensity = (item(v, index) for v in (rating.flops, rating.lower_s, rating.intensity))
        if flops > 0 and lower_s > 0:
            yield {
                "operation": rating.op.name,
                "group": rating.op.group,
                "roof": labels[rating.rate.used],
                "arithmetic_intensity": rounded(intensity),
                "attainable_rate": rounded(flops / lower_s),
                "bound": _bound(rating, index),
                "share": rounded(lower_s / item(whole, index), 3) if whole is not None else 0.0,
                "time": words.duration(lower_s),
            }


def _bound(rating: Rating, index: int) -> str:
    return str(np.ravel(rating.bound)[index if np.size(rating.bound) > 1 else 0])


def _step_at(choice: Choice, index: int, study: Study) -> Iterator[Row]:
    """Yield the whole step over the bytes of memory, and over those that go through links where there are any."""
    sweep = choice.sweep
    if sweep.lower_s is None or sweep.bound is None:
        return
    flops, lower_s = (item(v, index) for v in (sweep.flops(), sweep.lower_s))
    sizes = {STEP: item(sweep.memory_bytes, index)}
    if _links(study):
        sizes[LINKED] = item(sweep.network_bytes, index)
    for name, size in sizes.items():
        yield {
            "operation": name,
            "group": "all layers",
            "roof": "",
            "arithmetic_intensity": rounded(flops / size),
            "attainable_rate": rounded(flops / lower_s),
            "bound": str(np.ravel(sweep.bound)[index if np.size(sweep.bound) > 1 else 0]),
            "share": 1.0,
            "time": words.duration(lower_s),
        }


def _label(rows: list[Row]) -> None:
    """Give each cluster of points one label, at the point with the largest share of the time."""
    heads: list[tuple[Row, list[str]]] = []
    for row in rows:
        row["label"] = ""
        for head, names in heads:
            if row["roof"] and head["roof"] and _is_near(row, head):
                names.append(row["operation"])
                break
        else:
            heads.append((row, [row["operation"]]))
    for head, names in heads:
        if head["share"] < LEAST_NAMED:
            continue
        unique = list(dict.fromkeys(names))
        shown = unique[: len(unique) if len(unique) <= MOST_NAMED else 1]
        head["label"] = ", ".join(shown) + (f" +{len(unique) - len(shown)}" if len(unique) > len(shown) else "")


def _is_near(a: Row, b: Row) -> bool:
    sides = ("arithmetic_intensity", "attainable_rate")
    return a["bound"] == b["bound"] and all(abs(np.log10(a[side] / b[side])) < NEAR[a["bound"]] for side in sides)


# ---- times -----------------------------------------------------------------------------------------------------------


def times(study: Study) -> pd.DataFrame:
    """Return the sums of times of the step at every batch in every precision: a row for each part, and the two bounds."""
    rows: list[Row] = []
    for choice in study.choices:
        sweep = choice.sweep
        if sweep.lower_s is None or sweep.upper_s is None:
            continue
        times = (sweep.compute_s, sweep.memory_s, sweep.network_s)
        parts = {name: time for name, time in zip(BOUNDS, times, strict=True) if time is not None}
        shown = {name: value for name, value in parts.items() if np.any(np.greater(value, 0))}
        for index, batch in enumerate(study.batches):
            common = {
                "batch": batch,
                "precision": choice.name,
                "lower": rounded(item(sweep.lower_s, index)),
                "upper": rounded(item(sweep.upper_s, index)),
            }
            rows += [{**common, "part": name, "time_of_a_step": rounded(item(v, index))} for name, v in shown.items()]
    return tidy(rows, ("batch", "precision", "part", "time_of_a_step", "lower", "upper"))


def marks(study: Study) -> pd.DataFrame:
    """Return the batches at which something changes: compute-bound from here on, memory full."""
    rows: list[Row] = []
    for choice in study.choices:
        critical, most = choice.critical_batch, choice.memory.max_batch
        if critical is not None and critical > 1:
            text = f"compute-bound from {critical:,}"
            rows.append({"precision": choice.name, "batch": critical, "event": "threshold", "text": text})
        if most:
            rows.append({"precision": choice.name, "batch": most, "event": "full", "text": f"memory full at {most:,}"})
    last = study.batches[-1]
    # A label stands on the side where there is room for it.
    shown = [{**row, "side": "right" if row["batch"] ** 2 < last else "left"} for row in rows if row["batch"] <= last]
    return tidy(shown, ("precision", "batch", "event", "side", "text"))
