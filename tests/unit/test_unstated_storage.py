"""Checkpoints whose files do not say how weights are stored: never read as bf16 without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from planner.catalogue import load_model
from planner.cli.main import cli
from planner.importers.hub import FILES

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
NVFP4 = {
    "producer": {"name": "modelopt", "version": "0.29.0"},
    "quantization": {
        "quant_algo": "NVFP4",
        "group_size": 16,
        "exclude_modules": ["lm_head"],
    },
}
"""The file that NVIDIA's ModelOpt writes beside config.json."""

LINEAR = 4 * (4 * 256 * 256 + 3 * 256 * 512)
"""Elements of the four layers' matrices."""

PLAIN = 2 * 1000 * 256 + 9 * 256
"""Elements of the embedding, the head and the norms."""


def folder(root: Path, name: str, **files: Any) -> Path:
    """Make a folder with a config, and other files in JSON."""
    path = root / name
    path.mkdir(parents=True)
    for file, content in {"config": CONFIG, **files}.items():
        (path / f"{file}.json").write_text(json.dumps(content))
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, [*arguments])


def told(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if "no quantization block" in line]


# ---- where the format of stored weights comes from -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "bf16, as torch_dtype says; no quantization block in config.json"),
        ({"torch_dtype": None, "dtype": "bfloat16"}, "bf16, as dtype says; no quantization block in config.json"),
        ({"torch_dtype": "torch.bfloat16"}, "bf16, as torch_dtype says; no quantization block in config.json"),
        (
            {"torch_dtype": "float16"},
            "bf16, for the float16 that torch_dtype says; no quantization block in config.json",
        ),
        (
            {"torch_dtype": "float32"},
            "bf16, for the float32 that torch_dtype says; no quantization block in config.json",
        ),
        ({"torch_dtype": None}, "bf16, as nothing is said: neither dtype nor a quantization block in config.json"),
        ({"quantization_config": {}}, "bf16, as torch_dtype says; no quantization block in config.json"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "quantization_config, awq"),
    ],
)
def test_the_source_of_the_stored_format(tmp_path: Path, fields: dict[str, Any], expected: str) -> None:
    path = folder(tmp_path, "plain", config={**CONFIG, **fields})
    assert load_model(str(path)).quantization.source == expected


def test_a_nested_text_model_says_its_own(tmp_path: Path) -> None:
    whole = {
        "model_type": "internvl_chat",
        "torch_dtype": "float32",
        "llm_config": {**CONFIG, "torch_dtype": "bfloat16"},
    }
    path = folder(tmp_path, "plain", config=whole)
    assert load_model(str(path)).quantization.source.startswith("bf16, as torch_dtype says")


def test_it_stands_in_the_json_in_the_table_and_in_the_yaml(tmp_path: Path) -> None:
    path, says = str(folder(tmp_path, "plain")), "bf16, as torch_dtype says; no quantization block in config.json"
    assert json.loads(run("model", path, "--format", "json").stdout)["stored_format_from"] == says
    table = run("model", path)
    assert says in " ".join(table.stdout.split())
    assert table.stderr == ""
    assert yaml.safe_load(run("import", path).stdout)["quantization"] == {"source": says}


def test_another_precision_is_not_what_is_stored(tmp_path: Path) -> None:
    path = str(folder(tmp_path, "plain"))
    record = json.loads(run("model", path, "--precision", "fp8", "--format", "json").stdout)
    assert record["stored_format_from"] == "asked for: fp8"


def test_a_lone_file_under_any_name_says_which_file(tmp_path: Path) -> None:
    path = tmp_path / "some-model.json"
    path.write_text(json.dumps(CONFIG))
    assert load_model(str(path)).quantization.source.endswith("no quantization block in some-model.json")


def test_the_exporters_file_is_named_where_it_was_read(tmp_path: Path) -> None:
    model = load_model(str(folder(tmp_path, "plain-nvfp4", hf_quant_config=NVFP4)))
    assert model.quantization.source == "hf_quant_config.json, modelopt"
    # Four bits, and eight of a scale for each 16 elements.
    assert model.quantization.precision("bf16").linear.weights.bytes_per_element * 8 == 4.5
    assert model.notes == ()


def test_a_dtype_that_only_a_block_explains_is_told(tmp_path: Path) -> None:
    model = load_model(str(folder(tmp_path, "plain", config={**CONFIG, "torch_dtype": "float8_e4m3fn"})))
    assert any("float8_e4m3fn" in note and "no quantization block" in note for note in model.notes)


# ---- names that say more than the files ------------------------------------------------------------------------------

TOKENS = [
    ("Llama-3.1-8B-Instruct-FP8", "FP8"),
    ("Llama-3.1-8B-Instruct-NVFP4", "NVFP4"),
    ("gpt-oss-mxfp4", "mxfp4"),
    ("model_fp4", "fp4"),
    ("model.int4", "int4"),
    ("Qwen2.5-7B-Instruct-GPTQ-Int8", "GPTQ"),
    ("Qwen2.5-7B-Instruct-AWQ", "AWQ"),
    ("model-quantized.w4a16", "w4a16"),
    ("model-W8A8-dynamic", "W8A8"),
    ("model-W4AFP8", "W4AFP8"),
    ("llama-3-8b-bnb-4bit", "bnb"),
    ("model-8bit", "8bit"),
    ("model-4-bit", "4-bit"),
    ("model-MLX-6bit", "6bit"),
    ("Llama-3-8B-GGUF", "GGUF"),
    ("llama-3-8b.Q4_K_M", "Q4_K_M"),
    ("model-exl2", "exl2"),
    ("model-nf4", "nf4"),
    ("model-HQQ", "HQQ"),
]


@pytest.mark.parametrize(("name", "token"), TOKENS)
def test_a_name_with_a_format_and_no_block_is_told(tmp_path: Path, name: str, token: str) -> None:
    result = run("model", str(folder(tmp_path, name)))
    (note,) = told(result)
    assert name in note
    assert f"says {token}" in note
    assert "counted in bf16" in note


@pytest.mark.parametrize(
    "name",
    [
        "Llama-3.1-8B",
        "Meta-Llama-3-8B-BF16",
        "model-fp16",
        "mint4u",
        "awqward",
        "gptqx",
        "w4",
        "a16",
        "bit",
        "Qwen3-4B",
        "v8a8",
    ],
)
def test_other_names_say_nothing(tmp_path: Path, name: str) -> None:
    assert run("model", str(folder(tmp_path, name))).stderr == ""


def test_the_note_names_the_file_to_put_beside_it(tmp_path: Path) -> None:
    (note,) = told(run("model", str(folder(tmp_path, "tiny-NVFP4"))))
    assert "hf_quant_config.json" in note
    (note,) = told(run("model", str(folder(tmp_path, "tiny-GGUF"))))
    assert ".gguf" in note


def test_a_block_or_the_exporters_file_says_it(tmp_path: Path) -> None:
    with_block = {**CONFIG, "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
    assert run("model", str(folder(tmp_path, "tiny-AWQ", config=with_block))).stderr == ""
    assert run("model", str(folder(tmp_path, "tiny-NVFP4", hf_quant_config=NVFP4))).stderr == ""


def test_a_block_two_levels_down_says_it(tmp_path: Path) -> None:
    text = {**CONFIG, "model_type": "qwen2_5_omni_text", "quantization_config": {"quant_method": "awq", "bits": 4}}
    whole = {
        "model_type": "qwen2_5_omni",
        "thinker_config": {"model_type": "qwen2_5_omni_thinker", "text_config": text},
    }
    model = load_model(str(folder(tmp_path, "tiny-AWQ", config=whole)))
    assert model.quantization.source == "quantization_config, awq"
    assert not any("no quantization block" in note for note in model.notes)


def test_file_folder_and_what_the_config_calls_itself_are_names(tmp_path: Path) -> None:
    for path in (tmp_path / "tiny-fp8.json", tmp_path / "tiny-fp8" / "plain.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(CONFIG))
        assert len(told(run("model", str(path)))) == 1
    itself = folder(tmp_path, "plain", config={**CONFIG, "_name_or_path": "someone/tiny-W8A8"})
    (note,) = told(run("model", str(itself)))
    assert "someone/tiny-W8A8" in note


def test_a_name_on_the_hub_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path, "0123abcd")
    monkeypatch.setattr("planner.importers.hub.fetch", lambda *_, **__: path)
    result = run("import", "nvidia/tiny-FP8")
    (note,) = told(result)
    assert "nvidia/tiny-FP8" in note
    assert any("nvidia/tiny-FP8" in note for note in yaml.safe_load(result.stdout)["notes"])


def test_the_hub_is_asked_for_the_exporters_file() -> None:
    assert "hf_quant_config.json" in FILES


def test_counts_never_depend_on_a_name(tmp_path: Path) -> None:
    plain, named = (load_model(str(folder(tmp_path, name))) for name in ("tiny", "tiny-NVFP4"))
    assert plain.model_dump(exclude={"name", "source", "notes"}) == named.model_dump(
        exclude={"name", "source", "notes"}
    )


# ---- weights nearby --------------------------------------------------------------------------------------------------


def header(path: Path, tensors: dict[str, tuple[str, list[int], int]]) -> None:
    """Write the header of a safetensors file, without the tensors."""
    entries, offset = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(entries).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def test_an_index_that_disagrees_is_told(tmp_path: Path) -> None:
    # NVFP4: half a byte for each element, and a byte for each 16; the rest in bf16.
    size = LINEAR * 9 // 16 + 2 * PLAIN
    index = {"metadata": {"total_size": size}, "weight_map": {"model.norm.weight": "model-00001-of-00001.safetensors"}}
    path = folder(tmp_path, "tiny", **{"model.safetensors.index": index})
    result = run("model", str(path))
    assert "arithmetic on its description gives" in result.stderr
    (path / "hf_quant_config.json").write_text(json.dumps(NVFP4))
    assert run("model", str(path)).stderr == ""


def test_headers_that_disagree_are_told(tmp_path: Path) -> None:
    path = folder(tmp_path, "tiny-NVFP4")
    header(
        path / "model.safetensors",
        {
            "model.layers.0.self_attn.q_proj.weight": ("U8", [LINEAR // 2], LINEAR // 2),
            "model.layers.0.self_attn.q_proj.weight_scale": ("F8_E4M3", [LINEAR // 16], LINEAR // 16),
            "model.embed_tokens.weight": ("BF16", [PLAIN], 2 * PLAIN),
        },
    )
    result = run("model", str(path))
    assert "arithmetic on its description gives" in result.stderr
    assert len(told(result)) == 1
    (path / "hf_quant_config.json").write_text(json.dumps(NVFP4))
    assert run("model", str(path)).stderr == ""
