"""The published JSON Schemas are current, and the files of the catalogue keep to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from planner import catalogue
from planner.cli.main import cli

ROOT = Path(__file__).parents[2]
FOLDERS = {"model": "models", "hardware": "hardware"}


def published(kind: str) -> dict[str, object]:
    schema: dict[str, object] = json.loads((ROOT / "docs" / "schema" / f"{kind}.schema.json").read_text("utf-8"))
    return schema


@pytest.mark.parametrize("kind", FOLDERS)
def test_the_published_schema_is_current(kind: str) -> None:
    result = CliRunner().invoke(cli, ["schema", kind])
    assert result.exit_code == 0
    assert json.loads(result.output) == published(kind), (
        f"write it anew: planner schema {kind} -o docs/schema/{kind}.schema.json"
    )


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_schema_is_a_schema(kind: str) -> None:
    Draft202012Validator.check_schema(published(kind))


@pytest.mark.parametrize(("kind", "folder"), FOLDERS.items())
def test_every_file_keeps_to_it_and_names_it(kind: str, folder: str) -> None:
    validator = Draft202012Validator(published(kind))
    files = sorted((ROOT / folder).glob("*.yaml"))
    assert files
    for path in files:
        text = path.read_text("utf-8")
        assert [error.message for error in validator.iter_errors(yaml.safe_load(text))] == [], path.name
        assert f"$schema=../docs/schema/{kind}.schema.json" in text.splitlines()[0], path.name


def test_it_catches_what_an_editor_shall_catch() -> None:
    validator = Draft202012Validator(published("model"))
    data = yaml.safe_load((ROOT / "models" / "llama-3.1-70b.yaml").read_text("utf-8"))
    assert not list(validator.iter_errors(data))
    assert list(validator.iter_errors({**data, "hiden_size": 1}))
    assert list(validator.iter_errors({key: value for key, value in data.items() if key != "vocab_size"}))
    assert set(catalogue.DESCRIPTIONS) == set(FOLDERS)
