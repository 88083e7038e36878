"""The JSON Schema of the YAML formats, from the descriptions themselves: what each field is stands beside it in the code."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from planner.hardware import Hardware
from planner.model import Model

DESCRIPTIONS: Mapping[str, type[BaseModel]] = {"model": Model, "hardware": Hardware}
"""What each format is read into."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a format, with the fields' docstrings as descriptions.

    Parameters
    ----------
    kind : {"model", "hardware"}
        Which.
    """
    root = DESCRIPTIONS[kind]
    schema = root.model_json_schema(mode="validation")
    described = {part.__name__: part for part in _subclasses(BaseModel)}
    for name, part in {root.__name__: schema, **schema.get("$defs", {})}.items():
        if name in described:
            _describe(part, described[name])
    return {"$schema": DIALECT, **schema}


def _subclasses(root: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for child in root.__subclasses__():
        if child.__module__.startswith("planner."):
            yield child
        yield from _subclasses(child)


def _describe(part: dict[str, Any], described: type[BaseModel]) -> None:
    """Add what the docstrings of a class, and of those it inherits from, say of its fields."""
    parents = (base for base in reversed(described.__mro__) if base.__module__.startswith("planner."))
    texts = {field: text for base in parents for field, text in field_docstrings(base)}
    for field, entry in part.get("properties", {}).items():
        if field in texts:
            # Keywords beside a reference are in order since draft 2019-09.
            entry.setdefault("description", texts[field])


def field_docstrings(described: type) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class that have a text below them, with the text on one line."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(described)))
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    for statement, below in pairwise(body):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            yield statement.target.id, " ".join(below.value.value.split())
