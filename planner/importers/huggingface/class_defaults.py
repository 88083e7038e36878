"""What a configuration class supplies for a field that a file leaves out.

The table was taken from the configuration classes of the transformers library, 5.24.0, and holds the fields that readers ask for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files(__package__).joinpath("class_defaults.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = json.loads(text)
    return table


def class_defaults(model_type: str) -> Mapping[str, Any]:
    """Return the defaults of an architecture by the file's field names; empty where none are recorded."""
    return _table().get(model_type, {})
