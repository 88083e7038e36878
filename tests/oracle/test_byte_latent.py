"""The byte latent transformer: matmuls against the library's class with patches of a fixed length, and steps by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.decompose import decompose
from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.memory import cache_bytes, sequence_bytes
from planner.model import Model
from planner.op import Kind, Op
from planner.precision import policy
from planner.units import FORMATS
from planner.workload import Phase, Step

DATA = Path(__file__).parent / "data" / "model_classes.jsonl"
RECORDS = {r["variant"]: r for r in map(json.loads, DATA.read_text().splitlines()) if r["model_type"] == "blt"}
BF16 = FORMATS["bf16"]
BYTES = 8192


def read(variant: str, **more: Any) -> Model:
    return read_config({**RECORDS[variant]["config"], **more}, name="test", where="config.json")


def lowered(model: Model, **step: Any) -> tuple[Op, ...]:
    return decompose(model, Step(**{"phase": Phase.DECODE, "context": BYTES, **step}), policy("bf16"))


def total(ops: tuple[Op, ...], kind: Kind, field: str = "flops") -> float:
    return sum(op.count * getattr(op, field) for op in ops if op.kind is kind)


@pytest.mark.parametrize("variant", [name for name, record in RECORDS.items() if "matmuls" in record])
def test_matmuls_are_those_of_the_class(variant: str) -> None:
    """The class was given patches of `patch_size` bytes, so its patcher did not run; it is counted with all its bytes."""
    record = RECORDS[variant]["matmuls"]
    ops = lowered(read(variant), phase=Phase.PREFILL, new_tokens=record["tokens"], context=0, logits="all")
    assert total(ops, Kind.MATMUL) == record["flops"] + record["patcher_flops"]


def test_released_sizes() -> None:
    """The class's defaults are those of the 1B model, whose tables of hashes hold three billions more (arXiv 2412.09871)."""
    model = read("default")
    hashes, _ = model.tables
    outside = hashes.rows * hashes.width
    assert outside == 6 * 500_002 * 1024
    # A byte looks up six rows, beside its own of the encoder's and of the patcher's embedding.
    assert total(lowered(model), Kind.EMBEDDING, "weight_bytes") == (7 * 1024 + 768) * 2
    assert model.parameters - outside == pytest.approx(1.6e9, rel=0.05)


def test_cache_of_bytes_and_of_patches() -> None:
    kept = cache_bytes(read("default"), BF16)
    # 25 layers of 2 x 2048 elements for a patch of four bytes.
    assert kept.per_token == 25 * 2 * 2048 / 4 * 2
    # Windows of 512 bytes: 14 layers of 2 x 768, one and nine of 2 x 1024.
    assert kept.window == 512 * (14 * 2 * 768 + 10 * 2 * 1024) * 2
    # Within a patch: keys and values of its four bytes, and in each of nine layers of its two vectors.
    assert kept.state == 2 * 1024 * (4 + 9 * 2) * 2
    assert sequence_bytes(read("default"), BYTES, BF16) == kept.per_token * BYTES + kept.window + kept.state


def test_attention_of_a_byte() -> None:
    """Windows, two vectors of a patch in ten layers, and a quarter of a pass over a quarter of the context."""
    ops = lowered(read("default"))
    windows = 512 * (14 * 768 + 10 * 1024) * 4
    patches = 25 * 4 * 2048 / 4 * (BYTES / 4 + (1 + 1 / 4) / 2)
    assert total(ops, Kind.ATTENTION) == windows + 10 * 2 * 4 * 1024 + patches


def test_weights_of_the_global_stack_are_read_when_a_patch_begins() -> None:
    """A quarter of them for one sequence; nearly all for 64, of which hardly a step sees none begin a patch."""
    weights = 25 * (4 * 2048**2 + 3 * 2048 * 5632) * 2

    def read_bytes(batch: int) -> float:
        ops = [op for op in lowered(read("default"), batch=batch) if op.kind is Kind.MATMUL]
        return sum(op.count * op.weight_bytes for op in ops if op.group.startswith("mha + gated"))

    assert read_bytes(1) == pytest.approx(weights / 4, rel=0.01)
    assert read_bytes(64) == pytest.approx(weights, rel=0.01)


def test_keys_of_patches_are_read_when_a_patch_begins() -> None:
    ops = [op for op in lowered(read("default")) if op.kind is Kind.ATTENTION and op.group.startswith("mha + gated")]
    each = 2 * 2048 * 2
    assert sum(op.count * op.kv_bytes for op in ops) == 25 * each * (BYTES / 4 + 1) / 4


def test_arrays_of_steps_give_what_each_step_gives() -> None:
    batches, contexts = np.array([1.0, 7.0, 300.0])[:, None], np.array([0.0, 5.0, 9000.0])[None, :]
    model = read("default")
    for field in ("flops", "memory_bytes"):
        together = sum(op.count * getattr(op, field) for op in lowered(model, batch=batches, context=contexts))
        for i, j in np.ndindex(3, 3):
            ops = lowered(model, batch=float(batches[i, 0]), context=float(contexts[0, j]))
            alone = sum(op.count * getattr(op, field) for op in ops)
            assert np.broadcast_to(together, (3, 3))[i, j] == pytest.approx(alone, rel=1e-12)


def test_the_mean_length_is_said_aloud_and_follows_the_file() -> None:
    (note,) = [note for note in read("default").notes if "patch_size" in note and "not in the file" not in note]
    assert "4 bytes in the mean" in note
    longer = read("default", patch_size=8)
    assert cache_bytes(longer, BF16).per_token == cache_bytes(read("default"), BF16).per_token / 2


def test_without_a_rule_each_byte_is_a_patch() -> None:
    """The patcher is stored all the same."""
    model = read("default", patching_mode="static")
    assert model.parameters == RECORDS["default"]["parameters"]
    assert cache_bytes(model, BF16).per_token == 25 * 2 * 2048 * 2
    assert total(lowered(model), Kind.MATMUL) > total(lowered(read("default")), Kind.MATMUL)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"cross_attn_k": 4}, "cross_attn_k"),
        ({"decoder_config": {"hidden_size": 512}}, "hidden_size"),
        ({"decoder_config": {"hidden_size_global": 512}}, "hidden_size_global"),
        ({"encoder_config": 3}, "encoder_config"),
        ({"global_config": {"num_attention_heads": 7}}, "num_attention_heads"),
        ({"encoder_hash_byte_group_nb_functions": 10**6}, "encoder_hash_byte_group_vocab"),
        ({"patch_size": 0}, "patch_size"),
    ],
)
def test_parts_that_do_not_fit_are_errors(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        read("default", **changed)
