"""How lists of modules name experts and parts beside the text model, and how blocks name their method.

Bits are worked out by hand; names are those of published lists.
"""

from __future__ import annotations

import pytest
from quantization_blocks import EXPERTS, bits, read

from planner.errors import CatalogueError

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128}
GPTQ_BITS = 4 + (16 + 4) / 128
ATTENTION = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"]
PROJECTIONS = ("gate_proj", "up_proj", "down_proj")


def inside(*names: object) -> dict[str, object]:
    return {**GPTQ, "modules_in_block_to_quantize": [*names]}


# ---- experts by number, within a layer -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["mlp.experts", "block_sparse_moe.experts", "experts"])
@pytest.mark.parametrize("projections", [PROJECTIONS, ("w1", "w3", "w2"), ("",)])
def test_a_list_of_every_expert_names_them_all(path: str, projections: tuple[str, ...]) -> None:
    names = [[f"{path}.{expert}.{p}".rstrip(".") for expert in range(8)] for p in projections]
    model = read(inside(ATTENTION, *names), EXPERTS)
    assert bits(model, "experts.gate_up_proj") == GPTQ_BITS
    assert bits(model, "experts.down_proj") == GPTQ_BITS
    assert bits(model, "o_proj") == GPTQ_BITS
    assert not [note for note in model.notes if "quantization_config" in note]


def test_a_list_of_some_experts_names_their_share() -> None:
    # Two of eight, one of which is listed in two ways.
    names = ["mlp.experts.0.down_proj", "mlp.experts.5", "mlp.experts.5.down_proj"]
    model = read(inside(*names), EXPERTS)
    assert bits(model, "experts.down_proj") == pytest.approx(0.25 * GPTQ_BITS + 0.75 * 16)
    assert bits(model, "experts.gate_up_proj") == pytest.approx(0.125 * GPTQ_BITS + 0.875 * 16)


def test_an_expert_that_the_model_lacks_is_told() -> None:
    model = read(inside(*ATTENTION, "mlp.experts.8.down_proj"), EXPERTS)
    assert bits(model, "experts.down_proj") == 16
    assert any("mlp.experts.8.down_proj" in note for note in model.notes)


# ---- fields of the other width ---------------------------------------------------------------------------------------

# What `BitsAndBytesConfig.to_dict` of transformers writes, whichever width is asked for.
BITSANDBYTES = {
    "_load_in_4bit": True,
    "_load_in_8bit": False,
    "bnb_4bit_compute_dtype": "bfloat16",
    "bnb_4bit_quant_storage": "uint8",
    "bnb_4bit_quant_type": "nf4",
    "bnb_4bit_use_double_quant": True,
    "llm_int8_enable_fp32_cpu_offload": False,
    "llm_int8_has_fp16_weight": False,
    "llm_int8_skip_modules": ["lm_head"],
    "llm_int8_threshold": 6.0,
    "load_in_4bit": True,
    "load_in_8bit": False,
    "quant_method": "bitsandbytes",
}
WIDTHS = [
    ({}, 4.127),
    ({"bnb_4bit_use_double_quant": False}, 4.5),
    ({"load_in_4bit": False, "_load_in_4bit": False, "load_in_8bit": True}, 8),
    ({"load_in_4bit": False, "_load_in_4bit": False}, 16),
    ({"load_in_4bit": False, "_load_in_4bit": False, "load_in_8bit": True, "llm_int8_has_fp16_weight": True}, 16),
]


@pytest.mark.parametrize(("changed", "expected"), WIDTHS)
def test_fields_of_the_other_width_are_no_surprise(changed: dict[str, object], expected: float) -> None:
    model = read({**BITSANDBYTES, **changed})
    assert bits(model, "o_proj") == pytest.approx(expected, rel=1e-4)
    assert not [note for note in model.notes if "not read" in note]


def test_a_field_that_nobody_knows_is_told_beside_them() -> None:
    assert any("not read" in note and "strange" in note for note in read({**BITSANDBYTES, "strange": 1}).notes)


# ---- parts beside the text model -------------------------------------------------------------------------------------

BESIDE = [
    "aligner",
    "connector",
    "image_newline",
    "language_projection",
    "merger",
    "mlp1",
    "mm_projector",
    "modality_projection",
    "model.vision_tower",
    "multi_modal_projector",
    "patch_embed",
    "patch_embedding",
    "patch_merger",
    "qformer",
    "resampler",
    "vision_embed_tokens",
    "vision_model",
    "vision_tower",
    "vision_encoder",
    "visual",
    "visual.merger",
    "vit",
    "vpm",
    "apm",
]


@pytest.mark.parametrize("name", BESIDE)
def test_a_tower_or_projector_left_alone_is_no_surprise(name: str) -> None:
    model = read({"quant_method": "fp8", "modules_to_not_convert": [name, "lm_head"]})
    assert bits(model, "o_proj") == 8
    assert not [note for note in model.notes if "match none" in note]


@pytest.mark.parametrize("name", ["frobnicator", "mlp10", "self_attn.invite"])
def test_what_only_resembles_a_tower_is_told(name: str) -> None:
    notes = read({"quant_method": "fp8", "modules_to_not_convert": [name]}).notes
    assert any("match none" in note and name in note for note in notes)


# ---- blocks without a method -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [{}, {"quant_method": None}])
@pytest.mark.parametrize(("block", "expected"), [({"load_in_4bit": True}, 4.5), ({"load_in_8bit": True}, 8)])
def test_an_old_block_of_bitsandbytes_names_no_method(
    method: dict[str, object], block: dict[str, object], expected: float
) -> None:
    # `AutoQuantizationConfig.from_dict` of transformers takes the method from these fields alone.
    assert bits(read({**block, **method}), "o_proj") == expected


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"bits": 4}, "quant_method is not there"),
        ({"bits": 4, "quant_method": None}, "quant_method is not there"),
        ({"bits": 4, "quant_method": ""}, "quant_method is not there"),
        ({"bits": 4, "quant_method": 3}, "quant_method 3 is no text"),
    ],
)
def test_a_method_that_is_not_there_is_told_in_words(block: dict[str, object], words: str) -> None:
    with pytest.raises(CatalogueError, match="quantization_config") as caught:
        read(block)
    assert words in str(caught.value)
    assert "''" not in str(caught.value)
    assert "gptq" in str(caught.value)


# ---- layers by number ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [GPTQ, {"quant_method": "awq", "bits": 4}, {"quant_method": "fp8"}])
def test_a_layer_that_the_model_lacks_is_told(method: dict[str, object]) -> None:
    block = {**method, "modules_to_not_convert": ["model.layers.99.mlp", "model.layers.0.mlp"]}
    notes = [note for note in read(block).notes if "match none" in note]
    assert len(notes) == 1
    assert "'model.layers.99.mlp'" in notes[0]
    assert "layers.0." not in notes[0]


def test_modules_for_multi_token_prediction_follow_the_last_layer() -> None:
    # Four layers, and three modules as MiniMax-M2 counts them; towers have more layers.
    names = [f"model.layers.{layer}.self_attn" for layer in (4, 5, 6)]
    names += ["vision_tower.layers.99.mlp", "model.layers.98.input_layernorm"]
    notes = read({"quant_method": "fp8", "modules_to_not_convert": names}).notes
    assert not [note for note in notes if "match none" in note]
    notes = read({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.7.self_attn"]}).notes
    assert [note for note in notes if "match none" in note]
