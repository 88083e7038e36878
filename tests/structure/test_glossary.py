"""Every key of the JSON interface is in docs/glossary.md: one line, one unit, one meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import run_planner

from planner.precision import Role

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
ROW = re.compile(r"^\| `([a-z0-9_]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)

UNIT_OF_ENDING = {
    "_bytes": "B",
    "_bytes_per_token": "B",
    "_bytes_per_sequence": "B",
    "_s": "s",
    "_flops": "FLOP",
    "_intensity": "FLOP/B",
}
"""What the ending of a key says about its unit."""


def terms() -> dict[str, str]:
    """Return the terms of the glossary with their units."""
    return {term: unit for term, unit, _ in ROW.findall(GLOSSARY.read_text(encoding="utf-8"))}


def keys(value: Any) -> Iterator[str]:
    """Yield the keys of nested mappings."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_every_row_is_a_term_with_a_unit_and_a_meaning() -> None:
    rows = [line for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert len(rows) > 80
    assert [line for line in rows if not ROW.match(line)] == []


def test_no_term_stands_twice() -> None:
    found = [term for term, _, _ in ROW.findall(GLOSSARY.read_text(encoding="utf-8"))]
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    "arguments",
    [
        ("ops", "llama-3.1-8b", "--hardware", "h100-sxm"),
        ("ops", "deepseek-v3", "--hardware", "h200-sxm", "--tp", "4", "--pp", "2", "--phase", "prefill"),
        ("model", "llama-3.1-8b", "--context", "8192"),
        ("model", "deepseek-v3"),
        ("solve", "llama-3.1-8b", "--hardware", "h100-sxm"),
        ("models",),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_every_key_of_the_json_is_a_term(arguments: tuple[str, ...]) -> None:
    result = run_planner(*arguments, "--format", "json")
    assert result.code == 0, result.stderr
    found = set(keys(json.loads(result.stdout)))
    assert len(found) > 5
    assert found - {"id", *map(str, Role)} <= terms().keys()


@pytest.mark.parametrize(("ending", "unit"), UNIT_OF_ENDING.items())
def test_the_ending_of_a_key_says_its_unit(ending: str, unit: str) -> None:
    matching = {term: found for term, found in terms().items() if term.endswith(ending)}
    exceptions = {"tokens_per_s", "attainable_flops"}
    assert matching.keys() - exceptions
    assert {term: found for term, found in matching.items() if found != unit and term not in exceptions} == {}
