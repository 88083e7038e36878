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


# ---- lists -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "kind", "name"), [("models", "models", "llama-3.1-70b"), ("hardware", "hardware", "h100-sxm")]
)
def test_a_list_says_what_is_hidden(folder: Path, command: str, kind: str, name: str) -> None:
    own = next((folder / kind).iterdir())
    (folder / kind / f"{name}.yaml").write_text(own.read_text("utf-8"))
    code, out, err = run(command, "--format", "json", "--catalog", str(folder))
    assert code == 0
    assert [row["id"] for row in json.loads(out)].count(name) == 1
    assert err == f"note: {folder / kind / name}.yaml hides the built-in one of that name\n"


def test_a_broken_file_leaves_the_rest_of_the_list(folder: Path) -> None:
    (folder / "models" / "broken.yaml").write_text("name: [")
    (folder / "hardware" / "broken.yaml").write_text("name: 1")
    for command, own in (("models", "mine"), ("hardware", "my-chip")):
        code, out, err = run(command, "--format", "json", "--catalog", str(folder))
        names = [row["id"] for row in json.loads(out)]
        assert code == 0
        assert own in names
        assert "broken" not in names
        assert len(err.splitlines()) == 1
        assert "note: left out: " in err
        assert "broken.yaml: " in err


@pytest.mark.parametrize("asked", ["llama-3.1-70b", "LLAMA-3.1-70B", "Llama-3.1-70b"])
def test_an_entry_hides_another_in_whatever_case(folder: Path, asked: str) -> None:
    (folder / "models" / "LLAMA-3.1-70B.yaml").write_text(MODEL)
    code, out, err = run("model", asked, "--format", "json", "--catalog", str(folder))
    assert code == 0
    assert json.loads(out)["name"] == "Mine"
    assert "LLAMA-3.1-70B.yaml hides the built-in one" in err
    _, out, err = run("models", "--format", "json", "--catalog", str(folder))
    names = [row["id"] for row in json.loads(out)]
    assert "LLAMA-3.1-70B" in names
    assert "llama-3.1-70b" not in names
    assert err.count("hides the built-in") == 1


def test_both_ends_of_names_are_read(folder: Path) -> None:
    (folder / "models" / "other.yml").write_text(MODEL.replace("Mine", "Other"))
    code, out, _ = run("model", "other", "--format", "json", "--catalog", str(folder))
    assert code == 0
    assert json.loads(out)["name"] == "Other"
    (folder / "models" / "other.yaml").write_text(MODEL)
    _, out, err = run("model", "other", "--format", "json", "--catalog", str(folder))
    assert json.loads(out)["name"] == "Mine"
    assert "other.yaml hides others of that name: " in err
    assert "other.yml" in err


def test_files_that_are_no_descriptions_are_told(folder: Path) -> None:
    (folder / "models" / "config.json").write_text("{}")
    (folder / "models" / "m.gguf").write_text("")
    _, _, err = run("models", "--format", "json", "--catalog", str(folder))
    assert "not listed, descriptions end in .yaml: config.json, m.gguf" in err


def test_a_broken_link_is_told(folder: Path) -> None:
    (folder / "models" / "gone.yaml").symlink_to(folder / "nowhere.yaml")
    _, _, err = run("models", "--format", "json", "--catalog", str(folder))
    assert "left out: " in err
    assert "gone.yaml: is a link to a file that is not there" in err
    code, _, err = run("model", "gone", "--catalog", str(folder))
    assert code != 0
    assert "gone.yaml: is a link to a file that is not there" in err
