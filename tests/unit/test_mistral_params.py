"""Mistral's own ``params.json``, against published totals and against the configs that were published of the same models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run_planner

from planner.catalogue import load_model
from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.importers.mistral import read_params
from planner.model import Model, SoftmaxAttention

NEMO: dict[str, Any] = {
    "dim": 5120,
    "n_layers": 40,
    "head_dim": 128,
    "hidden_dim": 14336,
    "n_heads": 32,
    "n_kv_heads": 8,
    "rope_theta": 1000000.0,
    "norm_eps": 1e-05,
    "vocab_size": 131072,
    "max_seq_len": 128000,
}
MIXTRAL_8X22B: dict[str, Any] = {
    "dim": 6144,
    "n_layers": 56,
    "head_dim": 128,
    "hidden_dim": 16384,
    "n_heads": 48,
    "n_kv_heads": 8,
    "norm_eps": 1e-05,
    "vocab_size": 32768,
    "moe": {"num_experts_per_tok": 2, "num_experts": 8},
}
LARGE_3: dict[str, Any] = {
    "dim": 7168,
    "n_layers": 61,
    "head_dim": 128,
    "hidden_dim": 16384,
    "n_heads": 128,
    "n_kv_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "norm_eps": 1e-06,
    "vocab_size": 131072,
    "tied_embeddings": False,
    "llama_4_scaling": {"original_max_position_embeddings": 8192, "beta": 0.1},
    "yarn": {"factor": 36, "original_max_position_embeddings": 8192, "alpha": 1, "beta": 32, "apply_scale": False},
    "max_position_embeddings": 294912,
    "quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"},
    "vision_encoder": {"hidden_size": 1664, "num_hidden_layers": 48},
    "moe": {
        "expert_model_parallel": 1,
        "expert_hidden_dim": 4096,
        "first_k_dense_replace": 3,
        "num_experts": 128,
        "num_experts_per_tok": 4,
        "num_expert_groups": 1,
        "num_expert_groups_per_tok": 1,
        "num_shared_experts": 1,
        "route_every_n": 1,
        "routed_scale": 1.0,
    },
}
MAMBA: dict[str, Any] = {
    "dim": 4096,
    "n_layers": 64,
    "vocab_size": 32768,
    "n_groups": 8,
    "rms_norm": True,
    "residual_in_fp32": True,
    "fused_add_norm": True,
    "pad_vocab_size_multiple": 1,
    "tie_embeddings": False,
    "model_type": "mamba",
}


def read(data: dict[str, Any]) -> Model:
    return read_params(data, name="test", where="params.json")


@pytest.mark.parametrize(
    ("data", "parameters"),
    [
        # Elements of the safetensors files of mistralai/Mistral-Nemo-Instruct-2407, as the hub counts them.
        (NEMO, 12_247_782_400),
        # The same of mistralai/Mixtral-8x22B-Instruct-v0.1.
        (MIXTRAL_8X22B, 140_630_071_296),
        # The same of mistralai/Mamba-Codestral-7B-v0.1.
        (MAMBA, 7_285_403_648),
    ],
)
def test_parameters_are_those_of_the_files(data: dict[str, Any], parameters: int) -> None:
    assert read(data).parameters == parameters


def test_large_3_by_hand() -> None:
    """ "673B" and "39B active" of the text model (card of mistralai/Mistral-Large-3-675B-Instruct-2512), of latent attention and experts."""
    attention = 7168 * 1536 + 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 + 512 * 128 * 256 + 128 * 128 * 7168
    expert, dense = 3 * 7168 * 4096, 3 * 7168 * 16384
    layers = 61 * (attention + 2 * 7168) + 3 * dense + 58 * (7168 * 128 + 129 * expert)
    model = read(LARGE_3)
    assert model.parameters == layers + 2 * 131072 * 7168 + 7168
    assert model.parameters == pytest.approx(673e9, rel=0.005)
    assert model.active_parameters == pytest.approx(39e9, rel=0.05)
    assert model.kv_elements_per_token == 61 * 576
    assert model.vision_parameters is None
    assert model.quantization.linear == "fp8"


def test_yarn_changes_nothing_that_is_counted_and_nothing_is_left_unread() -> None:
    notes = read(LARGE_3).notes
    assert notes == ("translated from Mistral's params.json: read as a config of type deepseek_v3",)
    assert read(LARGE_3).max_position_embeddings == 294912


def test_windows_in_a_pattern() -> None:
    """Three layers of four look through a window; in a list null stands for none (vLLM configs/mistral.py)."""
    model = read({**NEMO, "sliding_window": [32768, 32768, 32768, None]})
    spans = {k.layer.attention.sliding_window: k.count for k in model.layer_kinds if _is_softmax(k.layer.attention)}
    assert spans == {32768: 30, None: 10}
    assert model.kv_elements_per_token == 10 * 2 * 8 * 128


def _is_softmax(block: object) -> bool:
    return isinstance(block, SoftmaxAttention)


def test_latent_attention_without_experts() -> None:
    """The same as the config of DeepSeek's type that has no layer of experts."""
    dense = {key: value for key, value in LARGE_3.items() if key not in ("moe", "quantization", "vision_encoder")}
    attention = 7168 * 1536 + 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 + 512 * 128 * 256 + 128 * 128 * 7168
    layers = 61 * (attention + 2 * 7168 + 3 * 7168 * 16384)
    assert read(dense).parameters == layers + 2 * 131072 * 7168 + 7168
    assert read(dense).vision_parameters == 0


def test_compressed_tensors_are_passed_on() -> None:
    weights = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
    group = {"targets": ["Linear"], "weights": weights, "input_activations": weights}
    block = {"config_groups": {"group_0": group}, "format": "nvfp4-pack-quantized", "ignore": ["output"]}
    ours = read({**NEMO, "quantization": {"quant_method": "compressed_tensors", **block}})
    config = {
        "model_type": "mistral",
        "hidden_size": 5120,
        "num_hidden_layers": 40,
        "head_dim": 128,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 131072,
        "quantization_config": {"quant_method": "compressed-tensors", **block},
    }
    assert ours.quantization == read_config(config, name="test", where="c.json").quantization


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_dim": None}, "hidden_dim: is missing"),
        ({"quantization": {"qformat_weight": "int3"}}, "'int3' is not known"),
        ({"quantization": "fp8"}, "quantization: is no mapping"),
        ({"moe": [8]}, "moe: is no mapping"),
        ({"sliding_window": [4, 8]}, "sliding_window: is to list one width"),
        ({"sliding_window": [4, None, None]}, "sliding_window: is to list one width"),
        ({"ada_rms_norm_t_cond": True, "ada_rms_norm_t_cond_dim": 64}, "ada_rms_norm_t_cond_dim: 64 is not 32"),
        ({"n_layers": "forty"}, "num_hidden_layers"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        read({**NEMO, **change})


def test_unknown_fields_are_named() -> None:
    assert any("n_loops" in note for note in read({**NEMO, "n_loops": 2}).notes)
    assert any("use_biases" in note for note in read({**NEMO, "use_biases": True}).notes)


def test_voxtral_realtime_has_norms_that_depend_on_the_delay() -> None:
    """Two matrices of rank 32 in each layer, as in the transformers library's class."""
    audio = {"multimodal": {"whisper_model_args": {"encoder_args": {"causal": True}}}}
    model = read({**NEMO, **audio, "ada_rms_norm_t_cond": True, "ada_rms_norm_t_cond_dim": 32})
    assert model.parameters == 12_247_782_400 + 40 * 2 * 5120 * 32
    assert model.vision_parameters is None


def test_a_folder_and_a_file_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "nemo"
    folder.mkdir()
    (folder / "params.json").write_text(json.dumps(NEMO))
    assert load_model(str(folder)).name == "nemo"
    assert load_model(str(folder / "params.json")).parameters == 12_247_782_400


def test_import_writes_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "params.json").write_text(json.dumps(LARGE_3))
    written = tmp_path / "large.yaml"
    assert run_planner("import", str(tmp_path), "-o", str(written)).code == 0
    ours, theirs = load_model(str(written)), load_model(str(tmp_path))
    assert ours.layers == theirs.layers
    assert ours.parameters == theirs.parameters
    assert ours.quantization.linear == theirs.quantization.linear
