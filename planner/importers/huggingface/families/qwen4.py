"""Qwen 4 (experimental): linear and sparse attention in turn, over several residual streams that are mixed by low-rank maps."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import build, choose, every, kinds
from planner.importers.huggingface.parts.networks import Experts
from planner.importers.huggingface.parts.recurrent import gated_delta
from planner.importers.huggingface.parts.softmax import softmax
from planner.model import Indexer, Projection

_kinds = kinds(
    every("full_attention_interval", 4, nth="indexed_attention", other="linear_attention"),
    known=("linear_attention", "full_attention", "indexed_attention"),
)


def _index(config: Config, index: int) -> dict[str, Any]:  # noqa: ARG001 - the signature of every reader
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


def _layer(config: Config, index: int) -> dict[str, Any]:  # noqa: ARG001
    if config.listed("ple_layer_ids"):
        config.fault("ple_layer_ids", "tables of n-grams are not supported")
        config.raise_faults()
    attention, first = _streams(config, "attn_hyper_connection", writes=True)
    network, second = _streams(config, "mlp_hyper_connection", writes=True)
    return {"norms": 0, "projections": (*attention, *network), "other_parameters": first + second}


def _model(config: Config) -> dict[str, Any]:
    projections, norm = _streams(config, "hyper_connection_mixer", writes=False)
    return {"projections": projections, "other_parameters": norm, "final_norm": False}


_qwen4 = Family(
    attention=choose(
        _kinds,
        {"linear_attention": gated_delta, "full_attention": _sparse, "indexed_attention": _sparse},
        "layer_types",
    ),
    ffn=Experts(shared="shared_expert_intermediate_size", shared_gate=True),
    layer=_layer,
    model=_model,
    ignored=("indexer_compress_ratio",),
)

FAMILIES: dict[str, Family] = {"qwen4_exp_text": _qwen4}
