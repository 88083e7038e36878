"""Chips side by side: one column each, and below them what cannot be computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.cli.tables import Blocks
from planner.report import words

if TYPE_CHECKING:
    from rich.console import RenderableType

Record = Mapping[str, Any]
Show = Callable[[str, float | None], str]

UNVERIFIED = " ?"
"""Mark of a figure that was recalled and not read again."""

LEGEND = f"{UNVERIFIED.strip()} recalled from its document and not read again [unverified]"
"""What the mark means."""


def comparison_rows(chips: Sequence[Record]) -> list[dict[str, Any]]:
    """Return a row for each figure that any of the chips has, with a column for each chip, and whose was recalled."""
    paths = dict.fromkeys(path for chip in _fullest_first(chips) for path in chip["figures"])
    return [
        {
            "figure": path,
            **{chip["id"]: chip["figures"].get(path, {}).get("value") for chip in chips},
            "unverified": " ".join(chip["id"] for chip in chips if _is_recalled(chip, path)),
        }
        for path in sorted(paths, key=lambda path: _ORDER.index(path.partition(".")[0]))
    ]


def _is_recalled(chip: Record, path: str) -> bool:
    figure = chip["figures"].get(path)
    return figure is not None and figure["value"] is not None and not figure["verified"]


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
    from rich.text import Text  # only for people

    paths = [row["figure"] for row in comparison_rows(chips)]
    yield Blocks("figure", paths, {chip["id"]: [_cell(chip, path, show) for path in paths] for chip in chips})
    if any(_is_recalled(chip, path) for chip in chips for path in paths):
        yield Text(LEGEND)
    for chip in chips:
        for gap in chip["gaps"]:
            yield Text(f"• {gap}")


def _cell(chip: Record, path: str, show: Show) -> str:
    figure = chip["figures"].get(path)
    if figure is None or figure["value"] is None:
        return words.NOTHING
    return show(path, figure["value"]) + (UNVERIFIED if _is_recalled(chip, path) else "")
