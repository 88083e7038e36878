"""Where data files are: the folders that the user names, then the catalogue that comes with the planner.

An entry of a user's folder hides a built-in one of the same name. That is said aloud, through the log, each time one is looked up.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from contextvars import ContextVar, Token
from pathlib import Path

from planner.errors import InputError, listing, printable

LOG = logging.getLogger("planner")
"""Notes for the user; the command line writes them to stderr."""

ENVIRONMENT = "PLANNER_CATALOG"
"""Variable that names user folders, separated as in PATH."""

KINDS = ("models", "hardware")
"""What a user's folder may hold."""

_chosen: ContextVar[tuple[Path, ...] | None] = ContextVar("_chosen", default=None)


def data_folder(name: str) -> Path:
    """Return the folder `name` (models, hardware, templates) of an installed wheel, or of the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name


def use_folders(folders: Iterable[str | Path]) -> Token[tuple[Path, ...] | None]:
    """Look in these folders first, in this order, instead of those that the environment names.

    Returns
    -------
    Token
        For `restore_folders`.

    Raises
    ------
    InputError
        If one is no folder, or holds neither models/ nor hardware/.
    """
    return _chosen.set(tuple(_checked(folder, "--catalog") for folder in folders))


def restore_folders(token: Token[tuple[Path, ...] | None]) -> None:
    """Undo `use_folders`."""
    _chosen.reset(token)


def _checked(folder: str | Path, named_by: str) -> Path:
    path = Path(folder)
    try:
        if not path.is_dir():
            raise InputError(f"{named_by}: {folder} is no folder, name one that holds models/ or hardware/")
        if not any((path / kind).is_dir() for kind in KINDS):
            raise InputError(f"{named_by}: {folder} holds neither models/ nor hardware/")
    except (OSError, ValueError) as error:
        raise InputError(f"{named_by}: {str(folder)[:80]!r} cannot be read: {error}") from None
    return path


def user_folders() -> tuple[Path, ...]:
    """Return the folders that the user names, by option or else by environment."""
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    named = os.environ.get(ENVIRONMENT, "").split(os.pathsep)
    return tuple(_checked(folder, ENVIRONMENT) for folder in named if folder)


def folders(kind: str) -> tuple[Path, ...]:
    """Return the folders that hold a kind of entry, those of the user first."""
    own = (folder / kind for folder in user_folders())
    return (*(folder for folder in own if folder.is_dir()), data_folder(kind))


SUFFIXES = (".yaml", ".yml")
"""Ends of the names of descriptions; the first goes before the second."""


def _candidates(kind: str) -> dict[str, list[Path]]:
    """Return the files of each entry by its name in small letters: the one that counts, then those that it hides."""
    found: dict[str, list[Path]] = {}
    for folder in folders(kind):
        files = [path for path in folder.glob("*") if path.suffix in SUFFIXES]
        for path in sorted(files, key=lambda path: (SUFFIXES.index(path.suffix), path.name)):
            found.setdefault(path.stem.lower(), []).append(path)
    return found


def entries(kind: str) -> dict[str, Path]:
    """Return the file of each entry by its name, sorted; the first folder that has it counts, in whatever case."""
    return dict(sorted((paths[0].stem, paths[0]) for paths in _candidates(kind).values()))


def names(kind: str) -> list[str]:
    """Return the names of all entries of a kind, sorted."""
    return list(entries(kind))


def find_entry(kind: str, name: str) -> Path | None:
    """Return the file of an entry, in whatever case its name is written, or None; say aloud if it hides others."""
    paths = _candidates(kind).get(name.lower(), [])
    same = [path for path in paths if path.parent == paths[0].parent]
    path = next((path for path in same if path.stem == name), paths[0] if paths else None)
    if path is not None and len(paths) > 1:
        LOG.warning("%s hides %s", path, _hidden([other for other in paths if other != path], kind))
    return path


def say_hidden(kind: str) -> None:
    """Say aloud which entries of the user's folders hide others, and which files there are none."""
    for paths in _candidates(kind).values():
        if len(paths) > 1:
            LOG.warning("%s hides %s", paths[0], _hidden(paths[1:], kind))
    for folder in folders(kind)[:-1]:
        strays = sorted(path.name for path in folder.glob("*") if path.is_file() and path.suffix not in SUFFIXES)
        if strays:
            LOG.warning("%s: not listed, descriptions end in .yaml: %s", folder, printable(listing(strays)))


def _hidden(paths: Sequence[Path], kind: str) -> str:
    if [path.parent for path in paths] == [data_folder(kind)]:
        return "the built-in one of that name"
    return f"others of that name: {listing(map(str, paths))}"
