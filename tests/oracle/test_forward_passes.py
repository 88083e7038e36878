"""FLOPs of a prefill against a forward pass of the transformers library's own class, counted matmul by matmul (see data/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.decompose import decompose
from planner.importers.huggingface import read_config
from planner.model import Model
from planner.op import Kind, Op
from planner.precision import policy
from planner.workload import Phase, Step

DATA = Path(__file__).parent / "data"
CONFIGS = {
    (record["model_type"], record["variant"]): record["config"]
    for record in map(json.loads, (DATA / "model_classes.jsonl").read_text().splitlines())
}

INDEX = "the indexer's projections stand apart"
STATE = "the step size's projection is part of the recurrence"

WEIGHTS = {
    # type: why the class's matmuls with weights are others.
    **dict.fromkeys(
        (
            "deepseek_v32",
            "deepseek_v4",
            "glm_moe_dsa",
            "hy_v4",
            "axk2",
            "dots3_note_text",
            "glm5_next",
            "mistral_large4",
        ),
        INDEX,
    ),
    **dict.fromkeys(("jamba", "mamba", "falcon_mamba", "zamba"), STATE),
    "gemma3n": "the class looks every text token up in the picture's vocabulary too, and asks a router of 4 columns twice",
    "gemma3n_text": "the class asks a router of 4 columns twice",
    "phimoe": "the class sends a token to one expert where two are equal",
    "mpt": "the class takes four times the hidden size whatever expansion_ratio says; engines heed it",
    "llama4_text": "the class runs every expert on every token; engines run the chosen ones",
    "doge": "experts of single neurons",
    "longcat_flash": "zero-compute experts take tokens as routing has it; on average here",
    "cpmant": "the class puts 32 tokens of prompt before the text",
    **dict.fromkeys(
        ("inkling2", "inkling2_text", "inkling_mm_model", "inkling_text"),
        "the class scores a bias for 1,024 positions whatever the context",
    ),
}

CORES = {
    # type: why the class's matmuls without weights are others, where all are of softmax attention.
    **dict.fromkeys(
        (
            "deepseek_v32",
            "deepseek_v4",
            "glm_moe_dsa",
            "hy_v4",
            "axk2",
            "dots3_note_text",
            "glm5_next",
            "mistral_large4",
        ),
        "the indexer scores",
    ),
    **dict.fromkeys(("gemma3n", "gemma3n_text"), "the streams are mixed by coefficients of the token"),
    "doge": "experts of single neurons",
    "diffllama": "the class computes each map of scores twice; engines once",
    "cpmant": "the class puts 32 tokens of prompt before the text",
    **dict.fromkeys(("inkling2", "inkling2_text", "inkling_mm_model", "inkling_text"), "the streams are mixed"),
}


def _read(line: str) -> tuple[dict[str, Any], Model]:
    record = json.loads(line)
    config = CONFIGS[record["model_type"], record["variant"]]
    return record, read_config(config, name="test", where=record["model_type"])


RECORDS = [
    (record, model)
    for record, model in map(_read, (DATA / "forward_passes.jsonl").read_text().splitlines())
    if model.encoder is None
]


def prefill(record: dict[str, Any], model: Model) -> tuple[Op, ...]:
    """Every token attends to every other: what a class without fused kernels computes before it masks."""
    step = Step(phase=Phase.PREFILL, new_tokens=record["tokens"], mask="full", logits="all", mla="expanded")
    return tuple(decompose(model, step, policy("bf16")))


def named(records: list[tuple[dict[str, Any], Model]]) -> pytest.MarkDecorator:
    ids = [f"{record['model_type']}-{record['variant']}" for record, _ in records]
    return pytest.mark.parametrize(("record", "model"), records, ids=ids)


def is_softmax_alone(model: Model) -> bool:
    return all(not block.cache.state_bytes for kind in model.layer_kinds for block in kind.layer.mixers)


@named([(r, m) for r, m in RECORDS if r["model_type"] not in WEIGHTS])
def test_matmuls_with_weights(record: dict[str, Any], model: Model) -> None:
    flops = sum(op.count * op.flops for op in prefill(record, model) if op.kind is Kind.MATMUL)
    assert flops == pytest.approx(record["weight_flops"], rel=1e-12)


@named([(r, m) for r, m in RECORDS if r["model_type"] not in CORES and is_softmax_alone(m)])
def test_attention_cores(record: dict[str, Any], model: Model) -> None:
    """Windows are masked, not skipped, by a class without fused kernels: every pair of tokens is computed."""
    pairs = record["tokens"] ** 2
    cores = [op for op in prefill(record, model) if op.kind is Kind.ATTENTION]
    flops = sum(op.count * op.flops / op.pairs * pairs for op in cores)
    assert flops == pytest.approx(record["attention_flops"], rel=1e-12)
