"""Messages: bounded, printable, in units that show what they say, and without faults that only follow from others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from gguf_cases.shapes import FIELDS, LAYERS, PAIR, attention, network, stack
from gguf_files import write
from refusals import CONFIG, MODEL
from safetensors.numpy import save_file

from planner.catalogue import load_model
from planner.cli.main import cli
from planner.errors import CatalogueError, listing, printable
from planner.scenario import model_warnings
from planner.units import gigabytes


def config(folder: Path, **changes: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**CONFIG, **changes}))
    return path


def notes(*arguments: str) -> list[str]:
    result = CliRunner().invoke(cli, ["model", *arguments, "--format", "json"])
    assert result.exit_code == 0, result.output
    return result.stderr.splitlines()


# ---- bounded and printable -------------------------------------------------------------------------------------------


def test_fields_that_are_not_known_are_told_in_bounds(tmp_path: Path) -> None:
    path = config(tmp_path, **{f"unknown_{n:05}": 1 for n in range(3000)})
    (note,) = load_model(str(path)).notes
    assert "unknown_00019 and 2980 more" in note
    assert len(note) < 1000


def test_faults_are_told_in_bounds() -> None:
    message = str(CatalogueError("x.yaml", [f"field_{n}: is wrong" for n in range(1000)]))
    assert message.endswith("field_19: is wrong and 980 more")


def test_control_characters_reach_no_terminal(tmp_path: Path) -> None:
    path = config(tmp_path, **{"a\x1b[31mred": 1, "b\x07\u202e": 2, "c\nd": 3})
    (note,) = notes(str(path))
    assert note.isprintable()
    assert r"a\x1b[31mred, b\x07\u202e, c\nd" in note
    layer = PAIR | attention() | network()
    file = write(tmp_path / "m.gguf", "llama", {**FIELDS, "x\x1b[2J": 1}, stack(*[layer] * LAYERS), name="n\x1b[31m")
    (note,) = notes(str(file))
    assert note.isprintable()
    assert load_model(str(file)).name == r"n\x1b[31m"


def test_a_name_in_an_error_is_printable(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(json.dumps({**MODEL, "a\x1b[31m": 1}))
    with pytest.raises(CatalogueError) as caught:
        load_model(str(path))
    assert str(caught.value).isprintable()


def test_words_of_lists_and_texts() -> None:
    assert listing([]) == ""
    assert listing(map(str, range(21))) == f"{', '.join(map(str, range(20)))} and 1 more"
    assert printable("é 漢") == "é 漢"
    assert printable("a\u2028b\ud800") == r"a\u2028b\ud800"


# ---- sizes -----------------------------------------------------------------------------------------------------------


def test_small_sizes_show_their_difference(tmp_path: Path) -> None:
    config(tmp_path)
    save_file({"a": np.zeros(1000, np.float32)}, tmp_path / "model.safetensors")
    model = load_model(str(tmp_path))
    (note,) = model_warnings(model)
    assert "stores 4.00 kB" in note
    assert f"gives {2 * model.parameters / 1000:.2f} kB" in note


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (1e6, "1.00 MB"),
        (999_999_999, "1000.00 MB"),
        (145.4e9, "145.40 GB"),
    ],
)
def test_a_size_in_words(size: float, words: str) -> None:
    assert gigabytes(size) == words


# ---- faults that follow from others ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"hidden_size": "x"}, "hidden_size: 'x' is not a whole number"),
        ({"hidden_size": None}, "hidden_size: is missing, the architecture needs it"),
        ({"num_attention_heads": -1}, "num_attention_heads: -1 is not from 1 to 1000000000"),
        (
            {"model_type": "qwen3_moe", "num_experts": "y", "num_experts_per_tok": 2},
            "num_experts: 'y' is not a whole number",
        ),
        (
            {"model_type": "falcon", "num_kv_heads": 3, "new_decoder_architecture": True, "num_attention_heads": 0},
            "num_attention_heads: 0 is not from 1 to 1000000000",
        ),
    ],
)
def test_a_fault_is_told_without_what_follows_from_it(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        load_model(str(config(tmp_path, **changes)))
    assert caught.value.faults == (fault,)


def test_faults_of_their_own_are_all_told(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError) as caught:
        load_model(str(config(tmp_path, hidden_size="x", vocab_size=0, intermediate_size=-3)))
    assert {fault.partition(":")[0] for fault in caught.value.faults} == {
        "hidden_size",
        "vocab_size",
        "intermediate_size",
    }
    with pytest.raises(CatalogueError, match="num_key_value_heads: 3 does not divide num_attention_heads 4"):
        load_model(str(config(tmp_path, num_key_value_heads=3)))


# ---- assumptions -----------------------------------------------------------------------------------------------------


def test_an_assumption_that_was_not_needed_is_told(tmp_path: Path) -> None:
    (note,) = load_model(str(config(tmp_path)), assume="llama-like").notes
    assert note == "--assume llama-like was not needed: the file says what the model is"
    (note,) = load_model(str(config(tmp_path, model_type="frob")), assume="llama-like").notes
    assert note == "model_type 'frob' is not known: read as llama, as you asked; check the parameter count"
    assert notes("llama-3.1-8b", "--assume", "llama-like")[0].startswith("note: --assume llama-like was not needed: ")
    layer = PAIR | attention() | network()
    file = write(tmp_path / "m.gguf", "llama", FIELDS, stack(*[layer] * LAYERS))
    (note,) = notes(str(file), "--assume", "llama-like")
    assert note.endswith("m.gguf says what the model is")


def test_an_assumption_on_a_nested_part_is_told(tmp_path: Path) -> None:
    text = {key: value for key, value in CONFIG.items() if key != "model_type"} | {"model_type": "frob"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llava", "text_config": text}))
    told = load_model(str(path), assume="llama-like").notes
    assert "model_type 'frob' is not known: read as llama, as you asked; check the parameter count" in told
    assert not any("not needed" in note for note in told)
    path.write_text(json.dumps({"model_type": "llava", "text_config": text | {"model_type": []}}))
    assert (
        "model_type a list is not known: read as llama, as you asked; check the parameter count"
        in load_model(str(path), assume="llama-like").notes
    )
