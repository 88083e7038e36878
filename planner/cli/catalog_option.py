"""The option --catalog of every command, and notes of the library on stderr."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import click


def _use(context: click.Context, _parameter: click.Parameter, folders: Sequence[str]) -> None:
    """Look in the folders first, for as long as the command runs."""
    if not folders:
        return
    from planner import catalogue  # noqa: PLC0415 - only where folders are named

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


class _Notes(logging.Handler):
    """Writes what the library has to say as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        click.echo(f"note: {record.getMessage()}", err=True)


def show_notes() -> None:
    """Send the library's notes to stderr from now on."""
    log = logging.getLogger("planner")
    if not any(isinstance(handler, _Notes) for handler in log.handlers):
        log.addHandler(_Notes())
        log.propagate = False
