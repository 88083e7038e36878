"""Every class of vLLM's model registry that generates text: which type it is read as, or that it is refused with a reason.

`tests/data/vllm_registry.csv` copies the names from vllm/model_executor/models/registry.py of vLLM 0.33.0: the lists of text generation
models (`text`), multimodal models (`multimodal`), models of earlier versions (`previous`), models run by the transformers library
(`transformers`) and by plug-ins (`plugin`). `two` is said of a file of two models, whose decoder is read.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from planner.errors import CatalogueError
from planner.importers.huggingface.architectures import ARCHITECTURES
from planner.importers.huggingface.families import FAMILIES
from planner.importers.huggingface.select import select
from planner.importers.huggingface.unsupported import REFUSED_CLASSES, UNSUPPORTED

LIST = Path(__file__).parents[1] / "data" / "vllm_registry.csv"
ROWS = list(csv.DictReader(LIST.read_text(encoding="utf-8").splitlines()))
TEXT_PARTS = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "text_config": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
}


def named(rows: list[dict[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=[row["architecture"] for row in rows])


def test_the_list_is_whole() -> None:
    """124 text generation models, 127 multimodal ones, 50 of earlier versions; none twice."""
    counts = {name: sum(row["list"] == name for row in ROWS) for name in ("text", "multimodal", "previous")}
    assert counts == {"text": 124, "multimodal": 127, "previous": 50}
    assert len({row["architecture"] for row in ROWS}) == len(ROWS)


@named([row for row in ROWS if row["outcome"] == "read"])
def test_class_is_read_where_the_type_is_not_known(row: dict[str, str]) -> None:
    assert ARCHITECTURES[row["architecture"]] == row["model_type"]
    chosen = select({"architectures": [row["architecture"]], "model_type": "of_another_name", **TEXT_PARTS}, "c.json")
    assert (chosen.wrapper_type or chosen.model_type) in {row["model_type"], FAMILIES[row["model_type"]].text}
    assert chosen.family in FAMILIES.values()
    assert "of_another_name" in chosen.notes[0]


@named([row for row in ROWS if row["outcome"] == "refused"])
def test_class_is_refused_with_a_reason(row: dict[str, str]) -> None:
    name, model_type = row["architecture"], row["model_type"]
    reason = UNSUPPORTED[model_type] if model_type else REFUSED_CLASSES[name]
    config = {"architectures": [name], "model_type": model_type or "llama", **TEXT_PARTS}
    with pytest.raises(CatalogueError, match=reason):
        select(config, "c.json")


@named([row for row in ROWS if row["outcome"] == "two"])
def test_decoder_of_two_models_is_read(row: dict[str, str]) -> None:
    assert ARCHITECTURES[row["architecture"]] == row["model_type"]
    assert "mbart" in (FAMILIES[row["model_type"]].decoders or {})


def test_all_that_generate_text_are_read_but_for_those_with_a_reason() -> None:
    refused = {row["architecture"] for row in ROWS if row["list"] == "text" and row["outcome"] != "read"}
    assert refused == set()


def test_every_named_class_has_a_type_that_is_known() -> None:
    assert set(ARCHITECTURES.values()) <= set(FAMILIES) | set(UNSUPPORTED)
