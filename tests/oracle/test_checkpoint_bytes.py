"""Bytes of published checkpoints, against arithmetic on their configs.

Sizes are `metadata.total_size` of the repositories' `model.safetensors.index.json`, or the sum of their safetensors files where it says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.importers.huggingface import read_config
from planner.memory import checkpoint_bytes
from planner.model import Model


def llama(hidden: int, width: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        **more,
    }


QWEN_72B = {
    "model_type": "qwen2",
    "hidden_size": 8192,
    "intermediate_size": 29568,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 152064,
}
MIXTRAL_8X7B = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "vocab_size": 129280,
}
GPT_OSS_120B = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_hidden_layers": 36,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "attention_bias": True,
    "vocab_size": 201088,
    "tie_word_embeddings": False,
    "quantization_config": {
        "modules_to_not_convert": [
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
        "quant_method": "mxfp4",
    },
}
GPT_OSS_20B = {
    **GPT_OSS_120B,
    "num_hidden_layers": 24,
    "num_local_experts": 32,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
}
QWEN3_30B = {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 5472,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
GLM_45 = {
    "model_type": "glm4_moe",
    "hidden_size": 5120,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_hidden_layers": 92,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "n_routed_experts": 160,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "use_qk_norm": True,
    "attention_bias": True,
    "vocab_size": 151552,
    "tie_word_embeddings": False,
    "num_nextn_predict_layers": 1,
}
DEEPSEEK_V4_FLASH = {
    "model_type": "deepseek_v4",
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
    "expert_dtype": "fp4",
    "hc_mult": 4,
    "head_dim": 512,
    "hidden_size": 4096,
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 512,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 64,
    "num_experts_per_tok": 6,
    "num_hidden_layers": 43,
    "num_hash_layers": 3,
    "num_key_value_heads": 1,
    "num_nextn_predict_layers": 1,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "q_lora_rank": 1024,
    "qk_rope_head_dim": 64,
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "vocab_size": 129280,
    "quantization_config": {
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "quant_method": "fp8",
        "scale_fmt": "ue8m0",
        "weight_block_size": [128, 128],
    },
}
FP8_TILES = {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]}
AWQ = {"quant_method": "awq", "bits": 4, "version": "gemm", "zero_point": True}

PUBLISHED = [
    # meta-llama/Llama-3.1-8B
    ("llama 8B", llama(4096, 14336, 32, 32), 16_060_522_496, 0),
    # Qwen/Qwen2.5-72B-Instruct
    ("qwen 72B", QWEN_72B, 145_412_407_296, 0),
    # mistralai/Mixtral-8x7B-v0.1
    ("mixtral", MIXTRAL_8X7B, 93_405_585_408, 0),
    # hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4
    ("awq 70B", llama(8192, 28672, 80, 64, quantization_config={**AWQ, "group_size": 128}), 39_767_785_472, 0),
    # deepseek-ai/DeepSeek-V3: its 163 safetensors files together, headers of some MB included.
    (
        "fp8 671B",
        {**DEEPSEEK_V3, "num_nextn_predict_layers": 1, "quantization_config": FP8_TILES},
        688_586_727_753,
        1e-4,
    ),
    # openai/gpt-oss-120b
    ("mxfp4 117B", GPT_OSS_120B, 65_248_815_744, 0),
    # openai/gpt-oss-20b; the same files with a block that lists no exceptions.
    ("mxfp4 21B", GPT_OSS_20B, 13_761_264_768, 0),
    ("mxfp4 alone", {**GPT_OSS_20B, "quantization_config": {"quant_method": "mxfp4"}}, 13_761_264_768, 0),
    # deepseek-ai/DeepSeek-V4-Flash: experts in fp4, the rest in fp8 tiles; hyper-connections are stored in fp32.
    ("fp4 284B", DEEPSEEK_V4_FLASH, 159_609_485_896, 0.003),
    # cognitivecomputations/DeepSeek-V3-AWQ, groups of 64, without the module for multi-token prediction.
    ("awq 671B", {**DEEPSEEK_V3, "quantization_config": {**AWQ, "group_size": 64}}, 364_589_799_936, 1e-6),
]


def mlx(config: dict[str, Any], bits: int = 4, **more: Any) -> dict[str, Any]:
    """Return a config with a block of MLX, under both names as `mlx_lm.convert` writes it."""
    block = {"group_size": 64, "bits": bits, **more}
    plain = {name: value for name, value in config.items() if name != "quantization_config"}
    return {**plain, "quantization": block, "quantization_config": block}


Q8 = {"group_size": 64, "bits": 8, "mode": "affine"}
MIXED = {
    "mode": "mxfp4",
    "group_size": 32,
    "model.embed_tokens": Q8,
    "lm_head": Q8,
    **{f"model.layers.{layer}.mlp.router": Q8 for layer in range(24)},
    **{f"model.layers.{layer}.self_attn.{part}_proj": Q8 for layer in range(24) for part in "qkvo"},
}
GATES = {f"model.layers.{layer}.mlp.gate": Q8 for layer in range(48)}
TIED = {"tie_word_embeddings": True}

PUBLISHED += [
    # Repositories of mlx-community, in order: Llama-3.1-8B-Instruct-4bit, Llama-3.3-70B-Instruct-4bit, Llama-3.2-1B-Instruct-4bit,
    # Llama-3.2-3B-Instruct-4bit, SmolLM2-135M-Instruct-8bit, Qwen3-Coder-30B-A3B-Instruct-4bit and gpt-oss-20b-MXFP4-Q8.
    ("mlx 8B", mlx(llama(4096, 14336, 32, 32)), 4_517_404_672, 0),
    ("mlx 70B", mlx(llama(8192, 28672, 80, 64)), 39_688_355_840, 0),
    ("mlx 1B", mlx(llama(2048, 8192, 16, 32, **TIED)), 695_242_752, 0),
    ("mlx 3B", mlx(llama(3072, 8192, 28, 24, **TIED)), 1_807_423_488, 0),
    (
        "mlx 135M",
        mlx({**llama(576, 1536, 30, 9, **TIED), "num_key_value_heads": 3, "vocab_size": 49152}, 8),
        142_955_136,
        0,
    ),
    ("mlx 30B", mlx(QWEN3_30B, **GATES), 17_180_913_664, 0),
    ("mlx mixed", mlx(GPT_OSS_20B, **MIXED), 12_076_119_168, 0),
]


def bytes_of(config: dict[str, Any]) -> tuple[Model, float]:
    model = read_config(config, name="m", where="config.json")
    return model, sum(checkpoint_bytes(model, model.quantization.precision("bf16")).values())


@pytest.mark.parametrize(("name", "config", "published", "tolerance"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_bytes_of_a_published_checkpoint(name: str, config: dict[str, Any], published: int, tolerance: float) -> None:
    _, computed = bytes_of(config)
    assert computed == pytest.approx(published, rel=max(tolerance, 1e-12)), name


def test_parameters_of_a_checkpoint_with_multi_token_prediction() -> None:
    # Hugging Face counts 684,489,845,504 parameters in deepseek-ai/DeepSeek-V3; 59 router biases of 256 are buffers and not counted.
    model, _ = bytes_of({**DEEPSEEK_V3, "num_nextn_predict_layers": 1})
    assert model.parameters == 671_026_404_352
    assert model.parameters + model.mtp_parameters + 59 * 256 == 684_489_845_504


def test_parameters_of_another_checkpoint_with_multi_token_prediction() -> None:
    # Hugging Face counts 358,337,776,896 parameters in zai-org/GLM-4.5, and the same in GLM-4.7.
    model, _ = bytes_of(GLM_45)
    assert model.parameters + model.mtp_parameters == 358_337_776_896


# config.json of zai-org/GLM-4.5-Air, of what is read; a router's correction for each of 128 experts is a buffer.
GLM_45_AIR = {
    "model_type": "glm4_moe",
    "attention_bias": True,
    "first_k_dense_replace": 1,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_attention_heads": 96,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 46,
    "num_key_value_heads": 8,
    "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False,
    "use_qk_norm": False,
    "vocab_size": 151552,
}
# config.json of Qwen/Qwen3-Next-80B-A3B-Instruct, of what is read; it has no count of modules.
QWEN3_NEXT = {
    "model_type": "qwen3_next",
    "decoder_sparse_step": 1,
    "full_attention_interval": 4,
    "head_dim": 256,
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "moe_intermediate_size": 512,
    "num_attention_heads": 16,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "num_hidden_layers": 48,
    "num_key_value_heads": 2,
    "shared_expert_intermediate_size": 512,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
}


def test_parameters_of_a_small_checkpoint_with_multi_token_prediction() -> None:
    # Hugging Face counts 110,468,824,832 parameters in zai-org/GLM-4.5-Air, corrections of routers (one of them the module's) included.
    model, _ = bytes_of(GLM_45_AIR)
    assert model.parameters + model.mtp_parameters + 46 * 128 == 110_468_824_832


def test_a_published_number_may_count_all_that_the_checkpoint_holds() -> None:
    model, _ = bytes_of(GLM_45_AIR)
    # The hub's figure; the text model alone; with the module; PrimeIntellect/INTELLECT-3, which is GLM-4.5-Air without its module.
    for published in (110_468_824_832, 106_852_245_504, 110_468_824_832 - 46 * 128, 106_852_251_264):
        assert model.accounts_for(published)
    assert not model.accounts_for(110_468_824_832 - 1)
    towers = model.model_copy(update={"vision_parameters": 5})
    assert towers.accounts_for(110_468_824_832 + 5)
    assert towers.accounts_for(106_852_245_504)
    assert not towers.accounts_for(110_468_824_832 + 4)


def test_a_module_that_the_file_does_not_count_is_in_the_checkpoint() -> None:
    # Hugging Face counts 81,324,862,720 parameters in Qwen/Qwen3-Next-80B-A3B-Instruct, whose files hold `mtp.layers.0`.
    model, _ = bytes_of(QWEN3_NEXT)
    assert model.parameters + model.mtp_parameters == 81_324_862_720
    assert [note for note in model.notes if "the first checkpoints of qwen3_next hold" in note]
    stated, _ = bytes_of({**QWEN3_NEXT, "num_nextn_predict_layers": 0})
    assert stated.mtp is None
    assert stated.parameters == model.parameters


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"num_mtp_modules": 3}, "3 modules"),
        ({"num_mtp_layers": 2}, "2 modules"),
        ({"mtp_num_layers": 2}, "2 modules"),
        ({"mtp_num_hidden_layers": 2}, "2 modules"),
        ({"mtp_transformer_layers": 1}, "1 module for"),
        ({"use_mtp": True}, "use_mtp"),
        ({"use_mtp": True, "num_mtp_modules": 3}, "3 modules"),
        ({"use_mtp": False, "num_mtp_modules": 3}, ""),
        ({"num_mtp_modules": 0}, ""),
    ],
)
def test_multi_token_prediction_is_never_silent(changes: dict[str, Any], told: str) -> None:
    plain = {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 96,
    }
    model, _ = bytes_of({**plain, "vocab_size": 100, **changes})
    assert model.mtp is None
    assert (
        [note for note in model.notes if "multi-token prediction" in note and told in note] if told else not model.notes
    )


def test_modules_that_no_checkpoint_holds_are_not_counted() -> None:
    # `mtp` is in no tensor's name in the released files of MiniMax-M2.7, whose config.json says three modules.
    path = Path(__file__).parent / "data" / "configs" / "MiniMaxAI__MiniMax-M2.5.json"
    model, _ = bytes_of(json.loads(path.read_text("utf-8")))
    assert model.mtp is None
    assert [note for note in model.notes if "num_mtp_modules tells of 3 modules" in note and "hold none" in note]


def test_bytes_of_experts_in_fp4() -> None:
    # Sums over the headers of deepseek-ai/DeepSeek-V4-Flash: the experts of 43 layers with their scales.
    model, _ = bytes_of(DEEPSEEK_V4_FLASH)
    assert checkpoint_bytes(model, model.quantization.precision("bf16"))["experts"] == 147_169_738_752


def test_multi_token_prediction_is_not_served() -> None:
    with_mtp, stored = bytes_of({**DEEPSEEK_V3, "num_nextn_predict_layers": 1})
    without, served = bytes_of({**DEEPSEEK_V3, "num_nextn_predict_layers": 0})
    assert without.mtp is None
    assert stored - served == 2 * with_mtp.mtp_parameters


def test_unknown_storage_of_multi_token_prediction_is_told() -> None:
    model, _ = bytes_of({**MIXTRAL_8X7B, "num_nextn_predict_layers": 2})
    assert any("multi-token prediction" in note for note in model.notes)
