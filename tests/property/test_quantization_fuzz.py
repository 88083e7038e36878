"""Mutated quantisation blocks give a model or one clear error, and never more bytes than unquantised weights would take."""

from __future__ import annotations

import copy
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.memory import checkpoint_bytes
from planner.model import Model

CONFIG = {
    "model_type": "qwen3_moe",
    "hidden_size": 64,
    "intermediate_size": 256,
    "moe_intermediate_size": 32,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 12,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 1000,
    "decoder_sparse_step": 2,
    "tie_word_embeddings": False,
}
WEIGHTS = {
    "type": "int",
    "num_bits": 4,
    "strategy": "group",
    "group_size": 32,
    "symmetric": True,
    "scale_dtype": "torch.uint8",
}
INPUTS = {"type": "float", "num_bits": 8, "dynamic": True}
SPEC = {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"}
SEEDS: list[dict[str, Any]] = [
    {
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
        "modules_to_not_convert": ["lm_head", "model.layers.0.mlp"],
    },
    {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "modules_to_not_convert": ["self_attn"]},
    {"quant_method": "gptq", "bits": 3, "group_size": 64, "dynamic": {"-:.*o_proj": {}, "+:.*down.*": {"bits": 8}}},
    {"quant_method": "auto-round", "bits": 4, "group_size": 128, "extra_config": {"model.layers.1.mlp": {"bits": 16}}},
    {"quant_method": "bitsandbytes", "load_in_4bit": True, "llm_int8_skip_modules": ["lm_head"]},
    {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}},
    {
        "quant_method": "torchao",
        "quant_type": {"default": {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 64}}},
    },
    {
        "quant_method": "compressed-tensors",
        "config_groups": {"g": {"weights": WEIGHTS, "input_activations": INPUTS, "targets": ["Linear"]}},
        "ignore": ["re:.*self_attn.*", "model.layers.*.mlp.gate"],
        "sparsity_config": {"format": "dense"},
    },
    {
        "group_size": 64,
        "bits": 4,
        "mode": "affine",
        "model.layers.0.mlp.down_proj": {"bits": 8, "group_size": 32},
        "lm_head": False,
    },
    {
        "quant_method": "auto-round",
        "bits": 4,
        "group_size": 32,
        "data_type": "mx_fp",
        "act_bits": 4,
        "extra_config": {".*mlp.*": {"bits": 8, "data_type": "int"}},
    },
    {"quant_method": "exl3", "bits": 3.0, "head_bits": 6},
    {"quant_method": "bitnet", "quantization_mode": "online"},
    {
        "quant_method": "hqq",
        "quant_config": {
            "self_attn.q_proj": {
                "weight_quant_params": {"nbits": 3},
                "scale_quant_params": {"nbits": 8, "group_size": 128},
            }
        },
    },
    {
        "quant_method": "compressed-tensors",
        "format": "mixed-precision",
        "config_groups": {
            "g": {"weights": WEIGHTS, "targets": ["re:.*mlp.*"], "format": "pack-quantized"},
            "h": {
                "weights": {"num_bits": 8, "type": "float", "block_structure": "128x128", "strategy": "block"},
                "targets": ["Linear", "Embedding"],
            },
        },
        "kv_cache_scheme": {"num_bits": 8, "type": "float"},
    },
    {"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}},
    {"quant_algo": "MIXED_PRECISION", "quantized_layers": {"model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"}}},
    {
        "quant_method": "quark",
        "global_quant_config": {"weight": SPEC, "input_tensors": SPEC},
        "layer_quant_config": {"*down_proj": {"weight": [SPEC, {"dtype": "fp8_e4m3"}]}},
        "layer_type_quant_config": {"Linear": {"weight": SPEC}},
        "exclude": ["lm_head"],
    },
]

ATOMS = ["a", "m", "_", r"\.", r"\d", r"\w", ".", "[a-z_]", "[^.]", "self_attn", "mlp", "layers", "proj", "3"]
patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=6).map("".join),
        st.lists(inner, min_size=1, max_size=4).map(lambda options: f"({'|'.join(options)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{0,40}", "{60}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        st.tuples(st.sampled_from(ATOMS), st.sampled_from(["*", "+", "?", "{1,9}"])).map("".join),
        inner.map(lambda text: f"(?!{text})"),
    ),
    max_leaves=16,
)
lists = st.lists(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["re:", "re:.*", "", "model.layers.*."]),
        patterns,
        st.sampled_from(["", "Z", "$"]),
    ),
    min_size=1,
    max_size=4,
)
"""Lists of modules, with regular expressions of which many take exponential time on a name that does not match."""

junk = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a block."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    block = copy.deepcopy(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 3))):
        every = places(block)
        if not every:
            break
        *path, last = draw(st.sampled_from(every))
        inside: Any = block
        for key in path:
            inside = inside[key]
        if draw(st.booleans()) and isinstance(inside, dict):
            del inside[last]
        else:
            inside[last] = draw(junk)
    return block


@settings(max_examples=500, deadline=None)
@given(block=mutated())
def test_a_model_or_one_error(block: dict[str, Any]) -> None:
    began = time.process_time()
    model, message = read(block)
    assert time.process_time() - began < 2
    if model is None:
        assert message.startswith("config.json: quantization_config: ")
        return
    sizes = checkpoint_bytes(model, model.quantization.precision("bf16"))
    # A scale of up to 48 bits for each weight is odd, but it is what such a block says.
    assert 2 * model.parameters * 0.05 < sum(sizes.values()) < 2 * model.parameters * 4


@settings(max_examples=300, deadline=None)
@given(ignored=lists, targets=lists)
def test_patterns_are_followed_or_refused_at_once(ignored: list[str], targets: list[str]) -> None:
    groups = {"g": {"weights": WEIGHTS, "targets": targets}, "h": {"weights": WEIGHTS, "targets": ["Linear"]}}
    block = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ignored}
    began = time.process_time()
    model, message = read(block)
    assert time.process_time() - began < 2
    assert model is not None or message.startswith("config.json: quantization_config: ")


def read(block: dict[str, Any]) -> tuple[Model | None, str]:
    try:
        return read_config({**CONFIG, "quantization_config": block}, name="m", where="config.json"), ""
    except CatalogueError as error:
        return None, str(error)
