"""The look of tables in the terminal: they fit in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from rich import box  # noqa: PLC0415 - only for people
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=True)
    table.columns[0].min_width = first_width
    return table
