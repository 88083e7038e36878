"""Finds what a name stands for: an entry of the catalogue, a file, or a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from planner.catalogue.folders import LOG, data_folder, entries, find_entry, names, say_hidden
from planner.catalogue.inside import GGUF, check_name, described_by
from planner.catalogue.reading import CONFIG_NAME, PARAMS_NAME, read_mapping, validate
from planner.engine import Engine
from planner.errors import InputError, nearest
from planner.hardware import Hardware, Latencies
from planner.model import Checkpoint, Model
from planner.units import MEBI

ENGINES = "hardware/engines"
"""Rules of engines lie with the chips that they run on: they say how much of a chip's memory is left."""

MAX_INDEX_BYTES = 64 * MEBI
"""The index of a checkpoint names every tensor: some MB for models with many experts."""


T = TypeVar("T")


def _looks_like_path(name: str) -> bool:
    return os.sep in name or name.endswith((".yaml", ".yml", ".json", GGUF)) or name in (".", "..")


def _find(name: str, folder: str, noun: str) -> Path:
    """Return the file that `name` stands for: a catalogue entry, or a path."""
    if "\0" in name or not name.strip():
        raise InputError(f"{name!r}: is no name of a {noun}, see `planner {folder}`")
    if not _looks_like_path(name):
        entry = find_entry(folder, name)
        if entry is not None:
            return entry
    known = names(folder)
    path = Path(name)
    try:
        if path.is_dir():
            return described_by(path)
        if path.exists():
            return path
    except OSError as error:
        raise InputError(f"{name[:80]}: cannot be read: {error.strerror or error}") from None
    if _looks_like_path(name) and path.name not in known:
        raise InputError(f"{name}: no such file")
    listed = f"known are {', '.join(known)}" if folder == ENGINES else f"the catalogue is listed by `planner {folder}`"
    raise InputError(f"{name}: unknown {noun}, {nearest(path.name, known) or listed}")


def load_model(name: str, *, assume: str | None = None, label: str = "") -> Model:
    """Return a model.

    Parameters
    ----------
    name : str
        A name of the catalogue, a YAML file, a Hugging Face config or Mistral's params.json, the folder of either, or a GGUF file.
    assume : str, optional
        How to read a Hugging Face config of a ``model_type`` that is not known.
    label : str
        What its source is called, where the path does not say it.

    Raises
    ------
    InputError
        If there is no such model, or its file cannot be used.
    """
    return read_model(_find(name, "models", "model"), assume=assume, label=label)


def read_model(path: Path, *, assume: str | None = None, label: str = "") -> Model:
    """Return the model that a file describes, whatever its kind; see `load_model`."""
    if path.suffix == GGUF:
        _say_not_needed(assume, path)
        from planner.importers.gguf import read_gguf  # not needed for catalogue entries

        return read_gguf(path)
    check_name(path)
    data = read_mapping(path)
    if "dim" in data and "n_layers" in data and "architectures" not in data:
        from planner.importers.mistral import read_params  # not needed for catalogue entries

        folder = path.absolute().parent.name if path.name == PARAMS_NAME else ""
        return read_params(data, name=folder or path.stem, where=str(path))
    if "model_type" in data or "architectures" in data:
        return _read_config(path, data, assume, label)
    _say_not_needed(assume, path)
    return validate(Model, data, str(path))


def _say_not_needed(assume: str | None, path: Path) -> None:
    if assume is not None:
        LOG.warning("--assume %s was not needed: %s says what the model is", assume, path)


def _read_config(path: Path, data: dict[str, Any], assume: str | None, label: str) -> Model:
    from planner.importers.huggingface import (  # not needed for catalogue entries
        EXPORTER_NAME,
        find_block,
        name_notes,
        read_config,
    )

    is_folder = path.name == CONFIG_NAME
    folder, exporter = path.absolute().parent.name, path.parent / EXPORTER_NAME
    from_exporter = is_folder and find_block(data) is None and exporter.is_file()
    if from_exporter:
        data = {**data, "quantization_config": read_mapping(exporter)}
    model = read_config(data, name=(folder if is_folder else "") or path.stem, where=str(path), assume=assume)
    if from_exporter:
        source = model.quantization.source.replace("quantization_config", EXPORTER_NAME)
        model = model.model_copy(update={"quantization": model.quantization.model_copy(update={"source": source})})
    notes: tuple[str, ...] = ()
    if find_block(data) is None:
        names = (label, "" if is_folder else path.stem, folder, str(data.get("_name_or_path") or ""))
        notes = name_notes(names, path.name)
    if not is_folder:
        return model.model_copy(update={"notes": (*model.notes, *notes)})
    checkpoint, more = _read_checkpoint(path.parent, model)
    return model.model_copy(update={"checkpoint": checkpoint, "notes": (*model.notes, *notes, *more)})


def _read_checkpoint(folder: Path, model: Model) -> tuple[Checkpoint | None, tuple[str, ...]]:
    """Return what the files of weights beside a config take."""
    from planner.importers.checkpoints import INDEX_NAMES, read_checkpoint  # only for checkpoints

    name = next((name for name in INDEX_NAMES if (folder / name).is_file()), None)
    mapping = read_mapping(folder / name, limit=MAX_INDEX_BYTES) if name else None
    return read_checkpoint(folder, mapping, name=name or INDEX_NAMES[0], layers=model.num_hidden_layers)


def load_hardware(name: str) -> Hardware:
    """Return a chip: by its name in the catalogue, or from a YAML file.

    Raises
    ------
    InputError
        If there is no such chip, or its file cannot be used.
    """
    return _read_hardware(_find(name, "hardware", "hardware"))


def _read_hardware(path: Path) -> Hardware:
    return validate(Hardware, read_mapping(path), str(path)).with_latencies(default_latencies())


@cache
def default_latencies() -> Latencies:
    """Return the latencies of topologies, for chips whose file has none."""
    path = data_folder("hardware") / "links" / "default-latencies.yaml"
    return validate(Latencies, read_mapping(path), str(path))


def load_engine(name: str | None = None) -> Engine:
    """Return the memory rules of a serving engine: by its name in the catalogue, or from a YAML file.

    Parameters
    ----------
    name : str, optional
        A name or a path; the engine that the catalogue calls its default where not given.

    Raises
    ------
    InputError
        If there is no such engine, or its file cannot be used.
    """
    if name is not None:
        path = _find(name, ENGINES, "engine")
        return validate(Engine, read_mapping(path), str(path))
    for path in entries(ENGINES).values():
        data = read_mapping(path)
        if data.get("default") is True:
            return validate(Engine, data, str(path))
    raise InputError(f"{ENGINES}: no engine says `default: true`, name one with --engine")


def all_models() -> Iterator[tuple[str, Model]]:
    """Yield every model of the catalogue with its name; see `_every`."""
    yield from _every("models", read_model)


def all_hardware() -> Iterator[tuple[str, Hardware]]:
    """Yield every chip of the catalogue with its name; see `_every`."""
    yield from _every("hardware", _read_hardware)


def _every(kind: str, read: Callable[[Path], T]) -> Iterator[tuple[str, T]]:
    """Yield what each entry describes; say aloud which hide others, and which cannot be used and are left out."""
    say_hidden(kind)
    for name, path in entries(kind).items():
        try:
            found = read(path)
        except InputError as error:
            LOG.warning("left out: %s", error)
        else:
            yield name, found
