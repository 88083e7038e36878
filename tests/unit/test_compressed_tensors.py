"""Blocks of compressed-tensors: what each format stores, and which scheme a module takes.

Bits are worked out from the library's compressors (version 0.12): `pack_quantized` keeps a weight in its own width, `naive_quantized` in
the nearest PyTorch type; scales are in the model's 16 bits unless `scale_dtype` says otherwise.
"""

from __future__ import annotations

from typing import Any

import pytest
from quantization_blocks import EXPERTS, bits, read

from planner.errors import CatalogueError


def weights(
    num_bits: int = 4, kind: str = "int", strategy: str = "group", size: int | None = 128, **more: Any
) -> dict[str, Any]:
    return {"num_bits": num_bits, "type": kind, "strategy": strategy, "group_size": size, "symmetric": True, **more}


def block(*groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    configs = {f"group_{place}": {"targets": ["Linear"], **group} for place, group in enumerate(groups)}
    return {"quant_method": "compressed-tensors", "config_groups": configs, "ignore": ["lm_head"], **more}


INT4, ASYMMETRIC = weights(), weights(symmetric=False)
FP8 = weights(8, "float", "channel", None)
NVFP4 = weights(4, "float", "tensor_group", 16)
MXFP4 = weights(4, "float", size=32, scale_dtype="torch.uint8")
MXFP8 = weights(8, "float", size=32)
INPUT8 = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True, "symmetric": True}

STORED = [
    ("pack-quantized", INT4, None, 4 + 16 / 128),
    ("pack-quantized", ASYMMETRIC, None, 4 + (16 + 4) / 128),
    ("pack-quantized", weights(3), None, 3 + 16 / 128),
    ("int-quantized", INT4, None, 8 + 16 / 128),
    ("naive-quantized", INT4, None, 8 + 16 / 128),
    ("naive-quantized", ASYMMETRIC, None, 8 + (16 + 8) / 128),
    ("int-quantized", INT4, INPUT8, 8 + 16 / 128),
    ("pack-quantized", INT4, INPUT8, 4 + 16 / 128),
    ("int-quantized", weights(8, strategy="channel", size=None), INPUT8, 8),
    ("float-quantized", FP8, {**INPUT8, "type": "float"}, 8),
    ("naive-quantized", FP8, None, 8),
    ("float-quantized", weights(8, "float", "block", None, block_structure="128x128"), INPUT8, 8 + 32 / 128**2),
    ("nvfp4-pack-quantized", NVFP4, None, 4 + 8 / 16),
    ("mxfp4-pack-quantized", MXFP4, None, 4 + 8 / 32),
    ("mxfp8-quantized", MXFP8, {**INPUT8, "type": "float"}, 8 + 8 / 32),
    # Half of the weights, and two bits for the place of each in its four: 2 + 1.
    ("marlin-24", INT4, None, 3 + 16 / 128),
    ("marlin-24", weights(8), None, 5 + 16 / 128),
    ("dense", INT4, None, 16),
    ("dense", FP8, INPUT8, 16),
    # What the library would choose where nothing is said.
    (None, INT4, None, 4 + 16 / 128),
    (None, INT4, INPUT8, 8 + 16 / 128),
    (None, weights(3), None, 8 + 16 / 128),
    ("mixed-precision", INT4, None, 4 + 16 / 128),
]


@pytest.mark.parametrize(("name", "scheme", "inputs", "expected"), STORED)
def test_what_a_format_stores(
    name: str | None, scheme: dict[str, Any], inputs: dict[str, Any] | None, expected: float
) -> None:
    assert bits(read(block({"weights": scheme, "input_activations": inputs}, format=name)), "o_proj") == pytest.approx(
        expected
    )


@pytest.mark.parametrize(
    ("name", "scheme", "inputs", "expected"), [row for row in STORED if row[0] not in (None, "mixed-precision")]
)
def test_a_group_has_a_format_of_its_own(
    name: str, scheme: dict[str, Any], inputs: dict[str, Any] | None, expected: float
) -> None:
    group = {"weights": scheme, "input_activations": inputs, "format": name}
    for usual in ("dense", "mixed-precision", None):
        assert bits(read(block(group, format=usual)), "o_proj") == pytest.approx(expected)


def test_a_format_of_one_group_is_not_that_of_others() -> None:
    groups = (
        {"weights": weights(8, strategy="channel", size=None), "targets": ["re:.*down_proj"], "format": "dense"},
        {"weights": INT4},
    )
    model = read(block(*groups, format="mixed-precision"))
    assert (bits(model, "down_proj"), bits(model, "o_proj")) == (16, 4 + 16 / 128)


@pytest.mark.parametrize("where", ["block", "group"])
def test_a_format_that_is_not_known_is_an_error(where: str) -> None:
    odd = {"format": "frob-quantized"}
    with pytest.raises(CatalogueError, match="format 'frob-quantized' is not known"):
        read(block({"weights": INT4, **(odd if where == "group" else {})}, **(odd if where == "block" else {})))


def test_a_group_needs_its_size() -> None:
    for size in (None, -1):
        with pytest.raises(CatalogueError, match="strategy 'group' needs a group_size"):
            read(block({"weights": weights(size=size)}))


# ---- which scheme a module takes -------------------------------------------------------------------------------------

INT8 = weights(8, strategy="channel", size=None)


@pytest.mark.parametrize("turned", [False, True])
def test_a_name_goes_before_an_expression_and_that_before_a_class(turned: bool) -> None:
    groups = [
        {"weights": INT4, "targets": ["Linear"]},
        {"weights": INT8, "targets": ["re:.*(down|o)_proj"]},
        {"weights": weights(2), "targets": [f"model.layers.{layer}.self_attn.o_proj" for layer in range(4)]},
    ]
    model = read(block(*(reversed(groups) if turned else groups), format="pack-quantized"))
    found = [bits(model, name) for name in ("gate_up_proj", "down_proj", "o_proj")]
    assert found == [4 + 16 / 128, 8, 2 + 16 / 128]


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_expressions_the_first_in_the_alphabet(turned: bool) -> None:
    groups = [{"weights": INT4, "targets": ["re:.*down.*"]}, {"weights": INT8, "targets": ["re:.*mlp.*"]}]
    model = read(block(*(reversed(groups) if turned else groups), format="pack-quantized"))
    assert (bits(model, "down_proj"), bits(model, "gate_up_proj"), bits(model, "o_proj")) == (4 + 16 / 128, 8, 16)


def test_of_two_groups_with_one_target_the_last() -> None:
    model = read(block({"weights": INT4}, {"weights": INT8}))
    assert bits(model, "o_proj") == 8


def test_a_class_that_is_not_linear_is_not_all_of_them() -> None:
    attention = read(block({"weights": INT4, "targets": ["LlamaAttention"]}))
    assert bits(attention, "o_proj") == bits(attention, "down_proj") == 16
    assert any("LlamaAttention" in note and "not followed" in note for note in attention.notes)
    embedding = read(block({"weights": INT4, "targets": ["Embedding"]}))
    assert (bits(embedding, "embed_tokens"), bits(embedding, "o_proj")) == (4 + 16 / 128, 16)


def test_the_head_is_linear_unless_it_is_ignored() -> None:
    assert bits(read(block({"weights": INT4})), "lm_head") == 16
    assert bits(read(block({"weights": INT4}, ignore=[])), "lm_head") == 4 + 16 / 128


def test_experts_by_expression() -> None:
    model = read(block({"weights": INT4, "targets": [r"re:.*mlp\.experts\.\d+\..*"]}), EXPERTS)
    assert (bits(model, "experts.down_proj"), bits(model, "down_proj")) == (4 + 16 / 128, 16)


# ---- what is told ----------------------------------------------------------------------------------------------------


def test_rotations_are_told() -> None:
    notes = read(block({"weights": INT4}, transform_config={"config_groups": {"R1": {}}})).notes
    assert any("transform_config" in note for note in notes)


def test_a_published_block_is_told_nothing_of() -> None:
    # Fields of every published block: how weights were calibrated changes no byte.
    told = {"actorder": "static", "observer": "mse", "observer_kwargs": {}, "dynamic": False, "zp_dtype": None}
    more = {
        "quantization_status": "compressed",
        "global_compression_ratio": None,
        "sparsity_config": {"format": "dense"},
    }
    model = read(block({"weights": {**INT4, **told}, "input_activations": INPUT8, "output_activations": None}, **more))
    assert model.notes == read({"quant_method": "fp8"}).notes
