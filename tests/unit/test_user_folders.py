"""Folders of the user: found by every command, before the built-in catalogue, and said aloud where they hide an entry of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner import catalogue
from planner.cli.main import cli

MODEL = """
name: Mine
hidden_size: 64
vocab_size: 1000
tie_word_embeddings: true
layers:
  - repeat: 2
    attention: {kind: mha, num_attention_heads: 4, head_dim: 16}
    ffn: {kind: gated, intermediate_size: 128}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for kind in ("models", "hardware"):
        (tmp_path / kind).mkdir()
    (tmp_path / "models" / "mine.yaml").write_text(MODEL)
    chip = (catalogue.data_folder("hardware") / "h100-sxm.yaml").read_text("utf-8")
    (tmp_path / "hardware" / "my-chip.yaml").write_text(chip.replace("NVIDIA H100 SXM 80GB", "My chip"))
    return tmp_path


def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, [*arguments], env=environment)
    return result.exit_code, result.stdout, result.stderr or (str(result.exception) if result.exception else "")


def test_an_option_names_a_folder(folder: Path) -> None:
    code, out, err = run("model", "mine", "--format", "json", "--catalog", str(folder))
    assert (code, err) == (0, "")
    assert json.loads(out)["name"] == "Mine"


def test_the_environment_names_a_folder(folder: Path) -> None:
    code, out, _ = run("ops", "mine", "--hardware", "my-chip", "--format", "json", PLANNER_CATALOG=str(folder))
    assert code == 0
    assert json.loads(out)["hardware"] == "My chip"


def test_without_it_the_entry_is_unknown(folder: Path) -> None:
    assert run("model", "mine", "--catalog", str(folder))[0] == 0
    code, _, err = run("model", "mine")
    assert code != 0
    assert "unknown model" in err


def test_lists_hold_both(folder: Path) -> None:
    for command, own, built_in in (("models", "mine", "llama-3.1-70b"), ("hardware", "my-chip", "h100-sxm")):
        _, out, _ = run(command, "--format", "json", "--catalog", str(folder))
        names = [row["id"] for row in json.loads(out)]
        assert {own, built_in} <= set(names)
        assert names == sorted(names)


def test_a_hidden_entry_is_said_aloud(folder: Path) -> None:
    (folder / "models" / "llama-3.1-70b.yaml").write_text(MODEL)
    code, out, err = run("model", "llama-3.1-70b", "--format", "json", "--catalog", str(folder))
    assert code == 0
    assert json.loads(out)["name"] == "Mine"
    assert err.startswith("note: ")
    assert "llama-3.1-70b.yaml hides the built-in one" in err
    assert run("model", "LLAMA-3.1-70B", "--catalog", str(folder))[2].count("hides") == 1


def test_the_first_folder_counts(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "models").mkdir(parents=True)
    (other / "models" / "mine.yaml").write_text(MODEL.replace("Mine", "Other"))
    for first, second, name in ((folder, other, "Mine"), (other, folder, "Other")):
        arguments = ("--catalog", str(first), "--catalog", str(second))
        _, out, err = run("model", "mine", "--format", "json", *arguments)
        assert json.loads(out)["name"] == name
        assert "hides" in err


@pytest.mark.parametrize("what", ["missing", "empty", "file"])
def test_a_folder_that_is_none_is_an_error(tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for arguments, environment in (
        (("--catalog", str(tmp_path / what)), {}),
        ((), {"PLANNER_CATALOG": str(tmp_path / what)}),
    ):
        code, _, err = run("models", *arguments, **environment)
        assert code != 0
        assert "models/" in err


def test_every_command_takes_the_option() -> None:
    for name in ("ops", "model", "models", "hardware", "import"):
        assert "--catalog" in CliRunner().invoke(cli, [name, "--help"]).output
