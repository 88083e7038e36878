"""Intensity and attained share of peak over the batch: where operations and step turn compute-bound, and what memory holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.charts.look import Look, Selection
from planner.charts.specification import Spec, dressed, halo, log_axis, named, powers_of_two, title

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

DASHES: tuple[list[int], ...] = ([1, 0], [8, 3], [3, 2], [10, 3, 2, 3], [1, 3], [6, 2, 1, 2, 1, 2], [14, 4])
"""The line of each class of operations, in their order; the first is the step."""

NARROW = 520
"""Charts narrower than this leave out the names at the ends of lines [pixels]."""

VERY_NARROW = 340
"""Charts narrower than this have short names for what chips hold [pixels]."""

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

    def by_width(self, narrow: str, wide: str, least: int = NARROW) -> Any:
        """Return one of two expressions, by how wide the chart is drawn."""
        import altair as alt

        if isinstance(self.look.width, int):
            return alt.expr(narrow if self.look.width < least else wide)
        return alt.expr(f"width < {least} ? {narrow} : {wide}")

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(self.tables["curves"]["operations"]))

    @property
    def last(self) -> int:
        return int(self.tables["curves"]["batch"].max())

    def rows(self, table: str) -> alt.Chart:
        return named(table).transform_filter(self.shown)

    def x(self, **axis: Any) -> alt.X:
        import altair as alt

        room = self.by_width(f"{self.last}", f"{round(self.last * 2**ROOM)}")
        return alt.X(
            "batch:Q",
            title=title(self.tables["curves"], "batch"),
            scale=alt.Scale(type="log", base=2, domain=[1, room], nice=False),
            axis=alt.Axis(
                format=",", values=powers_of_two(self.last), labelOverlap="greedy", labelSeparation=8, **axis
            ),
        )

    def y(self, name: str) -> Any:
        import altair as alt

        extent: dict[str, Any] = {"minExtent": AXIS_WIDTH, "maxExtent": AXIS_WIDTH}
        if name == "arithmetic_intensity":
            frames = [self.tables[table] for table in ("curves", "ridges")]
            return log_axis(alt.Y, self.tables["curves"], name, frames, (0.7, 1.8), **extent)
        axis = alt.Axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1], **extent)
        scale = alt.Scale(domain=[0, 1.04], nice=False)
        return alt.Y(f"{name}:Q", title="share of peak attained", scale=scale, axis=axis)


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
    tables = _with_ends(tables)
    drawing = _Drawing(tables, "datum.precision == precision", look)
    panels = {"intensity": _intensity(drawing), "share": _share(drawing)}
    return {name: dressed(panel, tables, look, selection) for name, panel in panels.items()}


def crossing_picture(tables: dict[str, pd.DataFrame], look: Look) -> Spec:
    """Return both panels under each other, a column for each precision; `look.width` is that of a column."""
    import altair as alt

    tables, columns = _with_ends(tables), []
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
    import altair as alt

    return alt.LayerChart(layer=layers, width=drawing.look.width, height=HEIGHTS[name])


def _left() -> Any:
    import altair as alt

    return alt.value(0)


def _legend(drawing: _Drawing, name: str) -> alt.Legend | None:
    """Return the legend, which the upper panel has."""
    import altair as alt

    if name != "arithmetic_intensity":
        return None
    columns = drawing.by_width("2", "7")
    return alt.Legend(symbolType="stroke", symbolStrokeWidth=2, symbolSize=500, columns=columns)


def _colour(drawing: _Drawing, name: str) -> alt.Color:
    """Return the ink for the step, and a colour for each class."""
    import altair as alt

    palette, names = drawing.look.palette, drawing.names
    colours = [palette.ink, *(palette.series[i % len(palette.series)] for i in range(len(names) - 1))]
    return alt.Color(
        "operations:N", title=None, scale=alt.Scale(domain=names, range=colours), legend=_legend(drawing, name)
    )


def _lines(drawing: _Drawing, x: alt.X, y: Any, name: str) -> list[alt.Chart]:
    import altair as alt

    names, curves = drawing.names, drawing.tables["curves"]
    colour, legend = _colour(drawing, name), _legend(drawing, name)
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
    dots = shown.mark_point(color=drawing.look.palette.ink, opacity=0, size=140, filled=True).encode(tooltip=tooltip)
    return [lines, dots]


def _limit_lines(drawing: _Drawing, x: alt.X) -> list[alt.Chart]:
    return [
        drawing.rows("limits")
        .mark_rule(color=drawing.look.palette.muted, strokeDash=[2, 3], strokeWidth=1.25)
        .encode(x=x)
    ]


def _limit_names(drawing: _Drawing, x: alt.X) -> list[alt.Chart]:
    """Return the names of the lines, each in a place of its own beside its line: lines can be close."""
    import altair as alt

    text = drawing.by_width("datum.chips + ': ' + format(datum.batch, ',')", "datum.text", VERY_NARROW)
    layers = []
    for index, chips in enumerate(dict.fromkeys(drawing.tables["limits"]["chips"])):
        is_left, is_high = index % 2 == 0, index % 4 < 2  # two sides at two heights
        style: dict[str, Any] = {"angle": 270, "fontSize": 11, "dx": -4 if is_high else 4}
        style |= {"baseline": "bottom", "dy": -3} if is_left else {"baseline": "top", "dy": 4}
        style["align"] = "right" if is_high else "left"
        rows = drawing.rows("limits").transform_filter(f"datum.chips == {chips}")
        layers += [
            rows.mark_text(text=text, **style, **colour).encode(
                x=x, y=alt.value(0 if is_high else HEIGHTS["share_of_peak"])
            )
            for colour in (halo(drawing.look.palette), {"color": drawing.look.palette.ink})
        ]
    return layers


def _names(drawing: _Drawing, x: alt.X, y: Any, name: str) -> list[alt.Chart]:
    """Return the name of each line at its end, moved apart where lines end together."""
    import altair as alt

    shift = alt.expr(f"datum.{name}_shift")
    text = drawing.by_width("''", "datum.operations")
    ends = drawing.rows("ends").encode(x=x, y=y, color=_colour(drawing, name))
    return [ends.mark_text(text=text, align="left", baseline="middle", dx=6, dy=shift, fontSize=11, fontWeight=600)]


def _with_ends(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return tables with one more, of the ends of lines and by how many pixels their names move."""
    drawing = _Drawing(tables, "", Look())
    ends = tables["curves"][tables["curves"]["batch"] == drawing.last].copy()
    for name, bottom in HEIGHTS.items():
        ends[f"{name}_shift"] = 0.0
        for _, group in ends.groupby("precision"):
            heights = {row: _height(drawing, name, float(value)) for row, value in group[name].items()}
            rows = sorted(heights, key=lambda row: heights[row])
            for row, place in zip(rows, _apart([heights[row] for row in rows], bottom - GAP / 2), strict=True):
                ends.loc[row, f"{name}_shift"] = round(place - heights[row], 1)
    return {**tables, "ends": ends}


def _apart(heights: list[float], lowest: float) -> list[float]:
    """Return heights moved down to stand apart, and up again where they would leave the panel.

    >>> _apart([0.0, 2.0, 100.0, 101.0], lowest=105.0)
    [0.0, 14.0, 91.0, 105.0]
    """
    places: list[float] = []
    for height in heights:
        places.append(max(places[-1] + GAP, height) if places else height)
    ceiling = lowest
    for index in reversed(range(len(places))):
        places[index] = min(places[index], ceiling)
        ceiling = places[index] - GAP
    return places


def _height(drawing: _Drawing, name: str, value: float) -> float:
    """Return how far below the top of its panel a value is drawn [pixels]."""
    low, high = drawing.y(name).to_dict()["scale"]["domain"]
    if name == "arithmetic_intensity":
        low, high, value = math.log(low), math.log(high), math.log(value)
    return float(HEIGHTS[name] * (high - value) / (high - low))
