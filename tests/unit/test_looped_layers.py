"""Layers that run several times for a token: what a further run adds, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from planner.decompose import decompose
from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.memory import cache_bytes
from planner.model import FeedForward, LayerGroup, Model, SoftmaxAttention
from planner.op import Kind
from planner.precision import policy
from planner.units import FORMATS
from planner.workload import Phase, Step

BF16 = FORMATS["bf16"]
INKLING = {
    "model_type": "inkling2_loop_text",
    "vocab_size": 1000,
    "unpadded_vocab_size": 1000,
    "hidden_size": 16,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "swa_num_attention_heads": 4,
    "swa_num_key_value_heads": 2,
    "swa_head_dim": 4,
    "sliding_window_size": 8,
    "d_rel": 3,
    "conv_kernel_size": 3,
    "moe_intermediate_size": 5,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "n_layers_per_attn_res_block": 1,
    "loop_layer_index_start": 1,
    "loop_layer_index_end": 3,
    "loop_gate_rank": 7,
}


def inkling(passes: int, **more: Any) -> Model:
    return read_config({**INKLING, "loop_num_passes": passes, **more}, name="test", where="config.json")


def matmul_flops(model: Model) -> float:
    ops = decompose(model, Step(phase=Phase.DECODE, context=100), policy("bf16"))
    return sum(op.count * op.flops for op in ops if op.kind is Kind.MATMUL)


def test_a_further_pass_adds_its_matmuls_and_its_cache_but_no_weights() -> None:
    once, twice, thrice = (inkling(passes) for passes in (1, 2, 3))
    assert once.parameters == twice.parameters == thrice.parameters
    # One layer: queries, gate and output 3 x 16 x 16, keys and values 2 x 16 x 8, sinks 16 x 4, relative 16 x 12, router 16 x 6,
    # two experts of 3 x 16 x 5, and four gates of 32 x 7 and 7 x 32.
    layer = 768 + 256 + 64 + 192 + 96 + 480 + 4 * 448
    assert matmul_flops(twice) - matmul_flops(once) == matmul_flops(thrice) - matmul_flops(twice) == 2 * 2 * layer
    # Each run keeps a window of eight keys and values of its own, and its convolutions' last inputs.
    grown = [cache_bytes(model, BF16).window for model in (once, twice, thrice)]
    assert grown == [n * 8 * 2 * 2 * 4 * 2 for n in (4, 6, 8)]


def test_runs_stand_where_they_happen() -> None:
    """Layers 0, 1, 2, 1, 2, 3: the second pass stores nothing."""
    flat = [group.shared_weights for group in inkling(2).layers for _ in range(group.layer_count)]
    assert flat == [False, False, False, True, True, False]


def test_a_loop_that_ends_before_it_starts_is_an_error() -> None:
    with pytest.raises(CatalogueError, match="loop_layer_index_end"):
        inkling(2, loop_layer_index_end=0)
    with pytest.raises(CatalogueError, match="loop_num_passes"):
        inkling(10_000)


def test_impossible_sizes_are_one_error_at_once() -> None:
    """A loop without layers that would run a billion times, and a product of two fields that is too large."""
    assert inkling(10**9, loop_layer_index_start=4, loop_layer_index_end=6).num_hidden_layers == 4
    with pytest.raises(CatalogueError, match="less than or equal"):
        inkling(2, hidden_size=10**9)


def test_a_layer_that_runs_again_stores_nothing() -> None:
    attention = SoftmaxAttention(kind="mha", num_attention_heads=2, head_dim=4)
    group = LayerGroup(attention=attention, ffn=FeedForward(kind="gated", intermediate_size=8))
    again = group.model_copy(update={"shared_weights": True})

    def model(*layers: LayerGroup) -> Model:
        return Model(name="test", hidden_size=8, vocab_size=10, tie_word_embeddings=True, layers=layers)

    single, double = model(group), model(group, again)
    assert single.parameters == double.parameters
    assert matmul_flops(double) - matmul_flops(single) == 2 * (4 * 64 + 3 * 64)
    assert double.kv_elements_per_token == 2 * single.kv_elements_per_token
