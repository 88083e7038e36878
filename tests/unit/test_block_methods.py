"""Blocks of AutoRound, MLX, ExLlama, HQQ, torchao, Quark, ModelOpt and others: bits worked out by hand from what each method stores."""

from __future__ import annotations

from typing import Any

import pytest
from quantization_blocks import DENSE, EXPERTS, bits, read

from planner.errors import CatalogueError
from planner.importers.huggingface import read_config


def linear(block: dict[str, Any]) -> float:
    return bits(read(block), "o_proj")


# ---- AutoRound -------------------------------------------------------------------------------------------------------


def rounded(**fields: Any) -> dict[str, Any]:
    return {
        "quant_method": "auto-round",
        "bits": 4,
        "group_size": 128,
        "sym": True,
        "packing_format": "auto_round",
        **fields,
    }


ROUNDED = [
    (rounded(data_type="int"), 4 + (16 + 4) / 128, "bf16"),
    (rounded(data_type="int", bits=8, group_size=-1, act_bits=8), 8, "int8"),
    (rounded(data_type="mx_fp", group_size=32, act_bits=16), 4 + 8 / 32, "bf16"),
    (rounded(data_type="mx_fp", group_size=32, act_bits=4, act_data_type="mx_fp_rceil"), 4 + 8 / 32, "mxfp4"),
    (rounded(data_type="mx_fp", bits=8, group_size=32, act_bits=8), 8 + 8 / 32, "fp8"),
    (rounded(data_type="nv_fp4_with_static_gs", group_size=16, act_bits=4), 4 + 8 / 16, "nvfp4"),
    (rounded(data_type="nv_fp", group_size=16, act_bits=16), 4 + 8 / 16, "bf16"),
    (rounded(data_type="fp", bits=8, group_size=-1, act_bits=8), 8, "fp8"),
    (rounded(data_type="fp8", bits=8, group_size=-1, act_bits=16), 8, "bf16"),
    (rounded(data_type="fp8_e4m3", bits=8, group_size=[128, 128], act_bits=8), 8 + 32 / 128**2, "fp8"),
]


@pytest.mark.parametrize(("block", "expected", "arithmetic"), ROUNDED)
def test_data_types_of_auto_round(block: dict[str, Any], expected: float, arithmetic: str) -> None:
    model = read(block)
    assert bits(model, "o_proj") == pytest.approx(expected)
    assert model.quantization.precision("bf16").linear.arithmetic == arithmetic


def test_auto_round_of_single_modules() -> None:
    # What an entry does not say is the block's; a name goes before an expression, which may match anywhere.
    extra = {
        "self_attn": {"bits": 8, "group_size": 32},
        "[qkv]_proj": {"bits": 2},
        "model.layers.0.mlp.down_proj": {"bits": 16, "data_type": "fp"},
        "model.layers.1.mlp.down_proj": {"group_size": 64},
        "model.layers.2.mlp.down_proj": {"data_type": "mx_fp", "group_size": 32, "act_bits": 16},
        "lm_head": {"bits": 8},
    }
    model = read(rounded(extra_config=extra))
    assert bits(model, "o_proj") == bits(model, "qkv_proj") == 8 + 24 / 32
    assert bits(model, "down_proj") == pytest.approx((16 + (4 + 20 / 64) + 4.25 + (4 + 20 / 128)) / 4)
    assert bits(model, "lm_head") == 8 + 24 / 128
    assert bits(read(rounded(extra_config={"[qkv]_proj": {"bits": 2}})), "qkv_proj") == 2 + 18 / 128
    assert bits(read(rounded()), "lm_head") == 16


# ---- MLX -------------------------------------------------------------------------------------------------------------


def top(**fields: Any) -> Any:
    return read_config(
        {**DENSE, "quantization": {"group_size": 64, "bits": 4, **fields}}, name="m", where="config.json"
    )


def test_mlx_quantises_every_matrix() -> None:
    # A scale and a bias of 16 bits for each 64 weights.
    model = top()
    assert {bits(model, name) for name in ("qkv_proj", "down_proj", "embed_tokens", "lm_head")} == {4.5}
    assert read({"group_size": 64, "bits": 4}).quantization == model.quantization
    assert model.quantization.source == "quantization_config, mlx"
    assert not any("quantization" in note for note in model.notes)


def test_a_tied_head_of_mlx_is_the_embedding() -> None:
    model = read(
        {"group_size": 64, "bits": 4, "lm_head": {"bits": 8, "group_size": 64}}, {**DENSE, "tie_word_embeddings": True}
    )
    assert bits(model, "embed_tokens") == bits(model, "lm_head") == 4.5


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"bits": 3, "group_size": 32}, 3 + 32 / 32),
        ({"bits": 8, "group_size": 128, "mode": "affine"}, 8 + 32 / 128),
        ({"mode": "mxfp4", "group_size": 32}, 4 + 8 / 32),
        ({"mode": "mxfp8", "bits": 8, "group_size": 32}, 8 + 8 / 32),
        ({"mode": "nvfp4", "group_size": 16}, 4 + 8 / 16),
    ],
)
def test_modes_of_mlx(fields: dict[str, Any], expected: float) -> None:
    assert bits(top(**fields), "o_proj") == pytest.approx(expected)


def test_mlx_of_single_modules() -> None:
    model = top(
        **{
            "model.layers.0.mlp.down_proj": {"group_size": 32, "bits": 8},
            "model.layers.1.mlp.down_proj": False,
            "model.layers.2.mlp.down_proj": True,
            "lm_head": {"bits": 6, "group_size": 64},
            "model.embed_tokens": False,
        }
    )
    assert bits(model, "down_proj") == pytest.approx((9 + 16 + 4.5 + 4.5) / 4)
    assert (bits(model, "lm_head"), bits(model, "embed_tokens")) == (6.5, 16)


def test_experts_and_routers_of_mlx() -> None:
    named = {f"model.layers.{n}.mlp.switch_mlp.down_proj": {"group_size": 64, "bits": 8} for n in range(4)}
    named |= {f"model.layers.{n}.mlp.gate": {"group_size": 64, "bits": 8} for n in range(4)}
    model = read({"group_size": 64, "bits": 4, **named}, EXPERTS)
    assert (bits(model, "experts.down_proj"), bits(model, "experts.gate_up_proj"), bits(model, "router")) == (
        8.5,
        4.5,
        8.5,
    )
    assert bits(read({"group_size": 64, "bits": 4}, EXPERTS), "router") == 16


@pytest.mark.parametrize(
    "fields",
    [{"mode": "spiral"}, {"bits": 7}, {"group_size": 48}, {"mode": "mxfp4", "bits": 8, "group_size": 32}, {"odd": 3}],
)
def test_what_mlx_does_not_have_is_an_error_that_says_so(fields: dict[str, Any]) -> None:
    with pytest.raises(CatalogueError, match="MLX"):
        top(**fields)


# ---- other methods ---------------------------------------------------------------------------------------------------

STORED = [
    # BitNet b1.58 2B4T: four ternary weights in a byte; its bf16 repository says online.
    ({"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline"}, 2),
    ({"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "online"}, 16),
    ({"quant_method": "awq_marlin", "bits": 4, "group_size": 128}, 4 + 20 / 128),
    ({"quant_method": "gptq_marlin", "bits": 4, "group_size": 128}, 4 + 20 / 128),
    ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": False}, 4 + 16 / 128),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin"}, 4 + 16 / 128),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin_24"}, 3 + 16 / 128),
    ({"quant_method": "bitsandbytes", "load_in_4bit": False, "load_in_8bit": False}, 16),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_has_fp16_weight": True}, 16),
    ({"quant_method": "fp8", "fmt": "e5m2"}, 8),
    # HQQ: a scale of 8 bits for each 128 of which there are 16 bits each of scale and zero-point; a zero-point likewise.
    (
        {
            "quant_method": "hqq",
            "quant_config": {
                "weight_quant_params": {"nbits": 2, "group_size": 16},
                "scale_quant_params": {"nbits": 8, "group_size": 128},
                "zero_quant_params": {"nbits": 8, "group_size": 128},
            },
        },
        2 + 2 * (8 + 32 / 128) / 16,
    ),
    # Ten weights of three bits in 32.
    ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 3, "group_size": 64}}}, 3.2 + 32 / 64),
    ({"quant_method": "torchao", "quant_type": "int4_weight_only"}, 4 + 32 / 128),
    # Four bits in a byte each, in groups of 32 unless told otherwise.
    ({"quant_method": "torchao", "quant_type": "int8_dynamic_activation_int4_weight"}, 8 + 24 / 32),
    (
        {
            "quant_method": "torchao",
            "quant_type": {
                "default": {
                    "_type": "ModuleFqnToConfig",
                    "_data": {
                        "module_fqn_to_config": {
                            "_default": {"_type": "Int8WeightOnlyConfig", "_data": {}},
                            "re:.*o_proj": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 64}},
                        }
                    },
                }
            },
        },
        4.5,
    ),
    # Quark's NVFP4 is in two stages: fp4, and scales in fp8; its int4 in fp8 likewise, the other way round.
    (
        {
            "quant_method": "quark",
            "global_quant_config": {
                "weight": [
                    {"dtype": "fp4", "qscheme": "per_group", "group_size": 16},
                    {"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
                ],
                "input_tensors": [{"dtype": "fp4", "qscheme": "per_group", "group_size": 16}, {"dtype": "fp8_e4m3"}],
            },
        },
        4.5,
    ),
    (
        {
            "quant_method": "quark",
            "global_quant_config": {
                "weight": [{"dtype": "fp8_e4m3", "qscheme": "per_tensor"}, {"dtype": "int4", "qscheme": "per_channel"}],
                "input_tensors": {"dtype": "fp8_e4m3"},
            },
        },
        4,
    ),
    (
        {
            "quant_method": "quark",
            "global_quant_config": {"weight": {"dtype": "fp6_e2m3", "qscheme": "per_group", "group_size": 32}},
        },
        6 + 8 / 32,
    ),
    ({"quantization": {"quant_algo": None, "kv_cache_quant_algo": "FP8"}}, 16),
]


@pytest.mark.parametrize(("block", "expected"), STORED)
def test_bits_of_a_stored_weight(block: dict[str, Any], expected: float) -> None:
    assert linear(block) == pytest.approx(expected)


def test_exllama_has_a_width_for_the_head() -> None:
    # doc/convert.md of ExLlamaV2 and V3: 6 bits unless told otherwise.
    for method in ("exl2", "exl3"):
        model = read({"quant_method": method, "bits": 4.25, "head_bits": 8})
        assert (bits(model, "o_proj"), bits(model, "lm_head"), bits(model, "embed_tokens")) == (4.25, 8, 16)
        assert bits(read({"quant_method": method, "bits": 4.25}), "lm_head") == 6
        assert bits(read({"quant_method": method, "bits": 4.25, "head_bits": 16}), "lm_head") == 16


def test_mxfp4_is_of_routed_experts_alone() -> None:
    model = read({"quant_method": "mxfp4"}, EXPERTS)
    assert (bits(model, "experts.down_proj"), bits(model, "down_proj"), bits(model, "o_proj")) == (4.25, 16, 16)
    assert any("quantises none" in note for note in read({"quant_method": "mxfp4"}).notes)


def test_quark_by_class_and_by_name() -> None:
    fp8 = {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}, "input_tensors": {"dtype": "fp8_e4m3"}}
    int4 = {"weight": {"dtype": "int4", "qscheme": "per_group", "group_size": 32}}
    block = {"quant_method": "quark", "global_quant_config": fp8, "layer_type_quant_config": {"Linear": int4}}
    model = read({**block, "layer_quant_config": {"*down_proj": fp8}})
    assert (bits(model, "o_proj"), bits(model, "down_proj")) == (4.5, 8)
    plain = {
        "quant_method": "quark",
        "global_quant_config": {"weight": None},
        "layer_quant_config": {"*down_proj": fp8},
    }
    assert (bits(read(plain), "o_proj"), bits(read(plain), "down_proj")) == (16, 8)
    with pytest.raises(CatalogueError, match="class 'Conv2d'"):
        read({**block, "layer_type_quant_config": {"nn.Conv2d": int4}})


def test_several_groups_of_modelopt() -> None:
    groups = {
        "group_0": {"weights": {"num_bits": 4, "type": "float", "group_size": 16}, "targets": ["re:.*mlp.*"]},
        "group_1": {"weights": {"num_bits": 8, "type": "float"}, "targets": ["re:.*self_attn.*"]},
    }
    model = read({"quant_method": "modelopt", "quant_algo": "NVFP4", "config_groups": groups, "ignore": ["lm_head"]})
    assert (bits(model, "down_proj"), bits(model, "o_proj")) == (4.5, 8)


def test_settings_by_name_of_hqq() -> None:
    named = {"self_attn.q_proj": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}
    model = read({"quant_method": "hqq", "quant_config": named, "skip_modules": ["lm_head"]})
    # Queries are half of the fused tensor.
    assert (bits(model, "qkv_proj"), bits(model, "o_proj")) == (0.5 * 4.5 + 0.5 * 16, 16)


def test_modules_to_convert_are_all_that_is_converted() -> None:
    model = read({"quant_method": "fp8", "modules_to_convert": ["down_proj"]})
    assert (bits(model, "down_proj"), bits(model, "o_proj")) == (8, 16)


UNKNOWN = [
    ({"quant_method": "vptq"}, "method 'vptq' is known, but"),
    ({"quant_method": "quip"}, "method 'quip' is known, but"),
    ({"quant_method": "higgs", "bits": 4}, "method 'higgs' is known, but"),
    ({"quant_method": "gguf"}, "name the .gguf file"),
    ({"quant_method": "bitsandbytes"}, "neither load_in_4bit nor load_in_8bit"),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": True}, "both true"),
    ({"quant_method": "bitnet", "quantization_mode": "sometimes"}, "quantization_mode 'sometimes'"),
    ({"quant_method": "fp8", "fmt": "e2m1"}, "fmt 'e2m1'"),
    ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "bitblas"}, "checkpoint_format 'bitblas'"),
    ({"quant_method": "exl2", "bits": 4.0, "head_bits": 17}, "head_bits 17"),
    (rounded(data_type="mx_fp", bits=3), "mx_fp weights of 3 bits"),
    (rounded(data_type="posit"), "data_type 'posit'"),
    (rounded(bits=16), "bits 16"),
    ({"quant_method": "hqq", "quant_config": {"nbits": 5}}, "5 bits"),
    ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "quantized_layers is missing"),
]


@pytest.mark.parametrize(("block", "named"), UNKNOWN)
def test_what_is_not_known_is_an_error_that_names_it(block: dict[str, Any], named: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        read(block)
    assert named in str(caught.value)


# ---- what is told ----------------------------------------------------------------------------------------------------


def told(block: dict[str, Any]) -> list[str]:
    return [note for note in read(block).notes if "not read, and may change the weights" in note]


def test_fields_that_nobody_asked_for_are_named() -> None:
    (note,) = told(
        {"quant_method": "fp8", "activation_scheme": "dynamic", "frobnicate": 3, "expert_bits": 2, "nothing": None}
    )
    assert note.endswith("frobnicate, expert_bits")
    weights = {"num_bits": 8, "type": "float", "stripes": 2}
    (note,) = told(
        {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": weights, "targets": ["Linear"]}}}
    )
    assert note.endswith("config_groups.g.weights.stripes")
    assert (
        told({"quant_method": "gptq", "bits": 4, "desc_act": True, "sym": False, "meta": {"quantizer": "gptqmodel"}})
        == []
    )


CALIBRATED = [
    ({"kv_cache_scheme": {"num_bits": 8, "type": "float", "strategy": "tensor"}}, "--kv-precision fp8"),
    ({"kv_cache_scheme": {"num_bits": 8, "type": "int"}}, "--kv-precision int8"),
    ({"kv_cache_scheme": "FP8"}, "--kv-precision fp8"),
    ({"kv_cache_quant_algo": "NVFP4"}, "--kv-precision fp4"),
    ({"kv_cache_quant_algo": "SPIRAL"}, "not a --kv-precision"),
]


@pytest.mark.parametrize(("fields", "option"), CALIBRATED)
def test_a_cache_that_was_calibrated_is_told(fields: dict[str, Any], option: str) -> None:
    for block in (
        {"quant_method": "modelopt", "quant_algo": "FP8", **fields},
        {"quantization": {"quant_algo": "FP8", **fields}},
    ):
        (note,) = [note for note in read(block).notes if "calibrated for a KV cache" in note]
        assert option in note


def test_no_cache_no_word() -> None:
    for nothing in ({}, {"kv_cache_scheme": None}, {"kv_cache_quant_algo": "NONE"}):
        assert not [
            note for note in read({"quant_method": "modelopt", "quant_algo": "FP8", **nothing}).notes if "KV" in note
        ]
