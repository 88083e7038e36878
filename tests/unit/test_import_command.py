"""`planner import`: descriptions in the style of the catalogue, written whole or not at all."""

from __future__ import annotations

import builtins
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from planner.catalogue import load_model
from planner.cli.main import cli
from planner.errors import PlannerError

CONFIG = {
    "model_type": "deepseek_v3",
    "hidden_size": 256,
    "intermediate_size": 512,
    "moe_intermediate_size": 128,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "num_nextn_predict_layers": 1,
    "quantization_config": {
        "quant_method": "awq",
        "bits": 4,
        "group_size": 64,
        "modules_to_not_convert": ["kv_b_proj"],
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "tiny-moe"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["import", *arguments])


EXPECTED = """\
name: tiny-moe
source: tiny-moe/config.json, a Hugging Face config of type deepseek_v3
hidden_size: 256
vocab_size: 1000
tie_word_embeddings: false
layers:
  - attention: {kind: mla, num_attention_heads: 4, q_lora_rank: 64, kv_lora_rank: 32, qk_nope_head_dim: 32,
      qk_rope_head_dim: 16, v_head_dim: 32}
    ffn: {kind: gated, intermediate_size: 512}
  - repeat: 4
    attention: {kind: mla, num_attention_heads: 4, q_lora_rank: 64, kv_lora_rank: 32, qk_nope_head_dim: 32,
      qk_rope_head_dim: 16, v_head_dim: 32}
    ffn: {kind: moe, num_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 128, shared_intermediate_size: 128}
quantization:
  linear: {precision: w4a16, group_size: 64, scale_bits: 20}
  parts:
    - {of: kv_b_proj, stored: bf16}
  source: quantization_config, awq
mtp:
  layers:
    - attention: {kind: mla, num_attention_heads: 4, q_lora_rank: 64, kv_lora_rank: 32, qk_nope_head_dim: 32,
        qk_rope_head_dim: 16, v_head_dim: 32}
      ffn: {kind: moe, num_experts: 8, num_experts_per_tok: 2, moe_intermediate_size: 128, shared_intermediate_size: 128}
  embeddings: 1
  heads: 1
vision_parameters: 0
"""


def test_the_style_is_that_of_the_catalogue(folder: Path) -> None:
    result = run(str(folder))
    assert result.exit_code == 0, result.output
    # Fields that the class supplies may come in between; what is written down here stands in this order.
    lines = [line for line in result.stdout.splitlines() if not line.startswith("max_position_embeddings")]
    assert "\n".join(lines) + "\n" == EXPECTED


def test_import_then_load_is_the_same(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out" / "models" / "tiny.yaml"
    assert run(str(folder), "-o", str(output)).exit_code == 0
    source = load_model(str(folder))
    assert load_model(str(output)) == source.model_copy(update={"source": load_model(str(output)).source})


def test_name_and_source_may_be_given(folder: Path) -> None:
    data = yaml.safe_load(run(str(folder), "--name", "Tiny", "--source", "made up").stdout)
    assert (data["name"], data["source"]) == ("Tiny", "made up")


def test_the_schema_is_named_where_it_is_published(folder: Path, tmp_path: Path) -> None:
    schema = tmp_path / "repository" / "docs" / "schema" / "model.schema.json"
    schema.parent.mkdir(parents=True)
    schema.write_text("{}")
    output = tmp_path / "repository" / "models" / "tiny.yaml"
    assert run(str(folder), "-o", str(output)).exit_code == 0
    assert output.read_text().startswith("# yaml-language-server: $schema=../docs/schema/model.schema.json\nname: ")
    elsewhere = tmp_path / "tiny.yaml"
    assert run(str(folder), "-o", str(elsewhere)).exit_code == 0
    assert elsewhere.read_text().startswith("name: ")


def test_nothing_is_half_written(folder: Path, tmp_path: Path) -> None:
    (folder / "config.json").write_text(json.dumps({**CONFIG, "hidden_size": "many"}))
    output = tmp_path / "models" / "tiny.yaml"
    result = run(str(folder), "-o", str(output))
    assert isinstance(result.exception, PlannerError)
    assert "hidden_size" in str(result.exception)
    assert not output.parent.exists()


def test_what_to_know_goes_to_stderr(folder: Path) -> None:
    block = {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.self_attn.frobnicator"]}
    (folder / "config.json").write_text(json.dumps({**CONFIG, "quantization_config": block}))
    assert "frobnicator" in run(str(folder)).stderr


@pytest.mark.parametrize("source", ["nothing.json", "no/such/file", "nothing", "x.gguf", "\0"])
def test_what_is_not_there_is_an_error(source: str) -> None:
    result = run(source)
    assert isinstance(result.exception, PlannerError)


# ---- the hub ---------------------------------------------------------------------------------------------------------


class NotFoundError(Exception):
    """Stands for the library's."""


class HttpError(OSError):
    """Stands for the library's."""


def hub(monkeypatch: pytest.MonkeyPatch, folder: Path, *, failure: Exception | None = None) -> None:
    """Put a hub in place that has the files of a folder."""

    def download(name: str, file: str, revision: str | None = None) -> str:
        assert (name, revision) == ("someone/tiny", None)
        if failure is not None:
            raise failure
        if not (folder / file).is_file():
            raise NotFoundError(file)
        return str(folder / file)

    library = types.ModuleType("huggingface_hub")
    errors = types.ModuleType("huggingface_hub.errors")
    library.hf_hub_download = download  # type: ignore[attr-defined]
    errors.EntryNotFoundError, errors.HfHubHTTPError = NotFoundError, HttpError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)


def test_a_name_on_the_hub(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    hub(monkeypatch, folder)
    data = yaml.safe_load(run("someone/tiny").stdout)
    assert (data["name"], data["source"]) == ("someone/tiny", "someone/tiny config.json")


def test_no_network(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    hub(monkeypatch, folder, failure=HttpError("cannot connect\nand more"))
    result = run("someone/tiny")
    assert str(result.exception) == "someone/tiny: cannot be fetched from the hub: cannot connect"


def test_no_config_on_the_hub(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "config.json").unlink()
    hub(monkeypatch, folder)
    assert "without a config.json" in str(run("someone/tiny").exception)


def test_without_the_library_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("huggingface_hub"):
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "pip install 'roofline-planner[hub]'" in str(run("someone/tiny").exception)
