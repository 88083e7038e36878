"""Intensity and attained share of peak over the batch: where operations and step turn compute-bound, and what memory holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.charts.look import Look, Palette, Selection
from planner.charts.specification import Spec, dressed, halo, log_axis, named, powers_of_two, title

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

DASHES: tuple[list[int], ...] = ([1, 0], [8, 3], [3, 2], [10, 3, 2, 3], [1, 3], [6, 2, 1, 2, 1, 2], [14, 4])
"""The line of each class of operations, in their order; the first is the step."""

NARROW = 520
"""Charts narrower than this leave out the names at the ends of lines [pixels]."""

ROOM = 3.2
"""Octaves right of the last batch, for those names; in a narrow chart they are the end of the axis."""

GAP = 14
"""Names stand at least this far apart [pixels]."""

HEIGHTS = {"arithmetic_intensity": 300, "share_of_peak": 200}
"""Of the two panels [pixels]."""

AXIS_WIDTH = 44
"""Labels of both vertical axes take this much, so that the panels stand under each other [pixels]."""


@dataclass(frozen=True, slots=True)
class _Drawing:
    """What all layers of a panel share: the tables, which rows are shown, axes and look."""

    tables: dict[str, pd.DataFrame]
    shown: str
    look: Look

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(self.tables["curves"]["operations"]))

    @property
    def last(self) -> int:
        return int(self.tables["curves"]["batch"].max())

    def rows(self, table: str) -> alt.Chart:
        return named(table).transform_filter(self.shown)

    def x(self, **axis: Any) -> alt.X:
        import altair as alt  # noqa: PLC0415

        domain = [1, self.last * 2**ROOM]
        return alt.X(
            "batch:Q",
            title=title(self.tables["curves"], "batch"),
            scale=alt.Scale(type="log", base=2, domain=domain, nice=False),
            axis=alt.Axis(
                format=",", values=powers_of_two(self.last), labelOverlap="greedy", labelSeparation=8, **axis
            ),
        )

    def y(self, name: str) -> Any:
        import altair as alt  # noqa: PLC0415

        if name == "arithmetic_intensity":
            frames = [self.tables[table] for table in ("curves", "ridges")]
            axis = log_axis(alt.Y, self.tables["curves"], name, frames, (0.7, 1.8))
        else:
            axis = alt.Y(f"{name}:Q", title="share of peak attained", scale=alt.Scale(domain=[0, 1.04], nice=False))
            axis = axis.axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
        return axis.axis(minExtent=AXIS_WIDTH, maxExtent=AXIS_WIDTH)


def crossing_charts(tables: dict[str, pd.DataFrame], selection: Selection, look: Look) -> dict[str, Spec]:
    """Return the two panels as charts of their own, `intensity` and `share`, which follow the signals of a page.

    Parameters
    ----------
    tables : dict
        `curves`: `precision, operations, batch, arithmetic_intensity, share_of_peak`, a row for each class of operations and batch,
        the step first; `ridges`: `precision, arithmetic_intensity, text`; `limits`: `precision, chips, batch, layout, text`, the
        largest batch that so many chips hold.
    selection : Selection
        The batch and the precision that are shown at first.
    look : Look
        Colours and size.
    """
    drawing = _Drawing(tables, "datum.precision == precision", look)
    panels = {"intensity": _intensity(drawing), "share": _share(drawing)}
    return {name: dressed(panel, tables, look, selection) for name, panel in panels.items()}


def crossing_picture(tables: dict[str, pd.DataFrame], look: Look) -> Spec:
    """Return both panels under each other, a column for each precision; `look.width` is that of a column."""
    import altair as alt  # noqa: PLC0415

    columns = []
    for precision in dict.fromkeys(tables["curves"]["precision"]):
        drawing = _Drawing(tables, f"datum.precision == '{precision}'", look)
        panels = (_intensity(drawing).properties(title=precision), _share(drawing))
        columns.append(alt.vconcat(*panels, spacing=10))
    picture = alt.hconcat(*columns, spacing=24)
    return dressed(picture, tables, look)


def _intensity(drawing: _Drawing) -> alt.LayerChart:
    palette, name = drawing.look.palette, "arithmetic_intensity"
    x, y = drawing.x(labels=False, title=None, ticks=False), drawing.y(name)
    ridge = drawing.rows("ridges").encode(y=y)
    style: dict[str, Any] = {
        "align": "left",
        "baseline": "bottom",
        "dx": 6,
        "dy": -3,
        "fontSize": 11,
        "fontWeight": 600,
    }
    layers = [
        *_limit_lines(drawing, x),
        ridge.mark_rule(color=palette.ink, strokeWidth=1.25),
        *_lines(drawing, x, y, name),
        *(
            ridge.mark_text(**style, **colour).encode(text="text:N", x=_left())
            for colour in (halo(palette), {"color": palette.ink})
        ),
        *_names(drawing, x, y, name),
    ]
    return _panel(layers, drawing, name)


def _share(drawing: _Drawing) -> alt.LayerChart:
    name = "share_of_peak"
    x, y = drawing.x(), drawing.y(name)
    layers = [
        *_limit_lines(drawing, x),
        *_lines(drawing, x, y, name),
        *_limit_names(drawing, x),
        *_names(drawing, x, y, name),
    ]
    return _panel(layers, drawing, name)


def _panel(layers: list[alt.Chart], drawing: _Drawing, name: str) -> alt.LayerChart:
    import altair as alt  # noqa: PLC0415

    return alt.LayerChart(layer=layers, width=drawing.look.width, height=HEIGHTS[name])


def _left() -> Any:
    import altair as alt  # noqa: PLC0415

    return alt.value(0)


def _colours(palette: Palette, count: int) -> list[str]:
    """Return the ink for the step, and a colour for each class."""
    return [palette.ink, *(palette.series[i % len(palette.series)] for i in range(count - 1))]


def _lines(drawing: _Drawing, x: alt.X, y: Any, name: str) -> list[alt.Chart]:
    import altair as alt  # noqa: PLC0415

    names, curves = drawing.names, drawing.tables["curves"]
    has_legend = name == "arithmetic_intensity"
    legend: Any = (
        alt.Legend(symbolType="stroke", symbolStrokeWidth=2, symbolSize=500, columns=4) if has_legend else None
    )
    colour = alt.Color(
        "operations:N",
        title=None,
        scale=alt.Scale(domain=names, range=_colours(drawing.look.palette, len(names))),
        legend=legend,
    )
    dash = alt.StrokeDash(
        "operations:N", title=None, scale=alt.Scale(domain=names, range=list(DASHES[: len(names)])), legend=legend
    )
    width = (
        alt.condition("datum.operations == '" + names[0] + "'", alt.value(2.75), alt.value(1.75))
        if names
        else alt.value(2)
    )
    shown = drawing.rows("curves").encode(x=x, y=y)
    tooltip = [
        alt.Tooltip("operations:N"),
        alt.Tooltip("batch:Q", format=","),
        alt.Tooltip("arithmetic_intensity:Q", title=title(curves, "arithmetic_intensity"), format=",.4~r"),
        alt.Tooltip("share_of_peak:Q", title="share of peak", format=".1%"),
    ]
    lines = shown.mark_line().encode(color=colour, strokeDash=dash, strokeWidth=width, detail="operations:N")
    dots = shown.mark_point(opacity=0, size=140, filled=True).encode(tooltip=tooltip)
    return [lines, dots]


def _limit_lines(drawing: _Drawing, x: alt.X) -> list[alt.Chart]:
    return [
        drawing.rows("limits")
        .mark_rule(color=drawing.look.palette.muted, strokeDash=[2, 3], strokeWidth=1.25)
        .encode(x=x)
    ]


def _limit_names(drawing: _Drawing, x: alt.X) -> list[alt.Chart]:
    import altair as alt  # noqa: PLC0415

    style: dict[str, Any] = {"angle": 270, "align": "right", "baseline": "bottom", "dy": -3, "dx": -4, "fontSize": 11}
    return [
        drawing.rows("limits").mark_text(**style, **colour).encode(x=x, y=alt.value(0), text="text:N")
        for colour in (halo(drawing.look.palette), {"color": drawing.look.palette.ink})
    ]


def _names(drawing: _Drawing, x: alt.X, y: Any, name: str) -> Iterator[alt.Chart]:
    """Yield the name of each line at its end, moved apart where lines end together."""
    import altair as alt  # noqa: PLC0415

    text = alt.expr(f"width < {NARROW} ? '' : datum.operations")
    ends = drawing.rows("curves").transform_filter(f"datum.batch == {drawing.last}").encode(x=x, y=y)
    for operation, moves in _shifts(drawing, name).items():
        mine = ends.transform_filter(f"datum.operations == '{operation}'")
        colour = _colours(drawing.look.palette, len(drawing.names))[drawing.names.index(operation)]
        for precision, dy in moves.items():
            yield mine.transform_filter(f"datum.precision == '{precision}'").mark_text(
                text=text, align="left", baseline="middle", dx=6, dy=dy, fontSize=11, fontWeight=600, color=colour
            )


def _shifts(drawing: _Drawing, name: str) -> dict[str, dict[str, float]]:
    """Return by how many pixels the name of each line moves, by precision."""
    curves = drawing.tables["curves"]
    ends = curves[curves["batch"] == drawing.last]
    found: dict[str, dict[str, float]] = {}
    for precision, group in ends.groupby("precision"):
        heights = {row.operations: _height(drawing, name, getattr(row, name)) for row in group.itertuples()}
        place = -math.inf
        for operation, height in sorted(heights.items(), key=lambda pair: pair[1]):
            place = max(place + GAP, height)
            found.setdefault(str(operation), {})[str(precision)] = round(place - height, 1)
    return found


def _height(drawing: _Drawing, name: str, value: float) -> float:
    """Return how far below the top of its panel a value is drawn [pixels]."""
    low, high = drawing.y(name).to_dict()["scale"]["domain"]
    if name == "arithmetic_intensity":
        low, high, value = math.log(low), math.log(high), math.log(value)
    return float(HEIGHTS[name] * (high - value) / (high - low))
