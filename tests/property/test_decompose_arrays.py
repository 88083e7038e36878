"""Every architecture gives the same operations point by point as over arrays, and adds up as it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.decompose import decompose
from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.model import Model
from planner.op import Kind
from planner.precision import policy
from planner.workload import Phase, Step

DATA = Path(__file__).parents[1] / "oracle" / "data" / "model_classes.jsonl"


def small_models() -> list[Model]:
    found: dict[str, Model] = {}
    for line in DATA.read_text().splitlines():
        record = json.loads(line)
        if record["model_type"] not in found and record["variant"].startswith("small"):
            try:
                found[record["model_type"]] = read_config(record["config"], name=record["model_type"], where="test")
            except CatalogueError:
                continue
    return list(found.values())


MODELS = small_models()
EACH = pytest.mark.parametrize("model", MODELS, ids=[model.name for model in MODELS])
BF16 = policy("bf16")


def values(model: Model, step: Step) -> list[tuple[str, Any, Any]]:
    return [(op.name, op.count * op.flops, op.count * op.memory_bytes) for op in decompose(model, step, BF16)]


@EACH
@pytest.mark.parametrize("phase", list(Phase))
def test_arrays_agree_with_numbers(model: Model, phase: Phase) -> None:
    batches, contexts = np.array([1.0, 4.0, 4.0]), np.array([0.0, 33.0, 9000.0])
    new = 1 if phase is Phase.DECODE else 40
    together = values(model, Step(phase=phase, batch=batches, context=contexts, new_tokens=new, mla="expanded"))
    for place, (batch, context) in enumerate(zip(batches, contexts, strict=True)):
        alone = values(model, Step(phase=phase, batch=int(batch), context=int(context), new_tokens=new, mla="expanded"))
        assert [name for name, _, _ in together] == [name for name, _, _ in alone]
        for (name, flops, moved), (_, flops_alone, moved_alone) in zip(together, alone, strict=True):
            assert np.broadcast_to(flops, 3)[place] == pytest.approx(flops_alone), name
            assert np.broadcast_to(moved, 3)[place] == pytest.approx(moved_alone), name


@EACH
def test_more_context_never_takes_fewer_flops_or_bytes(model: Model) -> None:
    steps = [Step(phase=Phase.DECODE, batch=2, context=context, mla="absorbed") for context in (100, 1000, 5000)]
    sums = [np.sum([row[1:] for row in values(model, step)], axis=0) for step in steps]
    # A chunk begins anew at its end: what one layer sees may shrink there, the work of a token otherwise never does.
    if not any("chunk" in kind.label for kind in model.layer_kinds):
        assert (np.diff(sums, axis=0) >= 0).all()


@EACH
def test_matmuls_of_a_token_use_the_active_parameters(model: Model) -> None:
    """One token's matmuls take two FLOPs for each active parameter of a matrix, biases and look-ups aside."""
    if model.encoder is not None or any(kind.layer.needs_source for kind in model.layer_kinds):
        pytest.skip("a part of the model does not run")
    ops = decompose(model, Step(phase=Phase.PREFILL, mla="expanded"), BF16)
    flops = sum(op.count * op.flops for op in ops if op.kind is Kind.MATMUL)
    tables = model.embedding.parameters * (0 if model.tie_word_embeddings else 1)
    assert flops <= 2 * (model.active_parameters - tables) * (1 + shared(model))


def shared(model: Model) -> float:
    """Return how often blocks that are stored once run again, at most."""
    return sum(kind.count for kind in model.layer_kinds for block in kind.layer.blocks if block.shared_weights)
