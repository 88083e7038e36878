"""Reads YAML and JSON files strictly: no duplicate keys, no bombs, and every fault in one message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from planner.errors import CatalogueError, nearest
from planner.units import MEBI

MAX_FILE_BYTES = 4 * MEBI
MAX_NODES = 200_000
"""A description has some hundreds of values; a file that unfolds into more than this is a bomb or a mistake."""

CONFIG_NAME = "config.json"

M = TypeVar("M", bound=BaseModel)


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


def _read_text(path: Path, limit: int) -> str:
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise CatalogueError(str(path), [f"is a folder without {CONFIG_NAME}, name a file"])
        if not path.is_file():
            raise CatalogueError(str(path), ["is no regular file, name a YAML or JSON file"])
        if size > limit:
            raise CatalogueError(str(path), [f"is {size} bytes large, at most {limit} are read"])
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CatalogueError(str(path), [f"cannot be read: {error.strerror or error}"]) from None
    except UnicodeDecodeError:
        raise CatalogueError(str(path), ["is not UTF-8 text, a YAML or JSON file is expected"]) from None


def read_mapping(path: Path, *, limit: int = MAX_FILE_BYTES) -> dict[str, Any]:
    """Read one YAML or JSON file that holds a mapping.

    Parameters
    ----------
    path : Path
        The file.
    limit : int
        Largest size that is read [B].

    Raises
    ------
    CatalogueError
        If the file is missing, a folder, empty, binary, too large, broken, or holds no mapping.
    """
    text = _read_text(path, limit)
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
    location = [str(part) for part in detail["loc"] if part not in ("one", "several")]
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
