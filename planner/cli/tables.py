"""The look of tables in the terminal: they fit in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table


def new_table(*headings: str, right: tuple[str, ...] = (), title: str | None = None, first_width: int = 0) -> Table:
    """Return an empty table.

    Parameters
    ----------
    *headings : str
        Column headings.
    right : tuple of str
        Headings of the columns that are aligned to the right.
    title : str, optional
        A line above the table.
    first_width : int
        Least width of the first column [characters].
    """
    from rich import box  # only for people
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title=title, title_justify="left")
    for heading in headings:
        # Where it is narrow names go on in the next line; a figure that is cut would be another figure.
        is_figure = heading in right
        table.add_column(heading, justify="right" if is_figure else "left", no_wrap=is_figure, overflow="fold")
    table.columns[0].min_width = first_width
    return table


class Blocks:
    """Columns of figures side by side; where they are more than fit, in several tables one below the other.

    Parameters
    ----------
    heading : str
        Heading of the first column, which every table begins with.
    names : sequence of str
        The first column.
    columns : mapping of str to sequence of str
        The others by heading, each as long as `names`.
    """

    def __init__(self, heading: str, names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> None:
        self.heading = heading
        self.names = names
        self.columns = columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the tables; one of a single column is as wide as it has to be."""
        rest = list(self.columns)
        while rest:
            fitting = 1
            while fitting < len(rest) and self._width(console, rest[: fitting + 1]) <= options.max_width:
                fitting += 1
            yield self._table(rest[:fitting])
            rest = rest[fitting:]

    def _table(self, headings: Sequence[str]) -> Table:
        table = new_table(self.heading, *headings, right=tuple(headings))
        for name, *cells in zip(self.names, *(self.columns[heading] for heading in headings), strict=True):
            table.add_row(name, *cells)
        return table

    def _width(self, console: Console, headings: Sequence[str]) -> int:
        return console.measure(self._table(headings), options=console.options.update(width=UNLIMITED)).maximum


UNLIMITED = 10_000
"""A width that no table reaches [characters]."""
