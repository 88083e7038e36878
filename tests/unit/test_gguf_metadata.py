"""GGUF metadata: what shapes the model is read or told, lists by layer are followed, messages name the file's own keys."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from gguf_cases.layered import GEMMA3N, PER_LAYER, STREAMS
from gguf_cases.shapes import (
    DIM,
    FIELDS,
    HEADS,
    HIDDEN,
    KV,
    LAYERS,
    PAIR,
    Shapes,
    attention,
    experts,
    network,
    norms,
    stack,
)
from gguf_cases.states import MAMBA, MAMBA_FIELDS
from gguf_files import write

from planner.catalogue import load_model
from planner.errors import CatalogueError
from planner.memory import cache_bytes
from planner.model import Model
from planner.scenario import model_warnings
from planner.units import FORMATS

LAYER = PAIR | attention() | network()


def read(folder: Path, arch: str = "llama", layer: Shapes | None = None, **fields: Any) -> Model:
    stated = {key: value for key, value in {**FIELDS, **fields}.items() if value is not None}
    return load_model(str(write(folder / "m.gguf", arch, stated, stack(*[LAYER if layer is None else layer] * LAYERS))))


@pytest.mark.parametrize(
    ("arch", "key", "value"),
    [
        ("llama", "attention.sliding_window", 128),
        ("qwen2", "attention.sliding_window", 128),
        ("qwen3", "attention.sliding_window", 128),
        ("llama", "leading_dense_block_count", 1),
        ("llama", "attention.value_length", 16),
        ("llama", "ssm.state_size", 16),
        ("llama", "something.new", [0, 1, 0]),
        ("granite", "attention.shared_kv_layers", 2),
        ("nemotron", "expert_count", 4),
    ],
)
def test_a_key_that_shapes_the_model_and_is_not_read_is_told(tmp_path: Path, arch: str, key: str, value: Any) -> None:
    notes = read(tmp_path, arch, **{key: value}).notes
    assert any(note.startswith(f"not read, and may change shapes: {arch}.{key} (") for note in notes), notes


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attention.sliding_window", 0),
        ("expert_count", 0),
        ("rope.scaling.factor", 8.0),
        ("attention.scale", 0.1),
        ("attention.value_length", DIM),
        ("something.new", [0, 0]),
        ("something.new", False),
    ],
)
def test_a_key_that_changes_nothing_is_not_told(tmp_path: Path, key: str, value: Any) -> None:
    assert model_warnings(read(tmp_path, **{key: value})) == ()


def test_keys_that_are_not_read_are_told_in_bounds(tmp_path: Path) -> None:
    notes = read(tmp_path, **{f"unknown.{n:06}\x1b[31m": 1 for n in range(5000)}).notes
    assert len("".join(notes)) < 2000
    assert "and 4980 more" in notes[0]
    assert notes[0].isprintable()


def test_mixed_dense_layers_that_are_not_there_are_told(tmp_path: Path) -> None:
    shapes = stack(*[PAIR | attention(dim=DIM) | network()] * LAYERS)
    fields = {
        "expert_count": 4,
        "expert_used_count": 2,
        "expert_feed_forward_length": 64,
        "leading_dense_block_count": 1,
    }
    model = load_model(str(write(tmp_path / "m.gguf", "qwen3moe", {**FIELDS, **fields}, shapes)))
    assert any("qwen3moe.leading_dense_block_count" in note for note in model.notes)
    assert any("the tensors of the file hold" in note for note in model.notes)


# ---- lists by layer --------------------------------------------------------------------------------------------------


def caches(model: Model) -> float:
    return cache_bytes(model, FORMATS["bf16"]).per_token


def test_a_list_of_kv_heads(tmp_path: Path) -> None:
    heads = [4, 2, 1, 8, 2, 4]
    shapes = stack(*[PAIR | attention(k=count * DIM) | network() for count in heads])
    fields = {**FIELDS, "attention.head_count_kv": heads}
    model = load_model(str(write(tmp_path / "m.gguf", "llama", fields, shapes)))
    assert model.parameters == sum(math.prod(shape) for shape in shapes.values())
    assert caches(model) == 2 * 2 * sum(heads) * DIM
    assert model_warnings(model) == ()


def test_lists_of_heads_and_widths(tmp_path: Path) -> None:
    # OpenELM: heads and widths grow with the depth; queries, keys and values are one matrix.
    shape = [(4, 1, 128), (4, 1, 192), (8, 2, 256), (8, 2, 320), (12, 3, 384), (12, 3, 448)]
    layers = [
        PAIR
        | {"attn_qkv.weight": ((q + 2 * k) * DIM, HIDDEN), "attn_output.weight": (HIDDEN, q * DIM)}
        | norms("attn_q_norm", "attn_k_norm", size=DIM)
        | network(width)
        for q, k, width in shape
    ]
    lists = {
        "attention.head_count": [q for q, _, _ in shape],
        "attention.head_count_kv": [k for _, k, _ in shape],
        "feed_forward_length": [width for _, _, width in shape],
        "attention.key_length": DIM,
        "attention.value_length": DIM,
    }
    shapes = stack(*layers, tied=True)
    model = load_model(str(write(tmp_path / "m.gguf", "openelm", {**FIELDS, **lists}, shapes)))
    assert model.parameters == sum(math.prod(size) for size in shapes.values())
    assert caches(model) == 2 * 2 * sum(k for _, k, _ in shape) * DIM
    assert model.num_hidden_layers == LAYERS
    assert model_warnings(model) == ()


def test_a_layer_of_no_heads_has_no_attention(tmp_path: Path) -> None:
    heads, kv_heads = [HEADS, 0] * 3, [KV, 0] * 3
    layers = [PAIR | attention() | network() if n else norms("ffn_norm") | network() for n in heads]
    fields = {**FIELDS, "attention.head_count": heads, "attention.head_count_kv": kv_heads}
    shapes = stack(*layers)
    model = load_model(str(write(tmp_path / "m.gguf", "llama", fields, shapes)))
    assert model.parameters == sum(math.prod(size) for size in shapes.values())
    assert caches(model) == 2 * 2 * 3 * KV * DIM


def test_a_list_of_another_length_is_an_error(tmp_path: Path) -> None:
    match = rf"llama\.attention\.head_count_kv: has 3 items, one for each of the {LAYERS} layers is expected"
    with pytest.raises(CatalogueError, match=match):
        read(tmp_path, **{"attention.head_count_kv": [1, 2, 4]})


def test_too_many_kinds_of_layer_are_an_error(tmp_path: Path) -> None:
    fields = {**FIELDS, "block_count": 100, "feed_forward_length": list(range(1, 101))}
    with pytest.raises(CatalogueError, match=r"llama\.feed_forward_length: has more than 64 kinds of layer"):
        load_model(str(write(tmp_path / "m.gguf", "llama", fields, stack(LAYER))))


# ---- messages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "changes", "message"),
    [
        ("llama", {"attention.head_count": None}, "llama.attention.head_count: is missing, the architecture needs it"),
        ("llama", {"embedding_length": None}, "llama.embedding_length: is missing, the architecture needs it"),
        ("llama", {"embedding_length": "x"}, "llama.embedding_length: 'x' is not a whole number"),
        ("llama", {"block_count": 20_000}, "llama.block_count: 20000 layers are more than make sense (at most 10000)"),
        ("llama", {"block_count": 0}, "llama.block_count: 0 is not from 1 to"),
        ("llama", {"block_count": 4_000_000_000}, "llama.block_count: 4000000000 is not from 1 to 1000000000"),
        (
            "llama",
            {"attention.head_count_kv": 3},
            "llama.attention.head_count_kv: 3 does not divide llama.attention.head_count 8",
        ),
        ("gpt2", {"embedding_length": None}, "gpt2.embedding_length: is missing"),
        ("falcon", {"attention.head_count": None}, "falcon.attention.head_count: is missing"),
        ("deepseek2", {"rope.dimension_count": None}, "deepseek2.rope.dimension_count: is missing"),
        ("mamba", {"ssm.state_size": None}, "mamba.ssm.state_size: is missing"),
    ],
)
def test_a_fault_names_the_key_of_the_file(tmp_path: Path, arch: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        read(tmp_path, arch, **changes)
    assert message in str(caught.value)
    assert not any(word in str(caught.value) for word in ("hidden_size", "num_attention_heads", "num_hidden_layers"))


@pytest.mark.parametrize(
    ("arch", "fields", "message"),
    [
        ("clip", {}, "holds towers for pictures or sound, no text model"),
        ("llama", {"/general.type": "adapter"}, "holds an adapter, no model"),
        ("llama", {"/general.type": "imatrix"}, "holds statistics for quantising, no model"),
    ],
)
def test_a_file_that_is_no_model_is_an_error(tmp_path: Path, arch: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        load_model(str(write(tmp_path / "m.gguf", arch, {**FIELDS, **fields}, {"a.weight": (4, 32)})))


def test_keys_of_layers_that_use_those_of_another_are_held_in_vain(tmp_path: Path) -> None:
    fields = {
        **FIELDS,
        "attention.sliding_window": 128,
        "attention.sliding_window_pattern": [True, True, False] * 2,
        "attention.key_length": DIM,
        "attention.value_length": DIM,
        "altup.num_inputs": 4,
        "embedding_length_per_layer_input": 16,
        "attention.shared_kv_layers": 3,
    }
    shapes = stack(*[GEMMA3N] * LAYERS, outer=PER_LAYER | STREAMS, tied=True)
    model = load_model(str(write(tmp_path / "m.gguf", "gemma3n", fields, shapes)))
    in_vain = 3 * (2 * KV * DIM * HIDDEN + DIM)
    assert model.parameters == sum(math.prod(size) for size in shapes.values()) - in_vain
    assert caches(model) == 2 * 2 * KV * DIM
    assert model.notes == ()


def test_a_mixture_of_jamba_with_one_layer_of_experts(tmp_path: Path) -> None:
    mixers = [MAMBA | norms("ssm_dt_norm", "ssm_b_norm", "ssm_c_norm", size=16)] * (LAYERS - 1) + [attention()]
    layers = [PAIR | mixer | (experts(8, 512) if index == 4 else network()) for index, mixer in enumerate(mixers)]
    fields = {
        **FIELDS,
        **MAMBA_FIELDS,
        "expert_count": 8,
        "expert_used_count": 2,
        "attention.head_count_kv": [0] * 5 + [KV],
    }
    shapes = stack(*layers)
    model = load_model(str(write(tmp_path / "m.gguf", "jamba", fields, shapes)))
    assert model.parameters == sum(math.prod(size) for size in shapes.values())
    assert model_warnings(model) == ()
