"""The published schema and the loader refuse the same files, as far as the schema's language can say it."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from planner import catalogue
from planner.units import parse_quantity, quantity_pattern

ROOT = Path(__file__).parents[2]
FOLDERS = {"model": "models", "hardware": "hardware"}
WRONG: tuple[Any, ...] = (
    True,
    False,
    None,
    -5,
    -0.5,
    0,
    8.5,
    10**400,
    "",
    "frob",
    "8",
    "yes",
    "-3 GB",
    "0 GB",
    [],
    [1],
    {},
    {"a": 1},
)
"""What no field is likely to mean; whole floats are left out, since a schema takes 8.0 for 8."""

Path_ = tuple[str | int, ...]


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(catalogue.json_schema(kind))


@cache
def shipped(kind: str) -> tuple[Any, ...]:
    return tuple(yaml.safe_load(path.read_text("utf-8")) for path in sorted((ROOT / FOLDERS[kind]).glob("*.yaml")))


def places(data: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of every value below the top."""
    items: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def put(data: Any, path: Path_, value: Any) -> Any:
    damaged = copy.deepcopy(data)
    holder = damaged
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return damaged


def refusals(kind: str, data: Any) -> tuple[set[str], bool]:
    """Return the kinds of fault that the loader finds, and whether the schema finds any."""
    try:
        catalogue.DESCRIPTIONS[kind].model_validate(data)
        found: set[str] = set()
    except ValidationError as error:
        found = {detail["type"] for detail in error.errors(include_url=False)}
    return found, not validator(kind).is_valid(data)


def assert_agreed(kind: str, data: Any, what: str) -> None:
    found, schema_refuses = refusals(kind, data)
    if schema_refuses:
        assert found, f"{what}: refused by the schema, read by the loader"
    elif kind == "hardware":
        assert not found, f"{what}: read by the schema, refused by the loader"
    else:
        # Only what holds between fields is more than a schema can say; a list whose items have faults is told to be too short as well.
        assert not found or "value_error" in found <= {"value_error", "too_short"}, (
            f"{what}: read by the schema, refused by the loader"
        )


@pytest.mark.parametrize("kind", FOLDERS)
@given(draws=st.data())
def test_a_damaged_field_is_refused_by_both_or_by_neither(kind: str, draws: st.DataObject) -> None:
    data = draws.draw(st.sampled_from(shipped(kind)))
    path = draws.draw(st.sampled_from(list(places(data))))
    wrong = draws.draw(st.sampled_from(WRONG))
    assert_agreed(kind, put(data, path, wrong), f"{'.'.join(map(str, path))} = {wrong!r}")


FIELDS = {
    "hardware": [
        ("year", True),
        ("year", "2022"),
        ("chips_per_host", True),
        ("chips_per_host", "8"),
        ("devices_per_chip", True),
        ("memory.bandwidth.verified", "no"),
        ("memory.bandwidth.verified", 1),
        ("memory.bandwidth.value", "frob"),
        ("memory.bandwidth.value", -5),
        ("memory.bandwidth.value", 0),
        ("memory.bandwidth.value", "0.0e5 TB/s"),
        ("memory.bandwidth.value", "80 GiB"),
        ("memory.bandwidth.value", "-3 TB/s"),
        ("memory.bandwidth.value", True),
        ("links.scale_up.chips", "8"),
        ("links.scale_up.chips", True),
    ],
    "model": [
        ("quantization", {"linear": "frob"}),
        ("quantization", {"experts": "frob"}),
        ("quantization", {"linear": {"precision": "frob"}}),
        ("quantization", {"linear": {"precision": "w4a16", "bits": True}}),
        ("quantization", {"linear": {"precision": "w4a16", "bits": "4"}}),
        ("quantization", {"parts": [{"of": "qkv_proj", "stored": "frob"}]}),
        ("quantization", {"parts": [{"of": "qkv_proj", "stored": "bf16", "share": True}]}),
        ("quantization", {"unquantized": ["frob"]}),
        ("published_parameters", True),
    ],
}


@pytest.mark.parametrize(
    ("kind", "field", "wrong"), [(kind, *case) for kind, cases in FIELDS.items() for case in cases]
)
def test_both_refuse(kind: str, field: str, wrong: Any) -> None:
    name = {"hardware": "h100-sxm", "model": "llama-3.1-8b"}[kind]
    data = yaml.safe_load((ROOT / FOLDERS[kind] / f"{name}.yaml").read_text("utf-8"))
    found, schema_refuses = refusals(kind, put(data, tuple(field.split(".")), wrong))
    assert found
    assert schema_refuses


@pytest.mark.parametrize("dimension", ["FLOP/s", "B/s", "B", "s", "W", "USD/h", "USD"])
@given(draws=st.data())
def test_every_text_that_the_pattern_matches_is_a_quantity(dimension: str, draws: st.DataObject) -> None:
    text = draws.draw(st.from_regex(re.compile(quantity_pattern(dimension), re.ASCII), fullmatch=True))
    assert parse_quantity(text, dimension) >= 0
