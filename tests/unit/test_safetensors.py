"""Stored bytes from safetensors headers and indices. Test files are written by the safetensors library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from planner.catalogue import load_model
from planner.errors import CatalogueError
from planner.importers.safetensors import class_of, read_header
from planner.records import model_record
from planner.scenario import choose_precision, model_warnings

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "tie_word_embeddings": False,
}


def tensors(dtype: Any = np.float16) -> dict[str, Any]:
    """Return the tensors of the model above, under their published names."""
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (100, 64),
        "model.norm.weight": (64,),
        "lm_head.weight": (100, 64),
    }
    for layer in range(2):
        path = f"model.layers.{layer}."
        shapes |= {
            f"{path}self_attn.q_proj.weight": (64, 64),
            f"{path}self_attn.k_proj.weight": (32, 64),
            f"{path}self_attn.v_proj.weight": (32, 64),
            f"{path}self_attn.o_proj.weight": (64, 64),
            f"{path}mlp.gate_proj.weight": (128, 64),
            f"{path}mlp.up_proj.weight": (128, 64),
            f"{path}mlp.down_proj.weight": (64, 128),
            f"{path}input_layernorm.weight": (64,),
            f"{path}post_attention_layernorm.weight": (64,),
        }
    return {name: np.zeros(shape, dtype) for name, shape in shapes.items()}


# 2 bytes for each parameter: 2 x 6400 of embedding and head, 64 of the norm, and in each of 2 layers 12288 of attention,
# 24576 of the network and 128 of norms.
TOTAL = 2 * (2 * 6400 + 64 + 2 * (12288 + 24576 + 128))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "my-model"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    return path


def weight_bytes(folder: Path) -> int:
    model = load_model(str(folder))
    size: int = model_record(model, choose_precision(model))["weight_bytes"]
    return size


def test_one_file(folder: Path) -> None:
    save_file(tensors(), folder / "model.safetensors")
    model = load_model(str(folder))
    assert model.checkpoint is not None
    assert model.checkpoint.bytes == TOTAL == weight_bytes(folder)
    sizes = {part.of: part.bytes for part in model.checkpoint.by_class}
    assert sizes == {"ffn": 98304, "attention": 49152, "embedding": 12800, "lm_head": 12800, "norm": 640}
    assert model_warnings(model) == ()


def test_several_files(folder: Path) -> None:
    every = tensors()
    names = sorted(every)
    for part, chosen in enumerate((names[:9], names[9:]), 1):
        save_file({name: every[name] for name in chosen}, folder / f"model-{part:05d}-of-00002.safetensors")
    assert weight_bytes(folder) == TOTAL
    (folder / "model-00002-of-00002.safetensors").unlink()
    model = load_model(str(folder))
    assert model.checkpoint is None
    assert any("1 of 2 safetensors files are not" in note for note in model_warnings(model))


def test_an_index_alone(folder: Path) -> None:
    index = {
        "metadata": {"total_size": TOTAL},
        "weight_map": dict.fromkeys(tensors(), "model-00001-of-00001.safetensors"),
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    model = load_model(str(folder))
    assert model.checkpoint is not None
    assert (model.checkpoint.bytes, model.checkpoint.by_class) == (TOTAL, ())
    assert "index.json" in model.checkpoint.source


def test_headers_go_before_the_total_of_the_index(folder: Path) -> None:
    save_file(tensors(), folder / "model.safetensors")
    index = {"metadata": {"total_size": 5}, "weight_map": dict.fromkeys(tensors(), "model.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert weight_bytes(folder) == TOTAL


def test_an_index_does_not_lead_out_of_its_folder(folder: Path) -> None:
    save_file(tensors(), folder.parent / "model.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../model.safetensors"}}))
    assert load_model(str(folder)).checkpoint is None


def test_disagreement_is_told(folder: Path) -> None:
    save_file(tensors(np.float32), folder / "model.safetensors")
    model = load_model(str(folder))
    assert weight_bytes(folder) == 2 * TOTAL
    assert any("check both" in note for note in model_warnings(model))


def test_a_precision_that_is_asked_for_is_computed(folder: Path) -> None:
    save_file(tensors(np.float32), folder / "model.safetensors")
    model = load_model(str(folder))
    assert model_record(model, choose_precision(model, "bf16", kv="fp8"))["weight_bytes"] in (TOTAL, 2 * TOTAL)
    assert model_record(model, choose_precision(model, "int8"))["weight_bytes"] < TOTAL


def test_types_that_numpy_lacks(tmp_path: Path) -> None:
    header = {
        "a": {"dtype": "F8_E4M3", "shape": [10, 10], "data_offsets": [0, 100]},
        "b": {"dtype": "F4", "shape": [10, 10], "data_offsets": [100, 150]},
        "__metadata__": {"format": "pt"},
    }
    text = json.dumps(header).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    # The header alone is enough: the tensors are not there.
    assert [(t.name, t.bytes, t.elements) for t in read_header(tmp_path / "x.safetensors")] == [
        ("a", 100, 100),
        ("b", 50, 100),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 8,
        b"\xff" * 16,
        (50).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (3).to_bytes(8, "little") + b"{x}",
        (9).to_bytes(8, "little") + b'{"a": [] }',
        (8).to_bytes(8, "little") + b'{"a": 1}',
    ],
)
def test_a_broken_file_is_one_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(CatalogueError, match=r"x\.safetensors"):
        read_header(path)


def test_a_size_that_does_not_fit_its_shape_is_an_error(tmp_path: Path) -> None:
    text = json.dumps({"a": {"dtype": "BF16", "shape": [10], "data_offsets": [0, 10]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(CatalogueError, match="10 elements of 16 bits"):
        read_header(tmp_path / "x.safetensors")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("model.embed_tokens.weight", "embedding"),
        ("transformer.wte.weight", "embedding"),
        ("lm_head.weight", "lm_head"),
        ("model.norm.weight", "norm"),
        ("model.layers.0.self_attn.q_norm.weight", "norm"),
        ("model.layers.0.self_attn.kv_a_proj_with_mqa.weight_scale_inv", "attention"),
        ("transformer.h.3.attn.c_attn.weight", "attention"),
        ("model.layers.5.linear_attn.in_proj_qkvz.weight", "attention"),
        ("model.layers.5.linear_attn.A_log", "state"),
        ("model.layers.0.mlp.gate_proj.qweight", "ffn"),
        ("model.layers.3.mlp.gate.weight", "router"),
        ("model.layers.3.mlp.gate.e_score_correction_bias", "router"),
        ("model.layers.3.block_sparse_moe.gate.weight", "router"),
        ("model.layers.3.block_sparse_moe.experts.0.w1.weight", "experts"),
        ("model.layers.3.mlp.experts.gate_up_proj_blocks", "experts"),
        ("model.layers.3.mlp.shared_experts.up_proj.weight", "shared_experts"),
        ("model.layers.3.mlp.shared_expert_gate.weight", "router"),
        ("model.layers.10.mlp.experts.0.up_proj.weight", "mtp"),
        ("mtp.layers.0.self_attn.q_proj.weight", "mtp"),
        ("mtp.fc.weight", "mtp"),
        ("model.visual.blocks.11.attn.qkv.weight", "vision"),
        ("vision_tower.encoder.layers.11.mlp.fc1.weight", "vision"),
        ("multi_modal_projector.linear_1.weight", "vision"),
        ("frobnicator", "other"),
    ],
)
def test_class_of_a_tensor(name: str, kind: str) -> None:
    assert class_of(name, layers=10) == kind


def test_an_exporters_block_beside_the_config(folder: Path) -> None:
    block = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    (folder / "hf_quant_config.json").write_text(json.dumps(block))
    assert load_model(str(folder)).quantization.linear == "fp8"
    named = folder / "other.json"
    named.write_text(json.dumps(CONFIG))
    assert load_model(str(named)).quantization.linear == "bf16"
