"""Charts: labels with units, shapes for bounds, colours that can be read and told apart."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest

from planner import charts

CSS = (Path(__file__).parents[2] / "templates" / "report.css").read_text(encoding="utf-8")
SELECTION = charts.Selection(batch=2, precision="bf16")
UNITS = {"arithmetic_intensity": "FLOP/B", "attainable_rate": "FLOP/s", "time_of_a_step": "s", "batch": "sequences"}


def frame(**columns: list[Any]) -> pd.DataFrame:
    table = pd.DataFrame(columns)
    table.attrs["units"] = UNITS
    return table


def roofline(look: charts.Look) -> charts.Spec:
    roofs = frame(
        roof=["1 TB/s", "1 TB/s", "bf16 100 TFLOP/s", "bf16 100 TFLOP/s"],
        limit=["memory", "memory", "compute", "compute"],
        end=["from", "to", "from", "to"],
        arithmetic_intensity=[1.0, 100.0, 100.0, 1000.0],
        attainable_rate=[1e12, 1e14, 1e14, 1e14],
    )
    points = frame(
        batch=[1, 2, 2],
        precision=["bf16"] * 3,
        operation=["first <b>", "second", "third"],
        group=["g"] * 3,
        roof=["bf16 100 TFLOP/s"] * 3,
        arithmetic_intensity=[2.0, 4.0, 200.0],
        attainable_rate=[2e12, 4e12, 1e14],
        bound=["memory", "memory", "compute"],
        share=[1.0, 0.5, 0.5],
        time=["1 ms"] * 3,
        label=["first <b>", "second", "third"],
    )
    return charts.roofline_chart(roofs, points, SELECTION, look)


def times(look: charts.Look) -> charts.Spec:
    table = frame(
        batch=[1, 2, 1, 2],
        precision=["bf16"] * 4,
        part=["compute", "compute", "memory", "memory"],
        time_of_a_step=[1e-3, 2e-3, 2e-3, 2e-3],
        lower=[2e-3] * 4,
        upper=[3e-3, 4e-3, 3e-3, 4e-3],
    )
    marks = frame(precision=["bf16"], batch=[2], event=["full"], side=["left"], text=["memory full at 2"])
    return charts.times_chart(table, marks, SELECTION, look)


def crossing_tables() -> dict[str, pd.DataFrame]:
    names, batches = ("whole step", "linear layers"), (1, 2, 4)
    rows = [(p, o, b) for p in ("bf16", "fp8") for o in names for b in batches]
    curves = frame(
        precision=[p for p, _, _ in rows],
        operations=[o for _, o, _ in rows],
        batch=[b for _, _, b in rows],
        arithmetic_intensity=[float(b) for _, _, b in rows],
        share_of_peak=[b / 4 for _, _, b in rows],
    )
    ridges = frame(precision=["bf16", "fp8"], arithmetic_intensity=[3.0, 6.0], text=["ridge 3", "ridge 6"])
    limits = frame(precision=["bf16"], chips=[1], batch=[2], layout=["one chip"], text=["1 chip holds 2"])
    return {"curves": curves, "ridges": ridges, "limits": limits}


def crossing(look: charts.Look, panel: str = "intensity") -> charts.Spec:
    return charts.crossing_charts(crossing_tables(), SELECTION, look)[panel]


def share(look: charts.Look) -> charts.Spec:
    return crossing(look, "share")


def test_the_picture_shows_the_precision_asked_for_with_its_ridge_and_what_chips_hold() -> None:
    drawn = charts.svg(crossing(charts.Look()))
    assert "arithmetic intensity [FLOP/B]" in drawn
    assert ">ridge 3<" in drawn
    assert "ridge 6" not in drawn
    assert "linear layers" in drawn
    drawn = charts.svg(share(charts.Look()))
    assert "batch [sequences]" in drawn
    assert ">100%<" in drawn
    assert ">1 chip holds 2<" in drawn


def test_a_picture_for_a_file_has_a_column_for_each_precision() -> None:
    drawn = charts.svg(charts.crossing_picture(crossing_tables(), charts.Look(width=400, title="both")))
    for text in (">ridge 3<", ">ridge 6<", ">bf16<", ">fp8<", ">both<", ">1 chip holds 2<"):
        assert text in drawn


def test_lines_are_told_apart_by_dashes_too() -> None:
    dashes = [
        layer["encoding"]["strokeDash"]["scale"]
        for layer in crossing(charts.Look())["layer"]
        if "strokeDash" in layer["encoding"]
    ]
    assert dashes
    assert len({tuple(dash) for dash in dashes[0]["range"]}) == len(dashes[0]["domain"]) == 2


def test_specifications_are_valid() -> None:
    look = charts.Look()
    for spec in (roofline(look), times(look), crossing(look), share(look)):
        alt.Chart.from_dict(spec, validate=True)
    alt.HConcatChart.from_dict(charts.crossing_picture(crossing_tables(), look), validate=True)


def test_axes_are_named_after_column_and_unit() -> None:
    drawn = charts.svg(roofline(charts.Look()))
    assert "arithmetic intensity [FLOP/B]" in drawn
    assert "attainable rate [FLOP/s]" in drawn
    drawn = charts.svg(times(charts.Look()))
    assert "time of a step [s]" in drawn
    assert "batch [sequences]" in drawn
    assert ">1ms<" in drawn


def test_only_the_rows_selected_are_drawn_and_their_text_is_no_markup() -> None:
    spec = roofline(charts.Look())
    drawn = charts.svg(spec)
    assert ">second<" in drawn
    assert "first" not in drawn
    spec["params"][0]["value"] = 1
    drawn = charts.svg(spec)
    assert "first &lt;b&gt;" in drawn
    assert "second" not in drawn


def test_a_bound_is_told_by_shape_and_a_time_by_its_line() -> None:
    layers = {layer.get("name"): layer for layer in roofline(charts.Look())["layer"]}
    scale = layers["operations"]["encoding"]["shape"]["scale"]
    assert scale["domain"] == ["compute", "memory"]
    assert len(set(scale["range"])) == 2
    dashes = [
        layer["encoding"]["strokeDash"]["scale"]
        for layer in times(charts.Look())["layer"]
        if "strokeDash" in layer["encoding"]
    ]
    assert dashes
    assert len({tuple(dash) for dash in dashes[0]["range"]}) == len(dashes[0]["domain"])


@pytest.mark.parametrize("chart", [roofline, times, crossing, share])
def test_a_chart_for_a_page_takes_every_colour_from_it(chart: Any) -> None:
    drawn = charts.svg({**chart(charts.Look(palette=charts.PAGE)), "width": 600})
    assert "var(--ink)" in drawn
    assert set(re.findall(r'(?:fill|stroke)="(#[^"]+|[a-z]+)"', drawn)) <= {"none", "transparent"}


def test_a_png_is_as_large_as_asked() -> None:
    content = charts.png(times(charts.Look(width=400)), scale=2)
    assert content.startswith(b"\x89PNG")
    width = int.from_bytes(content[16:20], "big")
    assert 790 <= width <= 1000


# ---- colours ---------------------------------------------------------------------------------------------------------

LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) for block in CSS.split("prefers-color-scheme: dark")[:2]
)


def linear(colour: str) -> np.ndarray:
    values = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    # WCAG 2.2, "contrast ratio" and "relative luminance".
    light, dark = sorted((float(linear(c) @ [0.2126, 0.7152, 0.0722]) + 0.05 for c in (first, second)), reverse=True)
    return light / dark


def test_the_measure_of_contrast() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_lines_stand_out(theme: dict[str, str]) -> None:
    colours = {**LIGHT, **theme}
    for name, least in [("ink", 7.0), ("muted", 4.5), ("alert", 4.5), *((f"series-{n}", 3.0) for n in range(1, 7))]:
        assert contrast(colours[name], colours["surface"]) >= least, name


# Linear RGB as people without one kind of cone see it: Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009, severity 1.
DEFICIENCIES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def lab(rgb: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(rgb, 0, 1)
    ratios = xyz / [0.95047, 1.0, 1.08883]
    f = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_the_colours_of_roofs_are_told_apart(theme: dict[str, str], deficiency: str) -> None:
    # Four roofs are what a report usually has. A difference of 10 in CIE L*a*b* is plain to see side by side.
    seen = [lab(np.array(DEFICIENCIES[deficiency]) @ linear(theme[f"series-{n}"])) for n in range(1, 5)]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) > 10
