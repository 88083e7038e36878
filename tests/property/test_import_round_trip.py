"""A model that is written as YAML and read again is the same, and runs the same operations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import catalogue
from planner.decompose import decompose
from planner.errors import PlannerError
from planner.importers.huggingface import read_config
from planner.model import Model
from planner.records import model_record
from planner.workload import Phase, Step

SAMPLES = sorted(path for path in Path(__file__).parents[1].rglob("configs/*.json"))
STEP = Step(phase=Phase.DECODE, batch=3, new_tokens=1, context=100)


def round_trip(model: Model, folder: Path) -> Model:
    path = folder / "model.yaml"
    path.write_text(catalogue.model_yaml(model), encoding="utf-8")
    return catalogue.load_model(str(path))


def assert_same(model: Model, folder: Path) -> None:
    read = round_trip(model, folder)
    precision = model.quantization.precision("bf16")
    assert read == model
    assert read.quantization.precision("bf16") == precision
    assert decompose(read, STEP, precision) == decompose(model, STEP, precision)
    assert model_record(read, precision) == model_record(model, precision)


heads = st.sampled_from([1, 2, 4, 8])
widths = st.integers(1, 300)
modules = st.sampled_from(
    [
        "lm_head",
        "self_attn",
        "q_proj",
        "re:.*down_proj",
        "model.layers.1.mlp",
        "model.layers.*.self_attn.o_proj",
        "shared_experts",
    ]
)
blocks = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {
            "quant_method": st.sampled_from(["awq", "gptq"]),
            "bits": st.integers(2, 8),
            "group_size": st.sampled_from([-1, 16, 32, 128]),
            "modules_to_not_convert": st.lists(modules, max_size=3),
        }
    ),
    st.fixed_dictionaries(
        {
            "quant_method": st.sampled_from(["fp8", "mxfp4"]),
            "weight_block_size": st.sampled_from([None, [128, 128], [1, 32]]),
            "modules_to_not_convert": st.lists(modules, max_size=3),
        }
    ),
)


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(heads)
    fields: dict[str, Any] = {
        "hidden_size": draw(widths),
        "vocab_size": draw(widths),
        "num_hidden_layers": draw(st.integers(1, 9)),
        "num_attention_heads": 8,
        "num_key_value_heads": count,
        "head_dim": draw(widths),
        "intermediate_size": draw(widths),
        "tie_word_embeddings": draw(st.booleans()),
        "quantization_config": draw(blocks),
    }
    experts = {
        "num_experts": draw(st.integers(2, 9)),
        "num_experts_per_tok": 2,
        "moe_intermediate_size": draw(widths),
        "decoder_sparse_step": draw(st.integers(1, 3)),
    }
    latent = {
        "q_lora_rank": draw(st.none() | widths),
        "kv_lora_rank": draw(widths),
        "qk_nope_head_dim": draw(widths),
        "qk_rope_head_dim": draw(widths),
        "v_head_dim": draw(widths),
        "n_routed_experts": draw(st.integers(2, 9)),
        "num_experts_per_tok": 2,
        "n_shared_experts": draw(st.integers(0, 2)),
        "moe_intermediate_size": draw(widths),
        "first_k_dense_replace": draw(st.integers(0, 3)),
        "num_nextn_predict_layers": draw(st.integers(0, 2)),
    }
    kinds: dict[str, dict[str, Any]] = {
        "llama": {"attention_bias": draw(st.booleans())},
        "qwen3_moe": experts,
        "deepseek_v3": latent,
    }
    kind = draw(st.sampled_from(sorted(kinds)))
    return {"model_type": kind, **fields, **kinds[kind]}


@given(config=configs())
def test_written_and_read_again(config: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert_same(
        read_config(config, name="Any: name # with 'signs'", where="config.json"), tmp_path_factory.mktemp("models")
    )


@pytest.mark.parametrize("name", catalogue.names("models"))
def test_every_model_of_the_catalogue(name: str, tmp_path: Path) -> None:
    assert_same(catalogue.load_model(name), tmp_path)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_config(path: Path, tmp_path: Path) -> None:
    try:
        model = read_config(json.loads(path.read_text("utf-8")), name=path.stem, where=path.name)
    except PlannerError:
        return
    assert_same(model, tmp_path)
