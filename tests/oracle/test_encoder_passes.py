"""FLOPs of a source and a decoder's first tokens, against a forward pass of the class (see data/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.decompose import decompose
from planner.importers.huggingface import read_config
from planner.precision import policy
from planner.workload import Phase, Step

DATA = Path(__file__).parent / "data" / "encoder_passes.jsonl"
RECORDS = [json.loads(line) for line in DATA.read_text().splitlines()]

NEAR = 0.002
"""Learned tokens beside the patches pass the patches' matrix here, and a pooler is stored but does not run."""

FARTHER = {
    # (type, variant): how far the planner may be below the class, and why.
    ("vision-encoder-decoder", "small-c"): (
        0.15,
        "windows of 5 x 5 are filled up on 32 x 24 patches; early stages have no scores",
    ),
    ("vision-encoder-decoder", "small-d"): (0.04, "as small-c"),
    ("pp_formulanet", "small-a"): (0.08, "the picture's layers have no scores"),
    ("cohere_asr", "small-a"): (0.08, "scores by distance, and convolutions of single channels"),
    ("canary", "small-b"): (0.08, "as cohere_asr"),
    ("speecht5", "small-a"): (0.08, "scores by distance"),
    ("moonshine", "small-b"): (0.02, "frames at the end of 20,000 samples that the strides do not fill"),
    ("moonshine_streaming", "small-b"): (0.01, "its windows are not even, and keys outside are masked only"),
}


@pytest.mark.parametrize("record", RECORDS, ids=[f"{r['model_type']}-{r['variant']}" for r in RECORDS])
def test_flops_are_those_of_a_forward_pass(record: dict[str, Any]) -> None:
    model = read_config(record["config"], name="test", where=record["model_type"])
    new_tokens = record["new_tokens"]
    step = Step(phase=Phase.PREFILL, batch=1, new_tokens=new_tokens, context=0, mask="full", logits="all")
    flops = sum(float(op.flops) * op.count for op in decompose(model, step, policy("bf16")))
    below, _ = FARTHER.get((record["model_type"], record["variant"]), (NEAR, ""))
    assert (1 - below) * record["flops"] <= flops <= (1 + NEAR) * record["flops"]
