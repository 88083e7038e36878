"""The time of a step over its batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.charts.look import Look, Palette, Selection
from planner.charts.specification import Spec, finish, halo, log_axis, named, powers_of_two, title

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

DASHES: dict[str, list[int]] = {"compute": [7, 3], "memory": [1, 0], "network": [1, 3]}
"""The line of each kind of time."""

TOO_SHORT = 100.0
"""Parts of a step's time this many times shorter than the shortest step are of no interest."""


def times_chart(times: pd.DataFrame, marks: pd.DataFrame, selection: Selection, look: Look) -> Spec:
    """Return the time of a step over its batch: what computing, memory and network each take, and the band between the bounds.

    Parameters
    ----------
    times : pandas.DataFrame
        `batch, precision, part, time_of_a_step, lower, upper`: a row for each part of the time.
    marks : pandas.DataFrame
        `precision, batch, event, side, text`: batches at which something changes, and on which side of it the text stands.
    selection : Selection
        The batch and the precision that are shown at first.
    look : Look
        Colours and size.
    """
    import altair as alt

    batches = [int(times["batch"].min()), int(times["batch"].max())]
    x = alt.X(
        "batch:Q",
        title=title(times, "batch"),
        scale=alt.Scale(type="log", base=2, domain=batches, nice=False),
        axis=alt.Axis(format=",", values=powers_of_two(batches[1]), labelOverlap="greedy", labelSeparation=8),
    )
    lowest = float(times["lower"].min()) / TOO_SHORT
    y = log_axis(alt.Y, times, "time_of_a_step", [times[times["time_of_a_step"] >= lowest]], (1.0, 3.0), unit="s")
    shown = named("times").transform_filter("datum.precision == precision")
    layers = [
        *_time_layers(shown, list(dict.fromkeys(times["part"])), x, y, look.palette),
        *_mark_layers(x, look.palette),
    ]
    return finish(layers, {"times": times, "marks": marks}, selection, look, height=280)


def _time_layers(shown: alt.Chart, parts: list[str], x: alt.X, y: alt.Y, palette: Palette) -> list[alt.Chart]:
    import altair as alt

    dash = alt.StrokeDash(
        "part:N",
        title="time for",
        scale=alt.Scale(domain=parts, range=[DASHES[part] for part in parts]),
        legend=alt.Legend(
            symbolType="stroke", symbolStrokeWidth=2, symbolSize=400, columns=alt.expr("width < 340 ? 2 : 3")
        ),
    )
    band = shown.mark_area(color=palette.muted, opacity=0.22, clip=True).encode(
        x=x, y=alt.Y("lower:Q").scale(type="log"), y2="upper:Q"
    )
    lines = shown.mark_line(color=palette.ink, strokeWidth=1.75, clip=True).encode(x=x, y=y, strokeDash=dash)
    near = shown.transform_filter("datum.batch == batch")
    here = near.mark_rule(color=palette.ink, strokeWidth=1).encode(x=x)
    dots = near.mark_point(filled=True, color=palette.ink, size=50, opacity=1).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("batch:Q", format=","),
            alt.Tooltip("part:N", title="time for"),
            alt.Tooltip("time_of_a_step:Q", title="takes [s]", format=".3s"),
            alt.Tooltip("lower:Q", title="step, lower bound [s]", format=".3s"),
            alt.Tooltip("upper:Q", title="step, upper bound [s]", format=".3s"),
        ],
    )
    return [band, here, lines, dots]


def _mark_layers(x: alt.X, palette: Palette) -> list[alt.Chart]:
    import altair as alt

    shown = named("marks").transform_filter("datum.precision == precision").encode(x=x)
    layers = [shown.mark_rule(color=palette.muted, strokeDash=[4, 3])]
    sides: dict[str, dict[str, Any]] = {"left": {"align": "right", "dx": -6}, "right": {"align": "left", "dx": 6}}
    for event, dy in (("full", -24), ("threshold", -8)):
        for side, place in sides.items():
            one = shown.transform_filter(f"datum.event == '{event}' && datum.side == '{side}'")
            layers += [
                one.mark_text(baseline="bottom", fontSize=11, dy=dy, **place, **colours).encode(
                    y=alt.value("height"), text="text:N"
                )
                for colours in (halo(palette), {"color": palette.ink})
            ]
    return layers
