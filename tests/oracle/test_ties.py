"""Which of two `tie_word_embeddings` the classes of several towers heed, in each combination (see data/README.md)."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from planner.importers.huggingface import read_config

DATA = Path(__file__).parent / "data"
SMALL = {
    record["model_type"]: record["config"]
    for record in map(json.loads, (DATA / "model_classes.jsonl").read_text().splitlines())
    if record["variant"] == "small-a"
}
FLAGS = {"": None, "true": True, "false": False}
TEXT_PARTS = ("text_config", "language_config", "thinker_config")

with (DATA / "ties.csv").open(newline="") as file:
    ROWS = list(csv.DictReader(file))


def stating(config: dict[str, Any], tied: bool | None) -> dict[str, Any]:
    rest = {key: value for key, value in config.items() if key != "tie_word_embeddings"}
    return rest if tied is None else {**rest, "tie_word_embeddings": tied}


def with_text(config: dict[str, Any], tied: bool | None) -> dict[str, Any]:
    """State it in the innermost text part."""
    part = next((name for name in TEXT_PARTS if name in config), None)
    return stating(config, tied) if part is None else {**config, part: with_text(config[part], tied)}


@pytest.mark.parametrize("row", ROWS, ids=[f"{r['model_type']}-{r['whole']}-{r['text']}" for r in ROWS])
def test_the_class_decides_which_is_heeded(row: dict[str, str]) -> None:
    config = stating(with_text(SMALL[row["model_type"]], FLAGS[row["text"]]), FLAGS[row["whole"]])
    assert read_config(config, name="test", where=row["model_type"]).parameters == int(row["parameters"])
