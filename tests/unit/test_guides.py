"""The guides are true: their files are valid, and their commands run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner import catalogue
from planner.cli.main import cli
from planner.decompose.lowering import REGISTRY
from planner.model import AttentionBlock, FeedForwardBlock
from planner.model.attention.recurrent import RecurrentBlock

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = sorted(path.name for path in DOCS.glob("add-*.md"))
CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "intermediate_size": 96,
    "vocab_size": 100,
}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_there_are_guides() -> None:
    assert GUIDES == ["add-a-chip.md", "add-a-model.md", "add-an-attention-kind.md"]


@pytest.mark.parametrize("guide", GUIDES)
def test_commands_of_a_guide_run(guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / guide).read_text()
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    for yaml in blocks(text, "yaml"):
        path = tmp_path / yaml.splitlines()[0].removeprefix("# ")
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml)
    for line in "".join(blocks(text, "console")).splitlines():
        program, *arguments = shlex.split(line.removeprefix("$ "))
        assert program == "planner"
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert result.exit_code == 0, f"{line}: {result.output}"


def test_the_model_of_the_guide_has_the_parameters_that_it_says(tmp_path: Path) -> None:
    (yaml,) = blocks((DOCS / "add-a-model.md").read_text(), "yaml")
    path = tmp_path / "tiny-moe.yaml"
    path.write_text(yaml)
    model = catalogue.load_model(str(path))
    assert model.parameters == model.published_parameters


def concrete(kind: type) -> list[type]:
    return [kind] if not kind.__subclasses__() else [c for sub in kind.__subclasses__() for c in concrete(sub)]


def test_every_kind_is_lowered() -> None:
    """What the guide asks for: a kind that is described has operations."""
    kinds = {*concrete(AttentionBlock), *concrete(FeedForwardBlock)} - {RecurrentBlock}
    assert kinds == set(REGISTRY)
