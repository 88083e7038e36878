"""Parameters, cache bytes and FLOPs of released models, against those measured on the model classes (see data/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.decompose import decompose
from planner.importers.huggingface import read_config
from planner.memory import cache_bytes
from planner.model import Model
from planner.op import Kind
from planner.scenario import choose_precision
from planner.units import FORMATS
from planner.workload import Phase, Step

DATA = Path(__file__).parent / "data"
RECORDS = json.loads((DATA / "released.json").read_text())

DIFFERENT = {
    # Where the planner counts otherwise, and why.
    (
        "tiiuae/falcon-180B",
        "kv_bytes_per_token",
    ): "the library copies each of the 8 KV heads to all its query heads; engines cache 8",
    ("xai-org/grok-1", "parameters"): "the stand-in has two norms in a layer, the model four",
    ("xai-org/grok-1", "active_parameters"): "the stand-in has two norms in a layer, the model four",
    (
        "openbmb/MiniCPM-2B",
        "parameters",
    ): "the file says that the embeddings are not tied, as those of the 128k model are not",
    ("openbmb/MiniCPM-2B", "active_parameters"): "the file says that the embeddings are not tied",
    ("tiiuae/Falcon-H1-0.5B-Base", "flops"): "the counter took the state space's inner products for matmuls",
    ("NX-AI/xLSTM-7b", "flops"): "the counter took the matrix memory's inner products for matmuls",
}

MODELS = pytest.mark.parametrize("record", RECORDS, ids=[record["model"] for record in RECORDS])


def read(record: dict[str, Any]) -> Model:
    data = json.loads((DATA / "configs" / record["config"]).read_text())
    return read_config(data, name=record["model"], where=record["config"])


def counts(model: Model) -> dict[str, float]:
    cache = cache_bytes(model, FORMATS["bf16"])
    return {
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "embedding_parameters": model.embedding.parameters,
        "kv_bytes_per_token": cache.per_token,
        "kv_window_bytes": cache.window,
        "state_bytes": cache.state,
        "indexer_bytes_per_token": cache.index_per_token,
    }


@MODELS
def test_counts_are_exact(record: dict[str, Any]) -> None:
    found = counts(read(record))
    expected = {key: record[key] for key in found if key in record and (record["model"], key) not in DIFFERENT}
    assert {key: found[key] for key in expected} == expected


@MODELS
def test_flops_are_within_a_thousandth(record: dict[str, Any]) -> None:
    if (record["model"], "flops") in DIFFERENT:
        pytest.skip(DIFFERENT[record["model"], "flops"])
    model = read(record)
    precision = choose_precision(model, "bf16")
    for case in record["flops"]:
        switches = {name.removeprefix("--"): value for name, value in zip(*[iter(case["options"])] * 2, strict=True)}
        step = Step(
            phase=Phase(case["phase"]),
            batch=case["batch"],
            context=case["context"],
            new_tokens=case["new_tokens"],
            **switches,
        )
        ops = decompose(model, step, precision)
        flops = sum(op.count * op.flops for op in ops if op.kind in (Kind.MATMUL, Kind.ATTENTION))
        assert flops == pytest.approx(case["flops"], rel=1e-3)


def test_differences_are_still_differences() -> None:
    """An exception that has become equal is to be taken out."""
    by_name = {record["model"]: record for record in RECORDS}
    for model, key in DIFFERENT:
        if key != "flops":
            assert counts(read(by_name[model]))[key] != by_name[model][key]


@MODELS
def test_released_files_leave_nothing_unread(record: dict[str, Any]) -> None:
    assert [note for note in read(record).notes if note.startswith("not read")] == []
