"""What quantisation blocks say about stored bits: widths, groups, scales, and modules that are left alone.

Bits of a weight are worked out by hand from the layouts that the methods document; blocks are cut down from published files.
"""

from __future__ import annotations

import pytest
from quantization_blocks import DENSE, EXPERTS, bits, read

from planner.errors import CatalogueError


def linear_bits(block: object) -> float:
    return bits(read(block), "o_proj")


def group(**weights: object) -> dict[str, object]:
    inputs = weights.pop("inputs", None)
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"g": {"weights": weights, "input_activations": inputs}},
    }


INPUT8 = {"num_bits": 8, "type": "float"}

STORED_BITS = [
    ({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}, 8 + 32 / 128**2),
    ({"quant_method": "FP8", "weight_block_size": [1, 128]}, 8 + 32 / 128),
    ({"quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None}, 8),
    ({"quant_method": "fbgemm_fp8"}, 8),
    ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 4 + (16 + 4) / 128),
    ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, 4 + (16 + 4) / 64),
    ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True, "sym": True}, 4 + (16 + 4) / 128),
    ({"quant_method": "gptq", "bits": 3, "group_size": 64}, 3 + (16 + 3) / 64),
    ({"quant_method": "gptq", "bits": 2, "group_size": 32}, 2 + (16 + 2) / 32),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8),
    ({"quant_method": "intel/auto-round", "bits": 4, "group_size": 128}, 4 + (16 + 4) / 128),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, 4 + 32 / 64),
    # QLoRA (arXiv 2305.14314) section 3: double quantisation takes scales from 0.5 to 0.127 bits a parameter.
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True}, 4.127),
    ({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}}, 4.5),
    ({"quant_method": "torchao", "quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": 64}}, 4.5),
    ({"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}}}, 8),
    ({"quant_method": "exl2", "bits": 4.25, "head_bits": 16}, 4.25),
    ({"quant_method": "eetq"}, 8),
    # Kimi-K2-Thinking: int4, symmetric, groups of 32, bf16 scales.
    (group(type="int", num_bits=4, strategy="group", group_size=32, symmetric=True), 4.5),
    (group(type="int", num_bits=4, strategy="group", group_size=128, symmetric=False), 4 + (16 + 4) / 128),
    (group(type="int", num_bits=8, strategy="channel"), 8),
    (group(type="int", num_bits=8, strategy="channel", inputs={"num_bits": 8, "type": "int"}), 8),
    (group(type="float", num_bits=8, strategy="channel", group_size=None, inputs=INPUT8), 8),
    (group(type="float", num_bits=8, strategy="block", block_structure=[128, 128], inputs=INPUT8), 8 + 32 / 128**2),
    (group(type="float", num_bits=4, strategy="tensor_group", group_size=16, inputs={"num_bits": 4}), 4 + 8 / 16),
    # Kimi-K3: mxfp4-pack-quantized, scales of 8 bits for 32 weights.
    (group(type="float", num_bits=4, strategy="group", group_size=32, scale_dtype="torch.uint8"), 4 + 8 / 32),
    # Qwen3-32B-FP8-Static-PerTensor: no quant_method, the exporter's fields alone.
    (
        {
            "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}, "input_activations": INPUT8}},
            "ignore": ["lm_head"],
            "quant_algo": "FP8",
            "producer": {"name": "modelopt", "version": "0.31.0"},
        },
        8,
    ),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, 4.5),
    ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}, 8),
    (
        {"quantization": {"quant_algo": "W4A16_AWQ", "group_size": 128, "exclude_modules": ["lm_head"]}},
        4 + 16 / 128,
    ),
    (
        {
            "quant_method": "quark",
            "global_quant_config": {
                "weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"},
                "input_tensors": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32},
            },
            "exclude": ["lm_head"],
        },
        4 + 8 / 32,
    ),
    (
        {
            "quant_method": "quark",
            "global_quant_config": {
                "weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
                "input_tensors": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
            },
            "exclude": ["lm_head"],
        },
        8,
    ),
]


@pytest.mark.parametrize(("block", "expected"), STORED_BITS)
def test_bits_of_a_stored_weight(block: dict[str, object], expected: float) -> None:
    assert linear_bits(block) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("block", "expected"), STORED_BITS)
def test_embedding_and_head_stay_in_16_bits(block: dict[str, object], expected: float) -> None:
    model = read({"ignore": ["lm_head"], **block})
    precision = model.quantization.precision("bf16")
    for tensor in (model.embedding, model.lm_head):
        assert precision.scheme(tensor.role, tensor.name).weights.bits == 16
    assert expected < 16


ARITHMETIC = [
    ({"quant_method": "awq", "bits": 4}, "bf16"),
    ({"quant_method": "fp8"}, "fp8"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
    (group(type="int", num_bits=8, inputs={"num_bits": 8, "type": "int"}), "int8"),
    (group(type="float", num_bits=8), "bf16"),
    (group(type="int", num_bits=4, strategy="group", group_size=128, inputs={"num_bits": 8}), "int8"),
]


@pytest.mark.parametrize(("block", "arithmetic"), ARITHMETIC)
def test_arithmetic_follows_the_activations(block: dict[str, object], arithmetic: str) -> None:
    assert read(block).quantization.precision("bf16").linear.arithmetic == arithmetic


@pytest.mark.parametrize(
    ("block", "named"),
    [
        ({"quant_method": "aqlm"}, "'aqlm'"),
        ({"quant_method": "quip"}, "'quip'"),
        ({"bits": 4}, "quant_method is not there"),
        ("fp8", "a str"),
        ({"quant_method": "awq", "bits": 16}, "16 bits"),
        ({"quant_method": "awq", "bits": "four"}, "'four'"),
        ({"quant_method": "gptq"}, "bits None"),
        ({"quant_method": "fp8", "weight_block_size": "128"}, "weight_block_size"),
        ({"quant_method": "fp8", "expert_dtype": "fp2"}, "expert_dtype 'fp2'"),
        ({"quant_method": "modelopt", "quant_algo": "INT3"}, "'INT3'"),
        ({"quant_method": "compressed-tensors"}, "config_groups"),
        (group(type="float", num_bits=6), "float weights of 6 bits"),
        (group(type="float", num_bits=4, group_size=8), "groups of 8"),
        (group(type="int", num_bits=4, strategy="spiral"), "'spiral'"),
        ({**group(type="int", num_bits=4), "format": "sparse-24-bitmask"}, "sparse-24-bitmask"),
        ({"quant_method": "torchao", "quant_type": "uintx_weight_only"}, "uintx_weight_only"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "mx9"}}}, "'mx9'"),
        ({"quant_method": "awq", "modules_to_not_convert": [3]}, "3 is no name"),
        ({**group(type="int", num_bits=4), "ignore": ["re:(["]}, "no regular expression"),
        ({**group(type="int", num_bits=4), "ignore": ["re:(a+)+$"]}, "repeats what may itself be repeated"),
    ],
)
def test_what_is_not_known_is_an_error_that_names_it(block: object, named: str) -> None:
    with pytest.raises(CatalogueError, match="quantization_config") as caught:
        read(block)
    assert named in str(caught.value)


def test_no_block_is_bf16() -> None:
    for nothing in (None, {}):
        assert read(nothing).quantization.precision("bf16").name == "bf16"


# ---- modules left alone ----------------------------------------------------------------------------------------------

FP8 = {"quant_method": "fp8", "weight_block_size": None}


def without(*modules: str) -> dict[str, object]:
    return {**FP8, "modules_to_not_convert": [*modules]}


def test_a_class_of_tensors_left_alone_is_told_by_its_role() -> None:
    model = read(without("self_attn", "lm_head"))
    assert model.quantization.unquantized == ("attention",)
    assert (bits(model, "qkv_proj"), bits(model, "down_proj")) == (16, 8)


@pytest.mark.parametrize(
    "names",
    [
        ["model.layers.*.self_attn"],
        ["re:.*self_attn.*"],
        ["*self_attn*"],
        [f"model.layers.{layer}.self_attn*" for layer in range(4)],
        [f"language_model.model.layers.{layer}.self_attn.{p}_proj" for layer in range(4) for p in "qkvo"],
        [r"re:.*layers\.\d+\.self_attn\.(q|k|v|o)_proj"],
    ],
)
def test_every_way_to_write_a_list_means_the_same(names: list[str]) -> None:
    assert read(without(*names)).quantization.unquantized == ("attention",)


def test_one_projection_of_a_fused_tensor() -> None:
    # 4 query heads and 2 heads each of keys and values, of 16 elements: queries are half of the fused tensor.
    model = read(without("re:.*q_proj"))
    assert bits(model, "qkv_proj") == pytest.approx(0.5 * 16 + 0.5 * 8)
    assert bits(model, "o_proj") == 8
    assert bits(read(without("v_proj")), "qkv_proj") == pytest.approx(0.25 * 16 + 0.75 * 8)
    assert bits(read(without("up_proj")), "gate_up_proj") == pytest.approx(12)


def test_single_layers() -> None:
    model = read(without("model.layers.0.mlp", "model.layers.3.mlp.down_proj"))
    assert bits(model, "gate_up_proj") == pytest.approx(0.25 * 16 + 0.75 * 8)
    assert bits(model, "down_proj") == pytest.approx(0.5 * 16 + 0.5 * 8)
    assert bits(model, "qkv_proj") == 8


def test_gate_is_the_router_and_not_the_gate_projection() -> None:
    # MiniMax-M2.5: modules_to_not_convert is gate, e_score_correction_bias, lm_head.
    model = read(without("gate", "e_score_correction_bias", "lm_head"), EXPERTS)
    assert model.quantization.parts == ()
    assert bits(model, "experts.gate_up_proj") == 8
    assert bits(model, "router") == 16


def test_experts_only() -> None:
    # gpt-oss: mxfp4 everywhere but in attention, router, embedding and head; here also the dense layers.
    block = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "re:.*mlp\\.(gate|up|down)_proj"],
    }
    model = read(block, EXPERTS)
    assert model.quantization.linear == "bf16"
    assert model.quantization.experts == "mxfp4_w4a16"
    assert bits(model, "experts.down_proj") == 4.25
    assert bits(model, "down_proj") == 16


def test_single_experts() -> None:
    # Layers 1 and 3 have experts: 2 of 8 in one of them are an eighth of all.
    model = read(without("model.layers.1.mlp.experts.0.down_proj", "model.layers.1.mlp.experts.5"), EXPERTS)
    assert bits(model, "experts.down_proj") == pytest.approx(8 + 8 / 8)
    assert bits(model, "experts.gate_up_proj") == pytest.approx(8 + 8 / 16)


def test_several_groups() -> None:
    weights8 = {"num_bits": 8, "type": "float", "strategy": "channel"}
    weights4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
    block = {
        "quant_method": "compressed-tensors",
        "config_groups": {
            "g0": {"weights": weights8, "input_activations": INPUT8, "targets": ["re:.*self_attn.*"]},
            "g1": {"weights": weights4, "input_activations": {"num_bits": 4}, "targets": ["Linear"]},
        },
        "ignore": ["lm_head"],
    }
    model = read(block)
    assert (bits(model, "qkv_proj"), bits(model, "gate_up_proj")) == (8, 4.5)


def test_mixed_precision_lists_a_format_for_each_module() -> None:
    layers = {f"model.layers.{n}.self_attn.{p}_proj": {"quant_algo": "FP8"} for n in range(4) for p in "qkvo"}
    layers |= {f"model.layers.{n}.mlp.down_proj": {"quant_algo": "NVFP4", "group_size": 16} for n in (0, 1)}
    model = read({"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": layers}})
    assert bits(model, "qkv_proj") == 8
    assert bits(model, "down_proj") == pytest.approx(0.5 * 4.5 + 0.5 * 16)
    assert bits(model, "gate_up_proj") == 16


def test_gptq_exceptions_by_regular_expression() -> None:
    dynamic = {"-:.*o_proj": {}, "+:.*down_proj": {"bits": 8, "group_size": 32}}
    model = read({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": dynamic})
    assert bits(model, "o_proj") == 16
    assert bits(model, "down_proj") == pytest.approx(8 + 24 / 32)


def test_an_exporter_quantises_the_head_unless_told_not_to() -> None:
    block = {"quant_method": "modelopt", "quant_algo": "FP8"}
    head = read(block).lm_head
    assert read(block).quantization.precision("bf16").scheme(head.role, head.name).weights.bits == 8
    tied = read(block, {**DENSE, "tie_word_embeddings": True})
    assert tied.quantization.parts == ()


def test_narrow_experts_beside_the_block() -> None:
    # DeepSeek-V4: fp8 in tiles, and `expert_dtype: fp4` beside the block.
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    model = read(block, {**EXPERTS, "expert_dtype": "fp4"})
    assert bits(model, "experts.down_proj") == 4.25
    assert bits(model, "o_proj") == pytest.approx(8 + 32 / 128**2)


def test_a_module_that_the_model_lacks_is_told() -> None:
    model = read(without("model.layers.0.self_attn.frobnicator", "lm_head", "visual", "model.layers.4.mlp"))
    assert any("frobnicator" in note for note in model.notes)
    assert not any("visual" in note or "layers.4" in note or "lm_head" in note for note in model.notes)


def test_a_moe_precision_replaces_that_of_experts_alone() -> None:
    model = read(without("self_attn", "re:.*experts.*down_proj"), EXPERTS)
    precision = model.quantization.precision("bf16", experts="w4a16")
    role = next(t.role for k in model.layer_kinds for t in k.tensors(model) if t.name == "experts.down_proj")
    assert precision.scheme(role, "experts.down_proj").name == "w4a16"
    assert precision.scheme("attention", "qkv_proj").name == "bf16"
