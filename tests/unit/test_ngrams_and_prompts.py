"""What stands beside the layers: tables of n-grams, prompts that were tuned, experts of one neuron each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.decompose import decompose
from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.memory import cache_bytes
from planner.model import MixtureOfExperts, Model, NgramMemory
from planner.op import Kind
from planner.precision import policy
from planner.units import FORMATS
from planner.workload import Phase, Step

DATA = Path(__file__).parents[1] / "oracle" / "data" / "model_classes.jsonl"
RECORDS = {(r["model_type"], r["variant"]): r for r in map(json.loads, DATA.read_text().splitlines())}
QWEN = RECORDS["qwen4_exp_text", "hub-ple"]
MVP = RECORDS["mvp", "small-b"]
DOGE = RECORDS["doge", "small-b"]


def read(record: dict[str, Any], **more: Any) -> Model:
    return read_config({**record["config"], **more}, name="test", where="config.json")


def total(model: Model, kind: Kind, field: str = "flops") -> float:
    ops = decompose(model, Step(phase=Phase.DECODE, context=10), policy("bf16"))
    return sum(op.count * getattr(op, field) for op in ops if op.kind is kind)


# ---- n-grams ---------------------------------------------------------------------------------------------------------


def test_tables_have_a_prime_number_of_rows_for_each_head() -> None:
    """Of at least 997: 997, 1009, 1013 and 1019 are 4038, the next four are 4124; both in whole eights."""
    first, second = read(QWEN).tables
    assert (first.rows, second.rows) == (4040, 4128)
    # Two heads for pairs of tokens and two for triples share out 32 elements.
    assert (first.width, first.lookups) == (8, 4)
    assert total(read(QWEN), Kind.EMBEDDING, "weight_bytes") == (192 + 2 * 32) * 2


def test_tables_of_the_released_size_are_read_quickly() -> None:
    """The class's defaults: 16 heads of 20 million rows; 20,000,003 and 20,000,023 are the first two primes there."""
    (table,) = read(
        QWEN, ngram_vocab_size_base=20_000_000, heads_per_ngram=1, ple_embed_dim=8, ple_layer_ids=[2]
    ).tables
    assert table.rows == -(-(20_000_003 + 20_000_023) // 8) * 8


def test_layers_keep_the_inputs_that_the_convolution_will_read() -> None:
    bf16 = FORMATS["bf16"]
    with_tables, without = (cache_bytes(read(QWEN, ple_layer_ids=ids), bf16).state for ids in ([2, 4], []))
    # Three earlier inputs, three tokens apart, of 3 x 192 channels, and the two tokens before: as the library keeps them.
    assert with_tables - without == 2 * (9 * 576 + 2) * 2


def test_ngram_memory_by_hand() -> None:
    """Keys 4 x 10 and values 4 x 5; convolution 10 x 3 and three norms of 10."""
    block = NgramMemory(kind="ngram", embedding_size=4, width=10, conv_kernel=3, ngram_size=2)
    assert sum(tensor.parameters for tensor in block.tensors(5)) == 40 + 20 + 30 + 30
    assert block.cache.state_bytes == (2 * 2 * 10 + 1) * 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ple_layer_ids": [7]}, "ple_layer_ids"),
        ({"ple_embed_dim": 33}, "ple_embed_dim"),
        ({"ngram_vocab_size_base": 10**9}, "ngram_vocab_size_base"),
        ({"ngram_vocab_size_base": 2, "heads_per_ngram": 10**6, "ple_embed_dim": 2 * 10**6}, "ngram_vocab_size_base"),
    ],
)
def test_impossible_ngrams_are_errors(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(CatalogueError, match=message):
        read(QWEN, **changed)


# ---- prompts ---------------------------------------------------------------------------------------------------------


def test_prompts_of_every_stack_are_counted() -> None:
    """The library's class leaves the encoder's out: an embedding 100 x 240, 240 to 800, 800 to keys and values of three layers."""
    encoder = 100 * 240 + 241 * 800 + 801 * 3 * 2 * 240
    assert read(MVP).parameters == MVP["parameters"] + encoder
    assert [note for note in read(MVP).notes if "use_prompt" in note]
    assert not [note for note in read(MVP, use_prompt=False).notes if "use_prompt" in note]


# ---- experts of one neuron -------------------------------------------------------------------------------------------


def test_experts_of_one_neuron() -> None:
    """Doge: seven layers; a router of twice three scores for twelve experts, of which a token passes two of 2 x 240 weights."""
    dense = read(DOGE, is_moe=False)
    assert read(DOGE).parameters - dense.parameters == 7 * (240 * 6 + 12 * 480)
    assert total(read(DOGE), Kind.MATMUL) - total(dense, Kind.MATMUL) == 7 * 2 * (240 * 6 + 2 * 480)


def test_router_with_product_keys() -> None:
    block = MixtureOfExperts(
        kind="moe", num_experts=16, num_experts_per_tok=2, moe_intermediate_size=1, gated=False, router_outputs=8
    )
    router, *_ = block.tensors(10)
    assert router.parameters == 80
