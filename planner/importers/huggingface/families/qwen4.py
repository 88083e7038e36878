"""Qwen 4 (experimental): linear and sparse attention in turn, over several residual streams that are mixed by low-rank maps."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import build, choose, every, kinds, layer_count
from planner.importers.huggingface.parts.networks import Experts
from planner.importers.huggingface.parts.recurrent import gated_delta
from planner.importers.huggingface.parts.softmax import softmax
from planner.model import Indexer, NgramMemory, Projection, Table
from planner.units import LARGEST_COUNT

_kinds = kinds(
    every("full_attention_interval", 4, nth="indexed_attention", other="linear_attention"),
    known=("linear_attention", "full_attention", "indexed_attention"),
)


def _index(config: Config, index: int) -> dict[str, Any]:  # the signature of every reader
    """Return the indexer: it compares runs of tokens, whose keys are projected with its queries and kept for each token."""
    if config.integer("indexer_kv_heads", 1) != 1:
        config.fault("indexer_kv_heads", "more than one key is not supported")
    heads, dim = config.integer("indexer_n_heads"), config.integer("indexer_head_dim")
    return {
        "output_gate": "element",
        "indexer": build(config, Indexer, num_heads=heads, head_dim=dim, head_weights=False),
        "index_topk": config.integer("indexer_budget"),
    }


_sparse = softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="head", more=_index)


def _streams(config: Config, name: str, *, writes: bool) -> tuple[tuple[Projection, ...], int]:
    """Return what reads a half's input from the streams, and writes its result to them; and the norm of all of them."""
    count, rank = config.integer("hc_count"), config.integer("hc_lowrank")
    width = count * config.integer("hidden_size")
    maps = [
        Projection(name=f"{name}.input_mix_down", input_size=width, output_size=rank),
        Projection(name=f"{name}.input_mix_up", input_size=rank, output_size=width),
    ]
    if writes:
        maps.append(Projection(name=f"{name}.block_inject", input_size=width, output_size=count))
    return tuple(maps), width


# ---- embeddings of n-grams -------------------------------------------------------------------------------------------

MAX_PRIMES = 10_000
"""More n-gram heads altogether than this are a slip."""


def _is_prime(number: int) -> bool:
    """Whether a number is prime (Miller and Rabin; exact below 3,215,031,751 with these bases)."""
    bases = (2, 3, 5, 7)
    if number < 2 or any(number % base == 0 for base in bases):  # the first prime
        return number in bases
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    powers = (pow(base, odd, number) for base in bases)
    return all(power == 1 or any(pow(power, 2**i, number) == number - 1 for i in range(twos)) for power in powers)


def _primes(least: int, count: int) -> list[int]:
    """Return the first primes that are not below a number."""
    found: list[int] = []
    number = least
    while len(found) < count:
        if _is_prime(number):
            found.append(number)
        number += 1
    return found


def _ngram_layers(config: Config) -> list[int]:
    """Return the layers with n-grams; the file counts them from 1."""

    def read() -> list[int]:
        listed = sorted(set(config.integers("ple_layer_ids", least=1) or ()))
        if listed and listed[-1] > layer_count(config):
            config.fault("ple_layer_ids", f"layer {listed[-1]} is not there")
        return [number - 1 for number in listed]

    return config.derived("ngram layers", read)


def _ngram_heads(config: Config) -> tuple[int, int]:
    """Return how many rows a token looks up in a layer, and their elements."""
    heads = (config.integer("ngram_size", 3, least=2) - 1) * config.integer("heads_per_ngram", 8)
    size = config.optional("ple_embed_dim") or config.integer("hidden_size")
    if size % heads:
        config.fault("ple_embed_dim", f"{size} is not a multiple of the {heads} n-gram heads")
        config.raise_faults()
    return heads, size // heads


def _ngram_tables(config: Config) -> tuple[Table, ...]:
    """Return each layer's table: every head has a prime number of rows of its own, the next after those before it."""
    layers = _ngram_layers(config)
    if not layers:
        return ()
    heads, width = _ngram_heads(config)
    least, multiple = config.integer("ngram_vocab_size_base"), config.integer("make_ngram_vocab_size_divisible_by", 128)
    if heads * len(layers) > MAX_PRIMES or heads * least > LARGEST_COUNT:
        config.fault(
            "ngram_vocab_size_base", f"{heads} heads of {least} rows in each of {len(layers)} layers are too many"
        )
        config.raise_faults()
    primes = _primes(least, heads * len(layers))
    tables = []
    for number, layer in enumerate(layers):
        rows = sum(primes[number * heads : (number + 1) * heads])
        padded = -(-rows // multiple) * multiple
        tables.append(Table(name=f"layers.{layer}.ngram_embedding", rows=padded, width=width, lookups=heads))
    return tuple(tables)


def _with_ngrams(config: Config, index: int) -> Any:
    """Return a layer's mixer, and before it what mixes in the embeddings of n-grams."""
    mixer = _mixers(config, index)
    if index not in _ngram_layers(config):
        return mixer
    heads, width = _ngram_heads(config)
    memory = build(
        config,
        NgramMemory,
        kind="ngram",
        embedding_size=heads * width,
        width=config.integer("hc_count") * config.integer("hidden_size"),
        conv_kernel=config.integer("ple_conv_kernel_size", 4),
        ngram_size=config.integer("ngram_size", 3, least=2),
    )
    return (memory, mixer)


def _layer(config: Config, index: int) -> dict[str, Any]:
    attention, first = _streams(config, "attn_hyper_connection", writes=True)
    network, second = _streams(config, "mlp_hyper_connection", writes=True)
    return {"norms": 0, "projections": (*attention, *network), "other_parameters": first + second}


def _model(config: Config) -> dict[str, Any]:
    projections, norm = _streams(config, "hyper_connection_mixer", writes=False)
    tables = _ngram_tables(config)
    return {"projections": projections, "other_parameters": norm, "final_norm": False, "tables": tables}


_mixers = choose(
    _kinds,
    {"linear_attention": gated_delta, "full_attention": _sparse, "indexed_attention": _sparse},
    "layer_types",
)


_qwen4 = Family(
    attention=_with_ngrams,
    ffn=Experts(shared="shared_expert_intermediate_size", shared_gate=True),
    layer=_layer,
    model=_model,
    ignored=("indexer_compress_ratio",),
)

FAMILIES: dict[str, Family] = {"qwen4_exp_text": _qwen4}
