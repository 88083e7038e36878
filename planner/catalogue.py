"""Finds and strictly reads models, hardware and templates: the only reader of data files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from planner.engine import Engine
from planner.errors import CatalogueError, InputError, nearest
from planner.hardware import Hardware, Latencies
from planner.model import Model

MAX_FILE_BYTES = 4 * 2**20
MAX_NODES = 200_000
"""A description has some hundreds of values; a file that unfolds into more than this is a bomb or a mistake."""

CONFIG_NAME = "config.json"

ENGINES = "hardware/engines"
"""Rules of engines lie with the chips that they run on: they say how much of a chip's memory is left."""

M = TypeVar("M", bound=BaseModel)


def data_folder(name: str) -> Path:
    """Return the folder `name` (models, hardware, templates) of an installed wheel, or of the checkout."""
    package = Path(__file__).parent
    installed = package / "_data" / name
    return installed if installed.is_dir() else package.parent / name


def names(folder: str) -> list[str]:
    """Return the names in a catalogue folder, sorted."""
    return sorted(path.stem for path in data_folder(folder).glob("*.yaml"))


# ---- reading ---------------------------------------------------------------------------------------------------------


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """A safe loader that refuses duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT002
        self.flatten_mapping(node)
        mapping: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _FaultyTextError(f"line {key_node.start_mark.line + 1}: key {key!r} is not text, quote it")
            if key in mapping:
                raise _FaultyTextError(f"line {key_node.start_mark.line + 1}: key {key!r} stands twice, keep one")
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping


_Loader.add_constructor("tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node, deep=True))


class _FaultyTextError(Exception):
    """What is wrong with a text, in words."""


def _check_size(node: yaml.Node | None) -> None:
    """Refuse a document whose aliases unfold into more than `MAX_NODES` nodes, or into themselves."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(current: yaml.Node) -> int:
        key = id(current)
        if key in open_nodes:
            raise _FaultyTextError("an alias refers to itself, write the values out")
        if key not in sizes:
            open_nodes.add(key)
            children = current.value if isinstance(current, yaml.CollectionNode) else ()
            flat = (c for pair in children for c in pair) if isinstance(current, yaml.MappingNode) else children
            sizes[key] = 1 + sum(size(child) for child in flat)
            open_nodes.remove(key)
            if sizes[key] > MAX_NODES:
                raise _FaultyTextError(f"unfolds into more than {MAX_NODES} values, a description has some hundreds")
        return sizes[key]

    if node is not None:
        size(node)


def _parse_yaml(text: str) -> Any:
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        _check_size(node)
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise _FaultyTextError(f"{line}not YAML that holds plain data: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise _FaultyTextError(f"not YAML: {' '.join(str(error).split())}") from None
    finally:
        loader.dispose()


def _parse_json(text: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key, value in items:
            if key in mapping:
                raise _FaultyTextError(f"key {key!r} stands twice, keep one")
            mapping[key] = value
        return mapping

    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise _FaultyTextError(f"line {error.lineno}: not JSON: {error.msg}") from None


def _read_text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise CatalogueError(str(path), [f"is a folder without {CONFIG_NAME}, name a file"])
        if not path.is_file():
            raise CatalogueError(str(path), ["is no regular file, name a YAML or JSON file"])
        if size > MAX_FILE_BYTES:
            raise CatalogueError(str(path), [f"is {size} bytes large, at most {MAX_FILE_BYTES} are read"])
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CatalogueError(str(path), [f"cannot be read: {error.strerror or error}"]) from None
    except UnicodeDecodeError:
        raise CatalogueError(str(path), ["is not UTF-8 text, a YAML or JSON file is expected"]) from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Read one YAML or JSON file that holds a mapping.

    Raises
    ------
    CatalogueError
        If the file is missing, a folder, empty, binary, too large, broken, or holds no mapping.
    """
    text = _read_text(path)
    if not text.strip():
        raise CatalogueError(str(path), ["is empty, a YAML or JSON file is expected"])
    try:
        data = _parse_json(text) if text.lstrip().startswith("{") and path.suffix != ".yaml" else _parse_yaml(text)
    except _FaultyTextError as error:
        raise CatalogueError(str(path), [str(error)]) from None
    except RecursionError:
        raise CatalogueError(str(path), ["is nested too deeply to be a description"]) from None
    except ValueError as error:
        raise CatalogueError(str(path), [f"holds a value that cannot be read: {error}"]) from None
    if not isinstance(data, dict):
        raise CatalogueError(str(path), [f"holds a {type(data).__name__}, a mapping of fields is expected"])
    return data


def validate(kind: type[M], data: Mapping[str, Any], where: str) -> M:
    """Build a description from data, or raise `CatalogueError` with every fault in it."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        faults = dict.fromkeys(_fault(detail, kind) for detail in error.errors(include_url=False))
        raise CatalogueError(where, faults) from None
    except RecursionError:
        raise CatalogueError(where, ["is nested too deeply to be a description"]) from None


def _fault(detail: Any, kind: type[BaseModel]) -> str:
    location = [str(part) for part in detail["loc"]]
    field = ".".join(location) or "file"
    value = detail.get("input")
    shown = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."  # noqa: PLR2004 - an error stays one readable line
    match detail["type"]:
        case "missing":
            return f"{field}: is missing"
        case "extra_forbidden":
            known = kind.model_fields if len(location) == 1 else {}
            hint = nearest(location[-1], known)
            return f"{field}: unknown field{', ' + hint if hint else ', take it out'}"
        case "value_error":
            return f"{field}: {detail['ctx']['error']}"
        case _:
            message = detail["msg"].removeprefix("Input ")
            return f"{field}: {shown} is wrong, {message}"


# ---- looking up ------------------------------------------------------------------------------------------------------


def _looks_like_path(name: str) -> bool:
    return os.sep in name or name.endswith((".yaml", ".yml", ".json")) or name in (".", "..")


def _find(name: str, folder: str, noun: str) -> Path:
    """Return the file that `name` stands for: a catalogue entry, or a path."""
    if "\0" in name or not name.strip():
        raise InputError(f"{name!r}: is no name of a {noun}, see `planner {folder}`")
    entry = data_folder(folder) / f"{name}.yaml"
    if not _looks_like_path(name):
        if entry.is_file():
            return entry
        lower = {known.lower(): known for known in names(folder)}
        if name.lower() in lower:
            return data_folder(folder) / f"{lower[name.lower()]}.yaml"
    path = Path(name)
    try:
        if path.is_dir() and (path / CONFIG_NAME).is_file():
            return path / CONFIG_NAME
        if path.exists():
            return path
    except OSError as error:
        raise InputError(f"{name[:80]}: cannot be read: {error.strerror or error}") from None
    if _looks_like_path(name) and not (data_folder(folder) / f"{path.name}.yaml").is_file():
        raise InputError(f"{name}: no such file")
    listed = (
        f"known are {', '.join(names(folder))}"
        if folder == ENGINES
        else f"the catalogue is listed by `planner {folder}`"
    )
    raise InputError(f"{name}: unknown {noun}, {nearest(path.name, names(folder)) or listed}")


def load_model(name: str) -> Model:
    """Return a model: by its name in the catalogue, from a YAML file, or from a Hugging Face config or its folder.

    Raises
    ------
    InputError
        If there is no such model, or its file cannot be used.
    """
    path = _find(name, "models", "model")
    data = read_mapping(path)
    if "model_type" in data or "architectures" in data:
        from planner.importers.huggingface import read_config  # noqa: PLC0415 - not needed for catalogue entries

        label = path.parent.name if path.name == CONFIG_NAME and path.parent.name else path.stem
        return read_config(data, name=label, where=str(path))
    return validate(Model, data, str(path))


def load_hardware(name: str) -> Hardware:
    """Return a chip: by its name in the catalogue, or from a YAML file.

    Raises
    ------
    InputError
        If there is no such chip, or its file cannot be used.
    """
    path = _find(name, "hardware", "hardware")
    return validate(Hardware, read_mapping(path), str(path)).with_latencies(default_latencies())


def load_engine(name: str) -> Engine:
    """Return the memory rules of a serving engine: by its name in the catalogue, or from a YAML file.

    Raises
    ------
    InputError
        If there is no such engine, or its file cannot be used.
    """
    path = _find(name, ENGINES, "engine")
    return validate(Engine, read_mapping(path), str(path))


@cache
def default_latencies() -> Latencies:
    """Return the latencies of topologies, for chips whose file has none."""
    path = data_folder("hardware") / "links" / "latency.yaml"
    return validate(Latencies, read_mapping(path), str(path))


def all_models() -> Iterator[tuple[str, Model]]:
    """Yield every model of the catalogue with its name."""
    for name in names("models"):
        yield name, load_model(str(data_folder("models") / f"{name}.yaml"))


def all_hardware() -> Iterator[tuple[str, Hardware]]:
    """Yield every chip of the catalogue with its name."""
    for name in names("hardware"):
        yield name, load_hardware(str(data_folder("hardware") / f"{name}.yaml"))
