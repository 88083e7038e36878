"""Folders of models: which of several files describes the model, which files of weights count, and what is said of the others."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type
from gguf_cases.shapes import FIELDS, LAYERS, PAIR, attention, network, stack
from gguf_files import write
from safetensors.numpy import save_file

from planner.catalogue import load_model
from planner.errors import CatalogueError
from planner.importers.hub import FILES
from planner.model import Model
from planner.scenario import model_warnings

SHAPES = stack(*[PAIR | attention() | network()] * LAYERS)
CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "tie_word_embeddings": False,
}
# Queries and output 64 x 64, keys and values 32 x 64, three matrices 128 x 64, three norms, two embeddings of 100 x 64.
PARAMETERS = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64 + 3 * 64 + 2 * 100 * 64
BYTES = 2 * PARAMETERS


def gguf(path: Path, kind: Type = Type.F16) -> Path:
    return write(path, "llama", FIELDS, SHAPES, {"blk": kind}, name=path.stem)


def weights(size: int = PARAMETERS, name: str = "a") -> dict[str, Any]:
    return {name: np.zeros(size, np.float16)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "my-model"
    path.mkdir()
    return path


@pytest.fixture
def config(folder: Path) -> Path:
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


# ---- GGUF ------------------------------------------------------------------------------------------------------------


def test_several_quantisations_are_a_choice_of_the_user(folder: Path) -> None:
    gguf(folder / "m-Q4_K.gguf", Type.Q4_K)
    gguf(folder / "m-Q8_0.gguf", Type.Q8_0)
    with pytest.raises(CatalogueError, match=r"holds 2 GGUF models, name one of them: m-Q4_K\.gguf, m-Q8_0\.gguf"):
        load_model(str(folder))
    assert load_model(str(folder / "m-Q8_0.gguf")).name == "m-Q8_0"


def test_towers_are_no_text_model(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    gguf(folder / "m-Q4_K.gguf", Type.Q4_K)
    towers = write(folder / "mmproj-f16.gguf", "clip", {}, {"v.x.weight": (4, 32)})
    with caplog.at_level(logging.WARNING, logger="planner"):
        assert load_model(str(folder)).name == "m-Q4_K"
    assert (
        f"mmproj-f16.gguf: towers for pictures or sound are not read, the file takes {towers.stat().st_size}"
        in caplog.text
    )
    with pytest.raises(CatalogueError, match="no text model"):
        load_model(str(towers))


def test_the_parts_of_a_split_file_are_one_model(folder: Path) -> None:
    whole = load_model(str(gguf(folder.parent / "whole.gguf")))
    first = {name: shape for name, shape in SHAPES.items() if "blk.1" not in name}
    write(folder / "m-00001-of-00002.gguf", "llama", {**FIELDS, "/split.count": 2}, first)
    write(folder / "m-00002-of-00002.gguf", "llama", {}, {n: s for n, s in SHAPES.items() if n not in first})
    for name in (folder, folder / "m-00001-of-00002.gguf"):
        model = load_model(str(name))
        assert model.checkpoint == whole.checkpoint
        assert model_warnings(model) == ()
    write(folder / "n.gguf", "llama", FIELDS, SHAPES)
    with pytest.raises(CatalogueError, match=r"holds 2 GGUF models.*m-00001-of-00002\.gguf, n\.gguf"):
        load_model(str(folder))


def test_a_part_under_another_name_is_told(folder: Path) -> None:
    model = load_model(str(write(folder / "m.gguf", "llama", {**FIELDS, "/split.count": 2}, SHAPES)))
    assert any(note.startswith("split.count: the file is one of 2 parts") for note in model.notes)


def test_a_config_beside_a_gguf_file_is_read_and_said(config: Path, caplog: pytest.LogCaptureFixture) -> None:
    gguf(config / "m-Q4_K.gguf", Type.Q4_K)
    with caplog.at_level(logging.WARNING, logger="planner"):
        assert load_model(str(config)).parameters == PARAMETERS
    assert "config.json is read, not the GGUF files beside it (m-Q4_K.gguf): name one to read it" in caplog.text


def test_a_folder_of_neither_is_an_error(folder: Path) -> None:
    with pytest.raises(CatalogueError, match=r"is a folder without config\.json or a GGUF file"):
        load_model(str(folder))


# ---- safetensors -----------------------------------------------------------------------------------------------------


def stored(folder: Path) -> tuple[int | None, Model]:
    model = load_model(str(folder))
    return (model.checkpoint.bytes if model.checkpoint else None), model


def test_a_variant_beside_the_checkpoint_is_not_counted(config: Path) -> None:
    save_file(weights(), config / "model.safetensors")
    save_file(weights(2 * PARAMETERS), config / "model.fp16.safetensors")
    size, model = stored(config)
    assert size == BYTES
    assert model_warnings(model) == ("model.fp16.safetensors: not counted, the checkpoint is model.safetensors",)


def test_files_of_different_tensors_are_one_checkpoint(config: Path) -> None:
    save_file(weights(PARAMETERS - 100, "a"), config / "a.safetensors")
    save_file(weights(100, "b"), config / "b.safetensors")
    size, model = stored(config)
    assert size == BYTES
    assert model_warnings(model) == ()


def test_files_of_the_same_tensors_are_not_guessed_at(config: Path) -> None:
    save_file(weights(), config / "a.safetensors")
    save_file(weights(), config / "b.safetensors")
    size, model = stored(config)
    assert size is None
    assert any(
        "several checkpoints are here" in note and "a.safetensors, b.safetensors" in note for note in model.notes
    )


def test_two_sets_of_parts_are_not_guessed_at(config: Path) -> None:
    save_file(weights(), config / "model-00001-of-00001.safetensors")
    save_file(weights(PARAMETERS - 100, "a"), config / "model-00001-of-00002.safetensors")
    save_file(weights(100, "b"), config / "model-00002-of-00002.safetensors")
    assert stored(config)[0] is None


def test_parts_prevail_over_a_file_of_another_name(config: Path) -> None:
    save_file(weights(), config / "consolidated.safetensors")
    save_file(weights(PARAMETERS - 100, "a"), config / "model-00001-of-00002.safetensors")
    save_file(weights(100, "b"), config / "model-00002-of-00002.safetensors")
    assert stored(config)[0] == BYTES


def test_a_tensor_in_two_files_counts_once(config: Path) -> None:
    save_file(weights(), config / "model-00001-of-00002.safetensors")
    save_file(weights(), config / "model-00002-of-00002.safetensors")
    size, model = stored(config)
    assert size == BYTES
    assert any(note == "tensors that stand in more than one file: 1, counted once" for note in model.notes)


def index(total: int, *, of: str = "model.safetensors", name: str = "model.safetensors.index.json") -> tuple[str, str]:
    return name, json.dumps({"metadata": {"total_size": total}, "weight_map": {"a": of}})


def test_an_index_that_differs_from_the_headers_is_told(config: Path) -> None:
    save_file(weights(), config / "model.safetensors")
    name, text = index(BYTES + 8)
    (config / name).write_text(text)
    size, model = stored(config)
    assert size == BYTES
    assert (
        f"the index says that all tensors take {BYTES + 8} bytes, their headers {BYTES}: the headers count"
        in model.notes
    )


def test_the_index_of_pickled_files_is_exact_too(config: Path) -> None:
    name, text = index(BYTES, of="pytorch_model-00001-of-00001.bin", name="pytorch_model.bin.index.json")
    (config / name).write_text(text)
    (config / "pytorch_model-00001-of-00001.bin").write_bytes(b"\x80")
    size, model = stored(config)
    assert size == BYTES
    assert model.checkpoint is not None
    assert model.checkpoint.source == "total_size of pytorch_model.bin.index.json"
    assert model_warnings(model) == ()
    assert "pytorch_model.bin.index.json" in FILES


def test_a_pickled_file_alone_is_told(config: Path) -> None:
    (config / "pytorch_model.bin").write_bytes(b"\x80")
    size, model = stored(config)
    assert size is None
    assert any(note.startswith("pytorch_model.bin: headers of such files cannot be read") for note in model.notes)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("model.safetensors.index.json", "is the index of a checkpoint"),
        ("pytorch_model.bin.index.json", "is the index of a checkpoint"),
        ("model.safetensors", "holds weights"),
        ("pytorch_model.bin", "holds weights"),
    ],
)
def test_a_file_beside_the_description_names_the_folder(config: Path, name: str, problem: str) -> None:
    (config / name).write_text(index(5)[1])
    with pytest.raises(CatalogueError, match=rf"{problem}, which do.* not say what the model is: name its folder, "):
        load_model(str(config / name))
