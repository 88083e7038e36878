"""The option --catalog of every command, and notes of the library on stderr."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence

import click

from planner.errors import printable


def _use(context: click.Context, _parameter: click.Parameter, folders: Sequence[str]) -> None:
    """Look in the folders first, for as long as the command runs."""
    if not folders:
        return
    from planner import catalogue  # only where folders are named

    token = catalogue.use_folders(folders)
    context.call_on_close(lambda: catalogue.restore_folders(token))


def catalog_option() -> click.Option:
    """Return the option; its default comes from the environment variable PLANNER_CATALOG, which the catalogue reads."""
    return click.Option(
        ["--catalog"],
        metavar="DIR",
        multiple=True,
        expose_value=False,
        is_eager=True,
        callback=_use,
        help="Look for models/ and hardware/ in this folder first; may be given several times.  [env: PLANNER_CATALOG]",
    )


class HeldNotes(logging.Handler):
    """Keeps what the library has to say until a command has succeeded: a failure is one line on stderr."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        self._held.append(record.getMessage())

    def write(self) -> None:
        """Write the notes to stderr."""
        for note in self._held:
            click.echo(f"note: {printable(note)}", err=True)


@contextlib.contextmanager
def held_notes() -> Iterator[HeldNotes]:
    """Collect the library's notes for as long as a command runs."""
    log, notes = logging.getLogger("planner"), HeldNotes()
    log.addHandler(notes)
    log.propagate = False
    try:
        yield notes
    finally:
        log.removeHandler(notes)
