"""Towers and projectors against the transformers library's own classes, and those of released models (see data/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.importers.huggingface import read_config
from planner.importers.huggingface.towers import WHOLES

DATA = Path(__file__).parent / "data" / "towers.jsonl"
RECORDS = [json.loads(line) for line in DATA.read_text().splitlines()]

UNCOUNTED: dict[str, str] = {}
"""Types whose towers are not counted, and why."""


@pytest.mark.parametrize("record", RECORDS, ids=[f"{r['model_type']}-{r['variant']}" for r in RECORDS])
def test_towers_are_exact(record: dict[str, Any]) -> None:
    model = read_config(record["config"], name="test", where=record["model_type"])
    if record["model_type"] in UNCOUNTED:
        assert model.vision_parameters is None
        assert any("not counted" in note for note in model.notes)
    else:
        assert model.vision_parameters == record["vision_parameters"]
    if record["variant"] == "released":
        assert not any("tower" in note for note in model.notes)


def test_every_type_is_counted_or_has_a_reason() -> None:
    assert {record["model_type"] for record in RECORDS} - set(UNCOUNTED) <= set(WHOLES)
