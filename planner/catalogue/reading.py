"""Reads YAML and JSON files strictly: no duplicate keys, no bombs, and every fault in one message."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from planner.errors import CatalogueError, nearest, shown
from planner.units import MEBI

MAX_FILE_BYTES = 4 * MEBI
MAX_NODES = 200_000
"""A description has some hundreds of values; a file that unfolds into more than this is a bomb or a mistake."""

MAX_DEPTH = 100
"""Descriptions nest some ten levels deep."""

CONFIG_NAME = "config.json"
PARAMS_NAME = "params.json"
"""Where Mistral describes a model beside its consolidated weights."""

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


def _check_events(text: str) -> None:
    """Refuse too many levels, before anything recurses into them (the C parser's stack is not guarded), and tags."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        tag: str | None = getattr(event, "tag", None)
        if tag is not None:
            line = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
            raise _FaultyTextError(f"{line}tag {tag[:60]!r}, not YAML that holds plain data: take the tag out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise _FaultyTextError("is nested too deeply to be a description")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


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
    try:
        _check_events(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            _check_size(node)
            return None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise _FaultyTextError(f"{line}not YAML that holds plain data: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise _FaultyTextError(f"not YAML: {' '.join(str(error).split())}") from None


def _parse_json(text: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key, value in items:
            if key in mapping:
                raise _FaultyTextError(f"key {key!r} stands twice, keep one")
            mapping[key] = value
        return mapping

    try:
        data = json.loads(text, object_pairs_hook=pairs)
        if "\\ud" in text.lower():  # half of a character that is written as two escapes
            json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _FaultyTextError("an escape such as \\ud800 stands for no character") from None
    except json.JSONDecodeError as error:
        raise _FaultyTextError(f"line {error.lineno}: not JSON: {error.msg}") from None
    return data


def _read_text(path: Path, limit: int) -> str:
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise CatalogueError(str(path), [f"is a folder without {CONFIG_NAME} or a GGUF file, name a file"])
        if not path.is_file():
            raise CatalogueError(str(path), ["is no regular file, name a YAML or JSON file"])
        if size > limit:
            raise CatalogueError(str(path), [f"is {size} bytes large, at most {limit} are read"])
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        gone = path.is_symlink() and isinstance(error, FileNotFoundError)
        problem = "is a link to a file that is not there" if gone else f"cannot be read: {error.strerror or error}"
        raise CatalogueError(str(path), [problem]) from None
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
        details = error.errors(include_url=False)
        inside = {detail["loc"][:end] for detail in details for end in range(len(detail["loc"]))}
        # A list whose items have faults is told to be too short as well.
        told = [detail for detail in details if not (detail["type"] == "too_short" and detail["loc"] in inside)]
        raise CatalogueError(where, dict.fromkeys(_fault(detail, kind) for detail in told)) from None
    except RecursionError:
        raise CatalogueError(where, ["is nested too deeply to be a description"]) from None


def _locate(location: Sequence[int | str], kind: type[BaseModel]) -> tuple[str, set[str]]:
    """Return where a fault is as the file's author writes it, and the fields that are known there.

    The validator's location names branches of unions as well, which stand in no file.
    """
    parts: list[str] = []
    classes: set[type[BaseModel]] = {kind}
    for index, part in enumerate(location):
        fields = [described.model_fields[part] for described in classes if part in described.model_fields]
        if fields:
            classes = {found for field in fields for found in _classes(field.annotation)}
        elif classes and not isinstance(part, int) and index < len(location) - 1:
            classes = {found for found in classes if part in _kinds(found)} or classes
            continue
        parts.append(str(part))
    return ".".join(parts) or "file", {name for described in classes for name in described.model_fields}


def _classes(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the descriptions that an annotation holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _classes(argument)


def _kinds(described: type[BaseModel]) -> tuple[object, ...]:
    """Return the values of `kind` that stand for a description."""
    field = described.model_fields.get("kind")
    return get_args(field.annotation) if field else ()


def _fault(detail: Any, kind: type[BaseModel]) -> str:
    # The last part of an unknown field is its own name, of which nothing is known.
    unknown = detail["type"] == "extra_forbidden"
    field, known = _locate(detail["loc"][:-1] if unknown else detail["loc"], kind)
    match detail["type"]:
        case "missing":
            return f"{field}: is missing"
        case "extra_forbidden":
            own = str(detail["loc"][-1])
            hint = nearest(own, known) or "take it out"
            return f"{own if field == 'file' else f'{field}.{own}'}: unknown field, {hint}"
        case "value_error":
            return f"{field}: {detail['ctx']['error']}"
        case _:
            message = detail["msg"].removeprefix("Input ")
            return f"{field}: {shown(detail.get('input'))} is wrong, {message}"
