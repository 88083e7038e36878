"""Finds the files of a local checkpoint, and what they take: from their headers, or from their index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import listing, printable
from planner.importers.safetensors import StoredTensor, by_class, read_header
from planner.model import Checkpoint

INDEX_NAMES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
"""Indices of checkpoints, the first that is there counts: each states the bytes of all tensors."""

PICKLED = re.compile(r"^(?:pytorch_model|consolidated|model).*\.(?:bin|pt|pth)$")
"""Files of weights whose headers are code, which is not run."""

_SHARD = re.compile(r"^(?P<stem>.*)-(?P<part>\d+)-of-(?P<parts>\d+)\.safetensors$")

MOST_NAMED = 4
"""Files that a note names."""

Read = tuple[Checkpoint | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Files:
    """Files of one checkpoint: those that are there, how many are not, and a note on the choice."""

    found: Sequence[Path] = ()
    missing: int = 0
    notes: tuple[str, ...] = ()


def read_checkpoint(folder: Path, index: Mapping[str, Any] | None, *, name: str = INDEX_NAMES[0], layers: int) -> Read:
    """Return what a checkpoint takes, and what the reader should know.

    Headers are read where every file is there, else the total that the index states is taken.

    Parameters
    ----------
    folder : Path
        Where the files are.
    index : mapping or None
        The parsed index, where there is one.
    name : str
        Its name.
    layers : int
        Layers of the model.
    """
    files, stated = _files(folder, index), _total_size(index)
    if files.found and not files.missing:
        return _from_headers(files, stated, layers)
    if stated is not None:
        return Checkpoint(bytes=stated, source=f"total_size of {name}"), files.notes
    if files.missing:
        every = files.missing + len(files.found)
        gone = f"{files.missing} of {every} safetensors files are not in {folder}: what they take is not known"
        return None, (*files.notes, gone)
    return None, files.notes or _unreadable(folder)


def _from_headers(files: _Files, stated: int | None, layers: int) -> Read:
    tensors: dict[str, StoredTensor] = {}
    count = 0
    for file in files.found:
        for tensor in read_header(file):
            tensors.setdefault(tensor.name, tensor)
            count += 1
    total, notes = sum(tensor.bytes for tensor in tensors.values()), list(files.notes)
    if count > len(tensors):
        notes.append(f"tensors that stand in more than one file: {count - len(tensors)}, counted once")
    if stated is not None and stated != total:
        notes.append(f"the index says that all tensors take {stated} bytes, their headers {total}: the headers count")
    source = f"headers of {len(files.found)} safetensors file{'s' if len(files.found) > 1 else ''}"
    return Checkpoint(bytes=total, by_class=by_class(tensors.values(), layers), source=source), tuple(notes)


def _total_size(index: Mapping[str, Any] | None) -> int | None:
    metadata = index.get("metadata") if index else None
    size = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    if isinstance(size, float) and size.is_integer():
        size = int(size)
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None


def _unreadable(folder: Path) -> tuple[str, ...]:
    """Return a note where weights are there, but in files that are not read."""
    found = sorted(path.name for path in folder.glob("*") if PICKLED.match(path.name))
    if not found:
        return ()
    return (f"{_named(found)}: headers of such files cannot be read without running them, what they take is not known",)


def _named(names: Iterable[str]) -> str:
    return printable(listing(names, most=MOST_NAMED))


# ---- which files -----------------------------------------------------------------------------------------------------


def _files(folder: Path, index: Mapping[str, Any] | None) -> _Files:
    """Return the files of a checkpoint: those that the index names, else those that belong together by their names."""
    places = index.get("weight_map") if index else None
    if isinstance(places, Mapping) and places:
        wanted = sorted({str(name) for name in places.values()})
        # A name with a path in it would read outside the folder.
        known = [folder / name for name in wanted if Path(name).name == name and name.endswith(".safetensors")]
        found = [path for path in known if path.is_file()]
        return _Files(found, len(wanted) - len(found))
    every = sorted(path for path in folder.glob("*.safetensors") if not path.name.startswith("adapter_"))
    sets = _sets([path for path in every if path.name.startswith("model")] or every)
    plain = [path for path in every if path.name == "model.safetensors"]
    if plain and all(len(group) == 1 for group in sets.values()):
        others = [path.name for path in every if path not in plain and path.name.startswith("model")]
        told = (f"{_named(others)}: not counted, the checkpoint is model.safetensors",) if others else ()
        return _Files(plain, 0, told)
    return _chosen(sets)


def _sets(files: Iterable[Path]) -> dict[tuple[str, int], list[Path]]:
    """Return files by the checkpoint that they are a part of: its stem and the number of parts."""
    sets: dict[tuple[str, int], list[Path]] = {}
    for file in files:
        found = _SHARD.match(file.name)
        key = (found["stem"], int(found["parts"])) if found else (file.name, 1)
        sets.setdefault(key, []).append(file)
    return sets


def _chosen(sets: Mapping[tuple[str, int], Sequence[Path]]) -> _Files:
    """Return the one checkpoint that is there; several files that hold different tensors are one together."""
    if len(sets) == 1:
        (_, parts), files = next(iter(sets.items()))
        return _Files(files, max(0, parts - len(files)))
    files = [file for group in sets.values() for file in group]
    if all(parts == 1 for _, parts in sets) and _are_disjoint(files):
        return _Files(files)
    if not files:
        return _Files()
    several = f"several checkpoints are here and no index says which one counts ({_named(file.name for file in files)})"
    return _Files((), 0, (f"{several}: what is stored is not known",))


def _are_disjoint(files: Sequence[Path]) -> bool:
    seen: set[str] = set()
    for file in files:
        names = {tensor.name for tensor in read_header(file)}
        if names & seen:
            return False
        seen |= names
    return True
