"""Colours, fonts and sizes of charts, and what of a table is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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


DRAWN_FONT = "'Liberation Sans', Arial, Helvetica, sans-serif"
"""For charts drawn without a browser: what draws them brings this font along, so that they are the same on every machine."""

PAGE_FONT = "system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
"""For charts in a page: the font of its tables."""

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
    font : str
        Font families.
    title : str
        A line above the chart, empty for none.
    """

    palette: Palette = PAPER
    width: int | Literal["container"] = 860
    font: str = DRAWN_FONT
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rows of a table are shown at first. A page may change it through the signals `batch` and `precision`."""

    batch: int
    precision: str
