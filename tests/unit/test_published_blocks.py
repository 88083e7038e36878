"""Quantisation blocks as they are published, read whole: what is stored how follows from each block's own text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.importers.huggingface import read_config
from planner.model import Model

CONFIGS = Path(__file__).parents[1] / "data" / "configs"


def load(name: str) -> Model:
    data = json.loads((CONFIGS / f"{name}.json").read_text("utf-8"))
    return read_config(data, name=name, where=f"{name}.json")


# Name, bits of dense layers, bits of attention, bits of routed experts (None for none), each with its scales.
FP8_TILE = 8 + 32 / 128**2
PUBLISHED = [
    # weight_block_size 128 x 128; gate, e_score_correction_bias and lm_head left alone.
    ("MiniMaxAI__MiniMax-M2.5", None, FP8_TILE, FP8_TILE),
    # Norms, routers and lm_head of every layer are listed by name.
    ("Qwen__Qwen3-30B-A3B-FP8", None, FP8_TILE, FP8_TILE),
    # No quant_method; per tensor; lm_head ignored.
    ("Qwen__Qwen3-32B-FP8-Static-PerTensor", 8, 8, None),
    # Every attention projection and router of the text model is ignored by name, and the whole vision tower.
    ("RedHatAI__Llama-4-Scout-17B-16E-Instruct-FP8-dynamic", None, 16, 8),
    # weight_block_size is null: a scale for each tensor.
    ("mistralai__Devstral-2-123B-Instruct-2512", 8, 8, None),
    # Nested in text_config: everything but routed experts is ignored by regular expression.
    ("moonshotai__Kimi-K3", 16, 16, 4.25),
    # Shell patterns ignore the attention of each layer.
    ("nvidia__Gemma-4-31B-IT-NVFP4", 4.5, 16, None),
    # Attention, routers, embedding and head are left alone: experts are all that is quantised.
    ("openai__gpt-oss-120b", None, 16, 4.25),
    # expert_dtype fp4 beside an fp8 block.
    ("deepseek-ai__DeepSeek-V4-Flash", None, FP8_TILE, 4.25),
]


@pytest.mark.parametrize(("name", "dense", "attention", "experts"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_bits_by_class(name: str, dense: float | None, attention: float, experts: float | None) -> None:
    model = load(name)
    precision = model.quantization.precision("bf16")
    found: dict[str, set[float]] = {}
    for tensor, _ in model.stored_tensors:
        if tensor.matrix_elements:
            scheme = precision.scheme(tensor.role, tensor.name)
            found.setdefault(str(tensor.role), set()).add(scheme.weights.bytes_per_element * 8)
    assert found["attention"] == {attention}
    assert found.get("experts") == (None if experts is None else {experts})
    # With tied embeddings the head is no matrix of its own.
    assert found["embedding"] == found.get("lm_head", {16}) == {16}
    assert found.get("router", {16}) == {16}
    if dense is not None:
        assert found["ffn"] == {dense}


@pytest.mark.parametrize("name", [row[0] for row in PUBLISHED])
def test_no_entry_of_a_published_list_goes_unmatched(name: str) -> None:
    assert not [note for note in load(name).notes if "match none" in note]


def test_the_list_of_cases_is_whole() -> None:
    assert {path.stem for path in CONFIGS.glob("*.json")} == {row[0] for row in PUBLISHED}
