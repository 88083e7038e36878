"""Bad names, sizes and fields: one clear line on stderr, exit 2, nothing on stdout, and no file left behind or half-written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from refusals import (
    CHIP,
    CONFIG,
    MODEL,
    Refused,
    changed,
    reading,
    write,
)

from planner.cli.main import run


def test_the_descriptions_that_faults_are_put_into_are_good(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chip = write(folder, "chip.yaml", yaml.safe_dump(CHIP))
    for name, text in (("model.yaml", yaml.safe_dump(MODEL)), ("config.json", json.dumps(CONFIG))):
        assert run(["ops", write(folder, name, text), "--hardware", chip, "--format", "json"]) == 0
        captured = capsys.readouterr()
        assert json.loads(captured.out)["totals"]["lower_s"] > 0
        assert captured.err == ""


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("model", "llama-3.1-07b"), "did you mean llama-3.1-70b"),
        (("ops", "llama-3.1-70", "--hardware", "h100-sxm"), "did you mean llama-3.1-70b"),
        (("ops", "llama-3.1-70b", "--hardware", "h100"), "did you mean h100-"),
        (("hardware", "hl00-sxm"), "h100-sxm"),
        (("hardware", "--compare", "h100-sxm", "h2000-sxm"), "h200-sxm"),
        (("model", "no such thing at all"), "planner models"),
        (("hardware", "no such thing at all"), "planner hardware"),
        (("model", ""), "planner models"),
        (("model", "a\0b"), "planner models"),
        (("model", "x" * 5000), "x"),
        (("model", "missing.yaml"), "missing.yaml: no such file"),
        (("model", "no/such/folder/config.json"), "no such file"),
        (("ops", "llama-3.1-70b", "--hardware", "missing.yaml"), "missing.yaml: no such file"),
        (("model", "llama-3.1-70b", "--precision", "bf61"), "did you mean bf16"),
        (("model", "llama-3.1-70b", "--moe-precision", "int9"), "did you mean int8"),
        (("model", "llama-3.1-70b", "--kv-precision", "fp7"), "fp8"),
        (("modle", "llama-3.1-70b"), "modle"),
        (("ops", "llama-3.1-70b"), "--hardware"),
        (("ops",), "MODEL"),
        (("model", "llama-3.1-70b", "--no-such-option"), "--no-such-option"),
        (("model", "llama-3.1-70b", "--format", "xml"), "json"),
        (("schema", "modle"), "model"),
    ],
)
def test_unknown_names(refused: Refused, arguments: tuple[str, ...], hint: str) -> None:
    assert hint in refused(*arguments)


@pytest.mark.parametrize("option", ["--batch", "--context", "--new-tokens"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e3", "1.5", "", "many", "1" + "0" * 40])
def test_sizes_of_a_step(refused: Refused, option: str, value: str) -> None:
    message = refused("ops", "llama-3.1-70b", "--hardware", "h100-sxm", f"{option}={value}")
    assert option in message


@pytest.mark.parametrize("option", ["--batch", "--new-tokens"])
def test_a_step_of_nothing(refused: Refused, option: str) -> None:
    assert option in refused("ops", "llama-3.1-70b", "--hardware", "h100-sxm", option, "0")


# ---- fields ----------------------------------------------------------------------------------------------------------

ATTENTION = "layers.0.attention"
BAD_MODELS: list[tuple[str, Any, str]] = [
    ("name", ..., "name: is missing"),
    ("hidden_size", ..., "hidden_size: is missing"),
    ("layers", ..., "layers: is missing"),
    ("tie_word_embeddings", ..., "tie_word_embeddings: is missing"),
    (f"{ATTENTION}.head_dim", ..., "head_dim: is missing"),
    (f"{ATTENTION}.num_key_value_heads", ..., "num_key_value_heads is missing"),
    ("hidden_size", -64, "hidden_size: -64"),
    ("hidden_size", 0, "hidden_size: 0"),
    ("hidden_size", float("nan"), "hidden_size: nan"),
    ("hidden_size", float("inf"), "hidden_size: inf"),
    ("hidden_size", 64.5, "hidden_size: 64.5"),
    ("hidden_size", "64", "hidden_size: '64'"),
    ("hidden_size", None, "hidden_size: None"),
    ("hidden_size", True, "hidden_size: True"),
    ("hidden_size", [64], "hidden_size: a list"),
    ("hidden_size", {"value": 64}, "hidden_size: a dict"),
    ("hidden_size", 10**30, "hidden_size: 1000"),
    ("vocab_size", 10**10, "vocab_size: 10000000000"),
    ("layers", [], "layers: "),
    ("layers", {}, "layers: "),
    ("layers", None, "layers: "),
    ("layers.0", None, "layers.0: "),
    ("layers.0", {"repeat": 2}, "a layer needs attention, ffn or both"),
    ("layers.0.repeat", 0, "layers.0.repeat: 0"),
    ("layers.0.repeat", 10**8, "layers.0.repeat: 100000000"),
    ("layers.0.pattern", [], "pattern"),
    (f"{ATTENTION}.kind", "gpa", "gpa"),
    (f"{ATTENTION}.kind", ..., "kind"),
    (f"{ATTENTION}.kind", ["gqa"], "kind"),
    (f"{ATTENTION}.num_key_value_heads", 3, "num_attention_heads 4 is not a multiple of num_key_value_heads 3"),
    (f"{ATTENTION}.num_key_value_heads", 8, "num_attention_heads 4 is not a multiple of num_key_value_heads 8"),
    ("tie_word_embeddings", "no", "tie_word_embeddings: 'no'"),
    ("tie_word_embeddings", 1, "tie_word_embeddings: 1"),
    ("hiden_size", 64, "hiden_size: unknown field, did you mean hidden_size"),
    ("ffn", {}, "ffn: unknown field"),
    (f"{ATTENTION}.head_dimm", 16, "head_dimm: unknown field, did you mean head_dim"),
    ("layers.0.repeats", 2, "repeats: unknown field, did you mean repeat"),
    ("quantization", {"linear": "int9"}, "did you mean int8"),
    ("name", "", "name: ''"),
    ("name", "x" * 10**5, "name: 'xxx"),
]


def kept(data: list[tuple[str, Any, str]]) -> Any:
    return pytest.mark.parametrize(("field", "value", "words"), data, ids=[f"{f}={str(v)[:20]!r}" for f, v, _ in data])


@kept(BAD_MODELS)
def test_faults_of_a_model(folder: Path, refused: Refused, field: str, value: Any, words: str) -> None:
    path = write(folder, "model.yaml", yaml.safe_dump(changed(MODEL, field, value)))
    for arguments in reading(path, "model"):
        message = refused(*arguments)
        assert message.startswith(f"error: {path}: ")
        assert words in message


BANDWIDTH = "memory.bandwidth.value"
BAD_CHIPS: list[tuple[str, Any, str]] = [
    ("name", ..., "name: is missing"),
    ("memory", ..., "memory: is missing"),
    ("memory.bandwidth", ..., "memory.bandwidth: is missing"),
    ("memory.bandwidth.source", ..., "memory.bandwidth.source: is missing"),
    ("memory.bandwidth.source", "", "memory.bandwidth.source: ''"),
    (BANDWIDTH, ..., "memory.bandwidth.value: is missing"),
    (BANDWIDTH, -1, "memory.bandwidth: value -1"),
    (BANDWIDTH, 0, "memory.bandwidth: value 0 is zero"),
    (BANDWIDTH, "0 TB/s", "is zero"),
    (BANDWIDTH, float("nan"), "memory.bandwidth: value nan"),
    (BANDWIDTH, float("inf"), "memory.bandwidth: value inf"),
    (BANDWIDTH, "inf TB/s", "memory.bandwidth: value 'inf TB/s'"),
    (BANDWIDTH, "nan", "memory.bandwidth: value 'nan'"),
    (BANDWIDTH, "-3 TB/s", "memory.bandwidth: value '-3 TB/s'"),
    (BANDWIDTH, "3 TiFLOP", "is not in B/s"),
    (BANDWIDTH, "3 TB", "'3 TB' is not in B/s"),
    (BANDWIDTH, "fast", "'fast' is not a quantity"),
    (BANDWIDTH, "", "'' is not a quantity"),
    (BANDWIDTH, True, "True is not a quantity"),
    (BANDWIDTH, [3], "is not a quantity"),
    (BANDWIDTH, 10**400, "memory.bandwidth: value a number of too many digits"),
    (BANDWIDTH, "1e400 TB/s", "memory.bandwidth: value '1e400 TB/s'"),
    (BANDWIDTH, "1e300 YB/s", "memory.bandwidth: value '1e300 YB/s'"),
    ("memory.capacity.value", "80 GiB/s", "is not in B"),
    ("memory.bandwith", {"value": 1, "source": "x"}, "bandwith: unknown field, did you mean bandwidth"),
    ("peak.bf61", {"value": 1, "source": "x"}, "bf61: unknown field, did you mean bf16"),
    ("peak", [], "peak: "),
    ("peak.bf16", "100 TFLOP/s", "peak.bf16: "),
    ("peak.bf16.value", "100 TB/s", "is not in FLOP/s"),
    ("kind", "gqu", "kind: 'gqu'"),
    ("chips_per_host", 0, "chips_per_host: 0"),
    ("chips_per_host", -8, "chips_per_host: -8"),
    ("chips_per_host", 8.5, "chips_per_host: 8.5"),
    ("year", "soon", "year: 'soon'"),
    ("vendr", "x", "vendr: unknown field, did you mean vendor"),
    ("notes", "text", "notes: 'text'"),
]


@kept(BAD_CHIPS)
def test_faults_of_a_chip(folder: Path, refused: Refused, field: str, value: Any, words: str) -> None:
    path = write(folder, "chip.yaml", yaml.safe_dump(changed(CHIP, field, value)))
    for arguments in reading(path, "hardware"):
        message = refused(*arguments)
        assert message.startswith(f"error: {path}: ")
        assert words in message


BAD_CONFIGS: list[tuple[str, Any, str]] = [
    ("model_type", "lama", "did you mean llama"),
    ("model_type", 5, "model_type"),
    ("model_type", None, "model_type"),
    ("model_type", "", "model_type"),
    ("hidden_size", ..., "hidden_size"),
    ("num_hidden_layers", ..., "num_hidden_layers"),
    ("hidden_size", -64, "hidden_size: -64"),
    ("hidden_size", 0, "hidden_size: 0"),
    ("hidden_size", float("nan"), "hidden_size: "),
    ("hidden_size", float("inf"), "hidden_size: "),
    ("hidden_size", "64", "hidden_size: '64'"),
    ("hidden_size", True, "hidden_size: "),
    ("hidden_size", [64], "hidden_size: "),
    ("hidden_size", {}, "hidden_size: "),
    ("hidden_size", 10**12, "hidden_size: "),
    ("hidden_size", 10**4000, "hidden_size: "),
    ("num_hidden_layers", 10**8, "layers"),
    ("num_hidden_layers", 2.5, "num_hidden_layers: 2.5"),
    ("num_attention_heads", 3, "num_attention_heads"),
    ("num_key_value_heads", 3, "num_key_value_heads"),
    ("num_key_value_heads", -1, "num_key_value_heads"),
    ("head_dim", 0, "head_dim"),
    ("tie_word_embeddings", "no", "tie_word_embeddings"),
    ("attention_bias", "no", "attention_bias"),
    ("quantization_config", {"quant_method": "gptk", "bits": 4}, "quantization_config"),
    ("quantization_config", "gptq", "quantization_config"),
    ("quantization_config", {"quant_method": "gptq", "bits": -4}, "bits"),
]


@kept(BAD_CONFIGS)
def test_faults_of_a_config(folder: Path, refused: Refused, field: str, value: Any, words: str) -> None:
    text = json.dumps(changed(CONFIG, field, value))
    for name in ("config.json", "anything.json"):
        path = write(folder, name, text)
        for arguments in reading(path, "model"):
            message = refused(*arguments)
            assert message.startswith(f"error: {path}: ")
            assert words in message


def test_every_fault_of_a_file_is_told_at_once(folder: Path, refused: Refused) -> None:
    data = changed(changed(changed(MODEL, "hidden_size", -1), "vocab_size", ...), "hiden_size", 3)
    message = refused("model", write(folder, "model.yaml", yaml.safe_dump(data)))
    assert message.count("; ") == 2
    for field in ("hidden_size: -1", "vocab_size: is missing", "hiden_size: unknown field"):
        assert field in message


def test_heads_that_do_not_divide_the_width_need_a_head_size(folder: Path, refused: Refused) -> None:
    data = changed(changed(CONFIG, "num_attention_heads", 6), "num_key_value_heads", 6)
    assert "num_attention_heads" in refused("model", write(folder, "config.json", json.dumps(data)))


# ---- what is unusual but asked for -----------------------------------------------------------------------------------


def test_a_trillion_parameters_are_a_note(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # 100 layers of 3 x 2^16 x 2^16 weights are 1.3e12 already.
    data = changed(changed(MODEL, "hidden_size", 65536), "layers.0.repeat", 100)
    data = changed(data, "layers.0.ffn.intermediate_size", 65536)
    path = write(folder, "model.yaml", yaml.safe_dump(data))
    for arguments in (("model", path), ("ops", path, "--hardware", "h100-sxm")):
        assert run([*arguments, "--format", "json"]) == 0
        captured = capsys.readouterr()
        assert json.loads(captured.out)
        assert any(line.startswith("note: Small has 1.") and "trillion" in line for line in captured.err.splitlines())


def test_a_context_beyond_the_model_s_own_is_a_note(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(folder, "model.yaml", yaml.safe_dump({**MODEL, "max_position_embeddings": 4096}))
    arguments = ["ops", path, "--hardware", "h100-sxm", "--format", "json", "--context"]
    assert run([*arguments, "4095"]) == 0
    assert capsys.readouterr().err == ""
    assert run([*arguments, "4096"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "note: 4097 tokens are beyond the 4096 that Small was made for\n"
    assert json.loads(captured.out)["totals"]["lower_s"] > 0


def test_towers_that_memory_leaves_out_are_a_note(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(folder, "model.yaml", yaml.safe_dump({**MODEL, "vision_parameters": 3 * 10**9}))
    assert run(["ops", path, "--hardware", "h100-sxm", "--format", "json"]) == 0
    assert capsys.readouterr().err.endswith("not in memory here: an engine that loads them needs 6.00 GB more\n")


def test_weights_beyond_the_memory_are_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", "llama-3.1-70b", "--hardware", "t4", "--batch", "1000000000", "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert "note: weights, KV cache" in captured.err
    assert json.loads(captured.out)["totals"]["lower_s"] > 0


def test_a_failure_shows_no_notes(folder: Path, refused: Refused) -> None:
    path = write(folder, "model.yaml", yaml.safe_dump({**MODEL, "notes": ["a note"]}))
    (folder / "out").mkdir()
    assert "note" not in refused("model", path, "--output", "out")
