"""Chips side by side: one column each, and below them what cannot be computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.cli import words
from planner.cli.tables import new_table

if TYPE_CHECKING:
    from rich.console import RenderableType

Record = Mapping[str, Any]
Show = Callable[[str, float | None], str]

UNVERIFIED = " ?"
"""Mark of a figure that was recalled and not read again."""


def comparison_rows(chips: Sequence[Record]) -> list[dict[str, Any]]:
    """Return a row for each figure that any of the chips has, with a column for each chip."""
    paths = dict.fromkeys(path for chip in _fullest_first(chips) for path in chip["figures"])
    return [
        {"figure": path, **{chip["id"]: chip["figures"].get(path, {}).get("value") for chip in chips}}
        for path in sorted(paths, key=lambda path: _ORDER.index(path.partition(".")[0]))
    ]


_ORDER = ("peak", "memory", "cache", "links", "power", "price")
"""The parts of a hardware file, as they follow each other."""


def _fullest_first(chips: Sequence[Record]) -> list[Record]:
    """Order chips so that the order of figures is that of the file that has most."""
    return sorted(chips, key=lambda chip: -len(chip["figures"]))


def comparison_tables(chips: Sequence[Record], show: Show) -> Iterable[RenderableType]:
    """Return the table, and the notes below it.

    Parameters
    ----------
    chips : sequence of mapping
        As `planner.records.hardware_record` gives them.
    show : callable
        Turns the path and the value of a figure into text.
    """
    from rich.text import Text  # noqa: PLC0415 - only for people

    headings = [chip["id"] for chip in chips]
    table = new_table("figure", *headings, right=tuple(headings))
    for row in comparison_rows(chips):
        path = row["figure"]
        table.add_row(path, *(_cell(chip, path, show) for chip in chips))
    yield table
    if any(not figure["verified"] for chip in chips for figure in chip["figures"].values()):
        yield Text(f"{UNVERIFIED.strip()} recalled from its document and not read again [unverified]")
    for chip in chips:
        for gap in chip["gaps"]:
            yield Text(f"• {gap}")


def _cell(chip: Record, path: str, show: Show) -> str:
    figure = chip["figures"].get(path)
    if figure is None or figure["value"] is None:
        return words.NOTHING
    return show(path, figure["value"]) + ("" if figure["verified"] else UNVERIFIED)
