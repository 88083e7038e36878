"""Rendering of results as a table, JSON, CSV or Markdown, and writing them whole or not at all."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.errors import InputError, printable
from planner.numeric import is_array

if TYPE_CHECKING:
    from rich.console import RenderableType

FORMATS = ("table", "json", "csv", "md")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A result in the shapes that it can be printed in.

    Attributes
    ----------
    record : mapping or sequence
        The whole, for JSON: SI base units and USD.
    rows : sequence of mapping
        The flat part, for CSV and Markdown.
    tables : callable
        Returns what a person reads, as rich renderables.
    notes : sequence of str
        Warnings, for stderr.
    """

    record: Any
    rows: Sequence[Row]
    tables: Callable[[], Iterable[RenderableType]]
    notes: Sequence[str] = ()


def emit(result: Result, output_format: str, output: str | None) -> None:
    """Print a result, or write it to a file, and its notes to stderr."""
    deliver(RENDERERS[output_format](result), output, result.notes)


def deliver(text: str, output: str | None, notes: Iterable[str] = ()) -> None:
    """Print a text, or write it to a file whole or not at all; then notes, so that a failure is the one line on stderr."""
    if output is None:
        print_text(text)
    else:
        write_whole(Path(output), text)
    for note in notes:
        click.echo(f"note: {printable(note)}", err=True)


def print_text(text: str) -> None:
    """Print to standard output; a reader who has left, as in ``planner models | head``, is no error.

    Raises
    ------
    InputError
        If it cannot be written, as on a full disk.
    """
    try:
        click.echo(text, nl=False)
    except UnicodeEncodeError as error:
        click.echo(text.encode(error.encoding, "replace"), nl=False)
    except BrokenPipeError:
        _discard_output()
    except OSError as error:
        _discard_output()
        raise InputError(f"the result cannot be printed: {error.strerror or error}") from None


def _discard_output() -> None:
    """Send what is still buffered for standard output nowhere, so that nothing fails again at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; text in UTF-8.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    import tempfile  # takes as long to import as the whole of this module

    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise InputError(f"--output: {path} is a folder, name a file")
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(content.encode() if isinstance(content, str) else content)
        # A temporary file is private; the result gets the permissions of any new file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except (OSError, ValueError) as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
        why = error.strerror if isinstance(error, OSError) else "its name or its text is none that a file can have"
        raise InputError(f"--output: {path} cannot be written: {why or error}") from None


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: NumPy numbers become Python's, and what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple) or is_array(value):
        return [plain(item) for item in value]
    if hasattr(value, "item"):  # a scalar of NumPy
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return value


def _json(result: Result) -> str:
    return json.dumps(plain(result.record), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _cells(row: Row) -> dict[str, Any]:
    return {key: "" if value is None else value for key, value in plain(row).items()}


def _csv(result: Result) -> str:
    import csv  # for CSV alone

    text = io.StringIO()
    columns = list(result.rows[0]) if result.rows else []
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_cells(row) for row in result.rows)
    return text.getvalue()


def _markdown(result: Result) -> str:
    columns = list(result.rows[0]) if result.rows else []
    lines = [columns, ["---"] * len(columns), *(list(_cells(row).values()) for row in result.rows)]
    escaped = (" | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in line) for line in lines)
    return "".join(f"| {line} |\n" for line in escaped)


def _table(result: Result) -> str:
    from rich.console import Console  # only for people

    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    text = io.StringIO()
    # Names come from files: nothing in them is markup. Leaving these passes out halves the time as well.
    console = Console(
        file=text,
        width=None if is_terminal or "COLUMNS" in os.environ else 100,
        force_terminal=is_terminal,
        # Names come from files: they are text, never markup. And looking for things to highlight takes its time.
        markup=False,
        emoji=False,
        highlight=False,
    )
    for table in result.tables():
        console.print(table)
    return text.getvalue()


RENDERERS: dict[str, Callable[[Result], str]] = {"table": _table, "json": _json, "csv": _csv, "md": _markdown}
