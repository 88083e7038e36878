"""The roofline chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.charts.look import Look, Palette, Selection
from planner.charts.specification import Spec, finish, halo, log_axis, named, title

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

SHAPES = {"compute": "triangle-up", "memory": "circle", "network": "square"}
"""The mark of each bound."""

NARROW = 520
"""Charts narrower than this leave out the labels of points [pixels]."""


def roofline_chart(roofs: pd.DataFrame, points: pd.DataFrame, selection: Selection, look: Look) -> Spec:
    """Return a roofline chart (Williams, Waterman and Patterson, CACM 52(4), 2009), logarithmic in both axes.

    Parameters
    ----------
    roofs : pandas.DataFrame
        `roof, limit, end, arithmetic_intensity, attainable_rate`: both ends of the slope of the memory, of each peak, the lowest
        first, and of the slope of each link, over bytes that go through it.
    points : pandas.DataFrame
        `batch, precision, operation, group, roof, arithmetic_intensity, attainable_rate, bound, share, time, label`: an operation
        in each row; `roof` is empty for the whole step, whose bytes are those of memory or, in a row of its own, of links.
    selection : Selection
        The batch and the precision that are shown at first.
    look : Look
        Colours and size.
    """
    import altair as alt

    x = log_axis(alt.X, roofs, "arithmetic_intensity", [roofs, points], (1.0, 1.0))
    y = log_axis(alt.Y, roofs, "attainable_rate", [roofs, points], (1.0, 2.2))
    peaks = list(dict.fromkeys(roofs.loc[roofs["limit"] == "compute", "roof"]))
    series = look.palette.series
    scale = alt.Scale(domain=peaks, range=[series[i % len(series)] for i in range(len(peaks))])
    colour = alt.Color("roof:N", scale=scale, legend=None)
    layers = [
        *_roof_layers(x, y, colour, look.palette),
        *_point_layers(points, x, y, colour, look.palette),
        *_roof_names(x, y, colour, look.palette),
    ]
    return finish(layers, {"roofs": roofs, "points": points}, selection, look, height=430)


def _roof_layers(x: alt.X, y: alt.Y, colour: alt.Color, palette: Palette) -> list[alt.Chart]:
    import altair as alt

    base = named("roofs").encode(x=x, y=y)
    slope, peaks, links = (
        base.transform_filter(f"datum.limit == '{limit}'") for limit in ("memory", "compute", "network")
    )
    ridges = peaks.transform_filter("datum.end == 'from'").mark_rule(strokeDash=[2, 4], opacity=0.8)
    # The slope's label lies along it, at whatever size the chart is drawn.
    decades = "(log({0}[1]) - log({0}[0]))"
    rise, run = (decades.format(f"domain('{axis}')") for axis in ("y", "x"))
    angle = alt.expr(f"-atan2(height / {rise}, width / {run}) * 180 / PI")
    style: dict[str, Any] = {"angle": angle, "align": "left", "dx": 26, "fontSize": 12, "fontWeight": 600}
    bandwidth = slope.transform_filter("datum.end == 'from'").mark_text(
        **style, baseline="bottom", dy=-5, color=palette.ink
    )
    link = links.transform_filter("datum.end == 'from'").mark_text(**style, baseline="bottom", dy=-5, color=palette.ink)
    return [
        links.mark_line(strokeWidth=1.5, color=palette.ink, strokeDash=[6, 4]).encode(detail="roof:N"),
        link.encode(text="roof:N"),
        ridges.encode(y2=alt.value("height"), color=colour),
        slope.mark_line(strokeWidth=1.75, color=palette.ink),
        peaks.mark_line(strokeWidth=2.25).encode(color=colour, detail="roof:N").properties(name="roofs"),
        bandwidth.encode(text="roof:N"),
    ]


def _roof_names(x: alt.X, y: alt.Y, colour: alt.Color, palette: Palette) -> list[alt.Chart]:
    """Return the name of each peak at its right end, before everything else."""
    ends = (
        named("roofs").transform_filter("datum.limit == 'compute' && datum.end == 'to'").encode(x=x, y=y, text="roof:N")
    )
    style: dict[str, Any] = {
        "align": "right",
        "baseline": "bottom",
        "dy": -4,
        "dx": -2,
        "fontSize": 12,
        "fontWeight": 600,
    }
    return [ends.mark_text(**style, **halo(palette)), ends.mark_text(**style).encode(color=colour)]


def _point_layers(points: pd.DataFrame, x: alt.X, y: alt.Y, colour: alt.Color, palette: Palette) -> list[alt.Chart]:
    import altair as alt

    present = [bound for bound in SHAPES if bound in set(points["bound"])]
    shape = alt.Shape(
        "bound:N",
        title="bound by",
        scale=alt.Scale(domain=present, range=[SHAPES[bound] for bound in present]),
        legend=alt.Legend(symbolSize=90, columns=alt.expr("width < 340 ? 2 : 3")),
    )
    tooltip = _tooltip(points)
    shown = named("points").transform_filter("datum.batch == batch && datum.precision == precision").encode(x=x, y=y)
    operations = (
        shown.transform_filter("datum.roof != ''")
        .mark_point(filled=True, opacity=0.85, stroke=palette.surface, strokeWidth=0.75)
        .encode(
            color=colour,
            shape=shape,
            size=alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[55, 700]), legend=None),
            order=alt.Order("share:Q", sort="descending"),
            tooltip=tooltip,
        )
        .properties(name="operations")
    )
    shape_of_step = alt.expr("indexof(datum.operation, 'link') < 0 ? 'diamond' : 'square'")
    whole = (
        shown.transform_filter("datum.roof == ''")
        .mark_point(filled=False, shape=shape_of_step, size=150, strokeWidth=2, stroke=palette.ink, opacity=1)
        .encode(tooltip=tooltip)
        .properties(name="step")
    )
    return [*_point_labels(shown, palette), operations, whole]


def _tooltip(points: pd.DataFrame) -> list[alt.Tooltip]:
    import altair as alt

    return [
        alt.Tooltip("operation:N"),
        alt.Tooltip("group:N", title="layers"),
        alt.Tooltip("batch:Q", format=","),
        alt.Tooltip("precision:N"),
        alt.Tooltip("bound:N", title="bound by"),
        alt.Tooltip("arithmetic_intensity:Q", title=title(points, "arithmetic_intensity"), format=",.4~r"),
        alt.Tooltip("attainable_rate:Q", title=title(points, "attainable_rate"), format=".3s"),
        alt.Tooltip("time:N", title="at least"),
        alt.Tooltip("share:Q", title="share of the step", format=".1%"),
    ]


def _point_labels(shown: alt.Chart, palette: Palette) -> list[alt.Chart]:
    """Return names beside points: right of what is on the slope, slanted below what is on a flat roof, left of the whole step."""
    import altair as alt

    text: dict[str, Any] = {"text": alt.expr(f"width < {NARROW} ? '' : datum.label"), "fontSize": 11}
    places: dict[str, dict[str, Any]] = {
        "datum.roof == ''": {"align": "right", "dx": -12, "dy": -5, "baseline": "bottom"},
        "datum.roof != '' && datum.bound == 'compute'": {
            "align": "left",
            "angle": 38,
            "dx": 12,
            "dy": 5,
            "baseline": "middle",
        },
        "datum.roof != '' && datum.bound != 'compute'": {"align": "left", "dx": 12, "dy": 3, "baseline": "top"},
    }
    return [
        shown.transform_filter(f"datum.label != '' && {place}").mark_text(**text, **style, **colours)
        for place, style in places.items()
        for colours in (halo(palette), {"color": palette.ink})
    ]
