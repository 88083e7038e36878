"""What a configuration class supplies for a field that a file leaves out, and which of its fields change nothing.

The table was taken from the configuration classes of the transformers library, 5.24.0. For each ``model_type`` it holds the defaults
of the fields that readers ask for, and under ``inert`` the names of the other fields of the class. A field of the class that a
reader has not asked for is one that leaves the class's own count of parameters as it is, or that is heeded only where another is absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

INERT = "inert"


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files(__package__).joinpath("class_defaults.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = json.loads(text)
    return table


def class_defaults(model_type: str) -> Mapping[str, Any]:
    """Return the defaults of an architecture by the file's field names; empty where none are recorded."""
    return _table().get(model_type, {})


def inert_fields(model_type: str) -> Sequence[str]:
    """Return the fields of an architecture's class, which change nothing that is counted where a reader has not asked for them."""
    known = class_defaults(model_type)
    return (*known, *known.get(INERT, ()))
