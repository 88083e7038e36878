"""Charts: a function from a tidy table to an altair specification. Nothing is computed here but where things stand.

Axes label themselves from the name of a column and its unit in ``DataFrame.attrs["units"]``. Colours come with a `Look`, so that one
chart can follow the colours of a page or be drawn for paper. What bounds an operation is told by shape, never by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

Spec = dict[str, Any]
"""A chart in the terms of Vega-Lite."""

SHAPES = {"compute": "triangle-up", "memory": "circle", "network": "square"}
"""The mark of each bound."""

DASHES: dict[str, list[int]] = {"compute": [7, 3], "memory": [1, 0], "network": [1, 3]}
"""The line of each kind of time."""

TOO_SHORT = 100.0
"""Parts of a step's time this many times shorter than the shortest step are of no interest."""

NARROW = 520
"""Charts narrower than this leave out the labels of points [pixels]."""


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of a chart.

    Attributes
    ----------
    ink, muted, grid, surface : str
        Text and axes, what stands back, grid lines, and what is behind the chart.
    series : tuple of str
        One for each roof, from the lowest; told apart by people who see colours differently.
    """

    ink: str
    muted: str
    grid: str
    surface: str
    series: tuple[str, ...]


# Okabe and Ito, Color Universal Design (2008), without the yellow and the orange that vanish on white.
PAPER = Palette(
    ink="#1c1c1c",
    muted="#6b6b6b",
    grid="#e4e4e4",
    surface="#ffffff",
    series=("#0072b2", "#d55e00", "#009e73", "#aa4499", "#56b4e9", "#8a6d00"),
)

PAGE = Palette(
    ink="var(--ink)",
    muted="var(--muted)",
    grid="var(--grid)",
    surface="var(--surface)",
    series=tuple(f"var(--series-{number})" for number in range(1, 7)),
)
"""The colours of the page that the chart stands in, light or dark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a chart is drawn.

    Attributes
    ----------
    palette : Palette
        Colours.
    width : int or "container"
        Pixels, or as wide as what it stands in.
    title : str
        A line above the chart, empty for none.
    """

    palette: Palette = PAPER
    width: int | Literal["container"] = 860
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rows of a table are shown at first. A page may change it through the signals `batch` and `precision`."""

    batch: int
    precision: str


def _named(name: str) -> alt.Chart:
    """Return an empty chart of a named table; `_finish` adds its rows, so that they are not copied from layer to layer."""
    import altair as alt  # noqa: PLC0415

    return alt.Chart(alt.NamedData(name=name))


def title(frame: pd.DataFrame, name: str) -> str:
    """Return the title of a column: its name and its unit."""
    unit = frame.attrs["units"].get(name)
    words = name.replace("_", " ")
    return f"{words} [{unit}]" if unit else words


def _finish(
    layers: list[alt.Chart], tables: Mapping[str, pd.DataFrame], selection: Selection, look: Look, height: int
) -> Spec:
    """Return layers as one specification, with their data, their parameters and their colours."""
    import altair as alt  # noqa: PLC0415

    chart = alt.LayerChart(layer=layers, width=look.width, height=height)
    spec: Spec = chart.to_dict()
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    spec["background"] = look.palette.surface
    if look.title:
        spec["title"] = {"text": look.title, "anchor": "start", "fontSize": 14}
    spec["params"] = [{"name": "batch", "value": selection.batch}, {"name": "precision", "value": selection.precision}]
    spec["config"] = _config(look.palette)
    spec["datasets"] = {name: frame.to_dict(orient="records") for name, frame in tables.items()}
    return spec


def _config(palette: Palette) -> Spec:
    words = {"labelColor": palette.ink, "titleColor": palette.ink, "titleFontWeight": "normal", "titleFontSize": 12}
    return {
        "font": "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif",
        "title": {"color": palette.ink},
        "view": {"stroke": None},
        "axis": {
            **words,
            "labelFontSize": 11,
            "gridColor": palette.grid,
            "domainColor": palette.muted,
            "tickColor": palette.muted,
        },
        "legend": {
            **words,
            "orient": "top",
            "titleOrient": "left",
            "titlePadding": 10,
            "offset": 6,
            "labelFontSize": 12,
            "symbolStrokeColor": palette.ink,
            "symbolFillColor": "transparent",
        },
    }


# ---- the roofline ----------------------------------------------------------------------------------------------------


def roofline(roofs: pd.DataFrame, points: pd.DataFrame, selection: Selection, look: Look) -> Spec:
    """Return a roofline chart (Williams, Waterman and Patterson, CACM 52(4), 2009), logarithmic in both axes.

    Parameters
    ----------
    roofs : pandas.DataFrame
        `roof, limit, end, arithmetic_intensity, attainable_rate`: both ends of the slope of the memory and of each peak, the lowest
        peak first.
    points : pandas.DataFrame
        `batch, precision, operation, group, roof, arithmetic_intensity, attainable_rate, bound, share, time, label`: an operation
        in each row; `roof` is empty for what stands under none.
    selection : Selection
        The batch and the precision that are shown at first.
    look : Look
        Colours and size.
    """
    import altair as alt  # noqa: PLC0415

    x = _log_axis(alt.X, roofs, "arithmetic_intensity", [roofs, points], (1.0, 1.0))
    y = _log_axis(alt.Y, roofs, "attainable_rate", [roofs, points], (1.0, 2.2))
    peaks = list(dict.fromkeys(roofs.loc[roofs["limit"] == "compute", "roof"]))
    series = look.palette.series
    scale = alt.Scale(domain=peaks, range=[series[i % len(series)] for i in range(len(peaks))])
    colour = alt.Color("roof:N", scale=scale, legend=None)
    layers = [*_roof_layers(x, y, colour, look.palette), *_point_layers(points, x, y, colour, look.palette)]
    return _finish(layers, {"roofs": roofs, "points": points}, selection, look, height=430)


def _log_axis(
    channel: Any,
    named: pd.DataFrame,
    name: str,
    frames: list[pd.DataFrame],
    margins: tuple[float, float],
    unit: str = "",
) -> Any:
    """Return a logarithmic axis over all values of a column, with a line at each power of ten; `unit` follows each number."""
    import altair as alt  # noqa: PLC0415

    low = min(float(frame[name].min()) for frame in frames) * margins[0]
    high = max(float(frame[name].max()) for frame in frames) * margins[1]
    powers = [10.0**n for n in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    return channel(
        f"{name}:Q",
        title=title(named, name),
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(labelExpr=f"format(datum.value, '~s') + '{unit}'", values=powers),
    )


def _roof_layers(x: alt.X, y: alt.Y, colour: alt.Color, palette: Palette) -> list[alt.Chart]:
    import altair as alt  # noqa: PLC0415

    base = _named("roofs").encode(x=x, y=y)
    slope, peaks = (base.transform_filter(f"datum.limit == '{limit}'") for limit in ("memory", "compute"))
    ridges = peaks.transform_filter("datum.end == 'from'").mark_rule(strokeDash=[2, 4], opacity=0.8)
    # The slope's label lies along it, at whatever size the chart is drawn.
    decades = "(log({0}[1]) - log({0}[0]))"
    rise, run = (decades.format(f"domain('{axis}')") for axis in ("y", "x"))
    angle = alt.expr(f"-atan2(height / {rise}, width / {run}) * 180 / PI")
    bandwidth = slope.transform_filter("datum.end == 'from'").mark_text(
        angle=angle, align="left", baseline="bottom", dx=26, dy=-5, fontSize=12, fontWeight=600, color=palette.ink
    )
    names = peaks.transform_filter("datum.end == 'to'").mark_text(
        align="right", baseline="bottom", dy=-4, dx=-2, fontSize=12, fontWeight=600
    )
    return [
        ridges.encode(y2=alt.value("height"), color=colour),
        slope.mark_line(strokeWidth=1.75, color=palette.ink),
        peaks.mark_line(strokeWidth=2.25).encode(color=colour, detail="roof:N").properties(name="roofs"),
        bandwidth.encode(text="roof:N"),
        names.encode(text="roof:N", color=colour),
    ]


def _point_layers(points: pd.DataFrame, x: alt.X, y: alt.Y, colour: alt.Color, palette: Palette) -> list[alt.Chart]:
    import altair as alt  # noqa: PLC0415

    present = [bound for bound in SHAPES if bound in set(points["bound"])]
    shape = alt.Shape(
        "bound:N",
        title="bound by",
        scale=alt.Scale(domain=present, range=[SHAPES[bound] for bound in present]),
        legend=alt.Legend(symbolSize=90),
    )
    tooltip = [
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
    shown = _named("points").transform_filter("datum.batch == batch && datum.precision == precision").encode(x=x, y=y)
    operations = (
        shown.transform_filter("datum.roof != ''")
        .mark_point(filled=True, opacity=0.85, stroke=palette.surface, strokeWidth=1)
        .encode(
            color=colour,
            shape=shape,
            size=alt.Size("share:Q", scale=alt.Scale(domain=[0, 1], range=[40, 700]), legend=None),
            order=alt.Order("share:Q", sort="descending"),
            tooltip=tooltip,
        )
        .properties(name="operations")
    )
    whole = (
        shown.transform_filter("datum.roof == ''")
        .mark_point(filled=False, shape="diamond", size=150, strokeWidth=2, stroke=palette.ink, opacity=1)
        .encode(tooltip=tooltip)
        .properties(name="step")
    )
    return [*_point_labels(shown, palette), operations, whole]


def _point_labels(shown: alt.Chart, palette: Palette) -> list[alt.Chart]:
    """Return names beside points: right of what is on the slope, slanted below what is on a flat roof, left of the whole step."""
    import altair as alt  # noqa: PLC0415

    text: dict[str, Any] = {"text": alt.expr(f"width < {NARROW} ? '' : datum.label"), "fontSize": 11}
    halo: dict[str, Any] = {"stroke": palette.surface, "strokeWidth": 3, "strokeJoin": "round"}
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
        for colours in ({"color": palette.surface, **halo}, {"color": palette.ink})
    ]


# ---- times over batch ------------------------------------------------------------------------------------------------


def times(times: pd.DataFrame, marks: pd.DataFrame, selection: Selection, look: Look) -> Spec:
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
    import altair as alt  # noqa: PLC0415

    batches = [int(times["batch"].min()), int(times["batch"].max())]
    x = alt.X(
        "batch:Q",
        title=title(times, "batch"),
        scale=alt.Scale(type="log", base=2, domain=batches, nice=False),
        axis=alt.Axis(
            format=",", values=[4**n for n in range(12) if 4**n <= batches[1]], labelOverlap="greedy", labelSeparation=8
        ),
    )
    lowest = float(times["lower"].min()) / TOO_SHORT
    y = _log_axis(alt.Y, times, "time_of_a_step", [times[times["time_of_a_step"] >= lowest]], (1.0, 3.0), unit="s")
    shown = _named("times").transform_filter("datum.precision == precision")
    layers = [
        *_time_layers(shown, list(dict.fromkeys(times["part"])), x, y, look.palette),
        *_mark_layers(x, look.palette),
    ]
    return _finish(layers, {"times": times, "marks": marks}, selection, look, height=280)


def _time_layers(shown: alt.Chart, parts: list[str], x: alt.X, y: alt.Y, palette: Palette) -> list[alt.Chart]:
    import altair as alt  # noqa: PLC0415

    dash = alt.StrokeDash(
        "part:N",
        title="time for",
        scale=alt.Scale(domain=parts, range=[DASHES[part] for part in parts]),
        legend=alt.Legend(symbolType="stroke", symbolStrokeWidth=2, symbolSize=400),
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
    import altair as alt  # noqa: PLC0415

    shown = _named("marks").transform_filter("datum.precision == precision").encode(x=x)
    layers = [shown.mark_rule(color=palette.muted, strokeDash=[4, 3])]
    halo: dict[str, Any] = {
        "color": palette.surface,
        "stroke": palette.surface,
        "strokeWidth": 4,
        "strokeJoin": "round",
    }
    sides: dict[str, dict[str, Any]] = {"left": {"align": "right", "dx": -6}, "right": {"align": "left", "dx": 6}}
    for event, dy in (("full", -24), ("threshold", -8)):
        for side, place in sides.items():
            one = shown.transform_filter(f"datum.event == '{event}' && datum.side == '{side}'")
            layers += [
                one.mark_text(baseline="bottom", fontSize=11, dy=dy, **place, **colours).encode(
                    y=alt.value("height"), text="text:N"
                )
                for colours in (halo, {"color": palette.ink})
            ]
    return layers


# ---- drawing ---------------------------------------------------------------------------------------------------------


def library() -> str:
    """Return vega, vega-lite and vega-embed as one script without dependencies, of the version that altair writes for."""
    import vl_convert  # noqa: PLC0415

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=_version()))


def _version() -> str:
    import altair as alt  # noqa: PLC0415

    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def svg(spec: Spec) -> str:
    """Return a chart as SVG, drawn without a browser."""
    import vl_convert  # noqa: PLC0415

    return str(vl_convert.vegalite_to_svg(spec, vl_version=_version()))


def png(spec: Spec, scale: float = 2.0) -> bytes:
    """Return a chart as PNG, drawn without a browser at `scale` times its size."""
    import vl_convert  # noqa: PLC0415

    return bytes(vl_convert.svg_to_png(svg(spec), scale=scale))
