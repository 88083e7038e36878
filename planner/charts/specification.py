"""What every chart is put together with: named tables, logarithmic axes, text that lines do not cross, and colours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.charts.look import Look, Palette, Selection

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

Spec = dict[str, Any]
"""A chart in the terms of Vega-Lite."""


def named(name: str) -> alt.Chart:
    """Return an empty chart of a named table; `_finish` adds its rows, so that they are not copied from layer to layer."""
    import altair as alt

    return alt.Chart(alt.NamedData(name=name))


def title(frame: pd.DataFrame, name: str) -> str:
    """Return the title of a column: its name and its unit."""
    unit = frame.attrs["units"].get(name)
    words = name.replace("_", " ")
    return f"{words} [{unit}]" if unit else words


def finish(
    layers: list[alt.Chart], tables: Mapping[str, pd.DataFrame], selection: Selection, look: Look, height: int
) -> Spec:
    """Return layers as one specification, with their data, their parameters and their colours."""
    import altair as alt

    return dressed(alt.LayerChart(layer=layers, width=look.width, height=height), tables, look, selection)


def dressed(
    chart: alt.LayerChart | alt.HConcatChart,
    tables: Mapping[str, pd.DataFrame],
    look: Look,
    selection: Selection | None = None,
) -> Spec:
    """Return a chart as a specification, with its data, its colours, and its parameters where something can be selected."""
    # Validation takes seconds and finds nothing that a test has not found.
    spec: Spec = chart.to_dict(validate=False)
    if selection is not None:
        spec["autosize"] = {"type": "fit-x", "contains": "padding"}
        spec["params"] = [
            {"name": "batch", "value": selection.batch},
            {"name": "precision", "value": selection.precision},
        ]
    spec["background"] = look.palette.surface
    if look.title:
        spec["title"] = {"text": look.title, "anchor": "start", "fontSize": 14}
    spec["config"] = {"font": look.font, **_config(look.palette)}
    spec["datasets"] = {name: frame.to_dict(orient="records") for name, frame in tables.items()}
    return spec


def _config(palette: Palette) -> Spec:
    words = {"labelColor": palette.ink, "titleColor": palette.ink, "titleFontWeight": "normal", "titleFontSize": 12}
    return {
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


def log_axis(
    channel: Any,
    named: pd.DataFrame,
    name: str,
    frames: list[pd.DataFrame],
    margins: tuple[float, float],
    unit: str = "",
    **axis: Any,
) -> Any:
    """Return a logarithmic axis over all values of a column, with a line at each power of ten; `unit` follows each number."""
    import altair as alt

    low = min(float(frame[name].min()) for frame in frames) * margins[0]
    high = max(float(frame[name].max()) for frame in frames) * margins[1]
    powers = [10.0**n for n in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    return channel(
        f"{name}:Q",
        title=title(named, name),
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(labelExpr=f"format(datum.value, '~s') + '{unit}'", values=powers, **axis),
    )


def powers_of_two(last: int) -> list[int]:
    """Return where an axis of batches has labels.

    >>> powers_of_two(100)
    [1, 4, 16, 64]
    """
    return [4**n for n in range(20) if 4**n <= last]


def halo(palette: Palette) -> dict[str, Any]:
    """Return the style of what stands behind a text, so that lines do not cross it."""
    return {"color": palette.surface, "stroke": palette.surface, "strokeWidth": 4, "strokeJoin": "round"}
