"""Towers and projectors against the transformers library's own classes, and those of released models (see data/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.importers.huggingface import read_config
from planner.importers.huggingface.towers import WHOLES
from planner.model import Model

DATA = Path(__file__).parent / "data"
RECORDS = [
    json.loads(line)
    for name in ("towers.jsonl", "towers_more.jsonl")
    for line in (DATA / name).read_text().splitlines()
]


def read(record: dict[str, Any]) -> Model:
    config = record.get("config") or json.loads((DATA / "configs" / record["file"]).read_text())
    return read_config(config, name="test", where=record["model_type"])


@pytest.mark.parametrize("record", RECORDS, ids=[f"{r['model_type']}-{r['variant']}" for r in RECORDS])
def test_towers_are_exact(record: dict[str, Any]) -> None:
    model = read(record)
    assert model.vision_parameters == record["vision_parameters"]
    if record["variant"] == "released":
        assert not any("tower" in note for note in model.notes)


def test_every_type_is_counted() -> None:
    assert {record["model_type"] for record in RECORDS if "config" in record} <= set(WHOLES)


RELEASED = [record for record in RECORDS if "file" in record or record["variant"].startswith("released")]


@pytest.mark.parametrize("record", RELEASED, ids=[r["variant"] for r in RELEASED])
def test_files_of_released_models_leave_nothing_unread(record: dict[str, Any]) -> None:
    told = [note for note in read(record).notes if "tower" in note or "counted" in note]
    # Files that were saved without what the class supplies are counted, and said to be.
    assert [note for note in told if "is not in the file" not in note] == []
