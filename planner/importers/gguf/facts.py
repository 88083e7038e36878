"""Facts that several architectures of GGUF share: config fields that no single metadata field states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.gguf.source import NEXTN, Fact, Source

KV_HEADS = "attention.head_count_kv"
WINDOW = "attention.sliding_window"
PATTERN = "attention.sliding_window_pattern"
EXPERTS = "expert_count"
EXPERT_WIDTH = "expert_feed_forward_length"
SHARED_WIDTH = "expert_shared_feed_forward_length"
DENSE = "leading_dense_block_count"
HEADS_OF_STATE = "ssm.time_step_rank"
INNER = "ssm.inner_size"


# ---- of tensors ------------------------------------------------------------------------------------------------------


def has(*names: str) -> Fact:
    """Return a fact: whether there is one of some tensors."""
    return lambda source: source.has(*names)


def lacks(*names: str) -> Fact:
    """Return a fact: whether there is none of some tensors."""
    return lambda source: not source.has(*names)


def rows(name: str) -> Fact:
    """Return a fact: the outputs of a tensor."""
    return lambda source: source.size(name, 1)


def kinds(name: str, yes: str, no: str) -> Fact:
    """Return a fact: the kind of each layer, by whether it has a tensor."""
    return lambda source: [yes if found else no for found in source.with_tensor(name)]


# ---- of metadata -----------------------------------------------------------------------------------------------------


def fixed(value: Any) -> Fact:
    """Return a fact that holds for every file."""
    return lambda source: value  # the signature of all facts


def count(key: str) -> Fact:
    """Return a fact: a number, 0 where the file does not say it."""
    return lambda source: source.get(key) or 0


def first(*keys: str) -> Fact:
    """Return a fact: the first of some fields that is there and not 0."""
    return lambda source: next(filter(None, map(source.get, keys)), None)


def ratio(key: str, below: str) -> Fact:
    """Return a fact: one number over another, whole where it can be."""

    def read(source: Source) -> Any:
        over, under = source.number(key), source.number(below)
        if over is None or not under:
            return None
        return over // under if over % under == 0 else over / under

    return read


def sparse_layers(source: Source) -> list[int]:
    """Return the numbers of the layers with routed experts."""
    return [layer for layer, found in enumerate(source.with_tensor("ffn_gate_inp.weight")) if found]


def layer_count(source: Source) -> Any:
    """Return the layers, those for multi-token prediction left out."""
    count = source.get("block_count")
    more = source.number(NEXTN, 0)
    return count - more if isinstance(count, int) and more else count


def vocabulary(source: Source) -> Any:
    """Return the rows of the token embedding; what the metadata say where the file has none."""
    shape = source.shapes.get("token_embd.weight", ())
    stated = source.get("vocab_size")
    return shape[1] if len(shape) == 2 else stated  # a matrix


def window(source: Source) -> Any:
    """Return the sliding window; None for none, which some files write as 0."""
    return source.get(WINDOW) or None


def sliding(period: int | None = None, *, other: str = "full_attention") -> Fact:
    """Return a fact: which layers have the window, by the list or the period in the file, else by that of llama.cpp.

    All layers but the last of each `period` have the window; a period of None leaves it to the config's class.
    """

    def read(source: Source) -> list[str] | None:
        stated = source.each(PATTERN) if isinstance(source.fields.get(PATTERN), list) else ()
        if stated:
            return ["sliding_attention" if item else other for item in stated[: source.layers]]
        size = source.number(PATTERN) or period
        if size is None:
            return None
        return [
            other if size == 1 or (index + 1) % size == 0 else "sliding_attention" for index in range(source.layers)
        ]

    return read


def recurrent(yes: str, no: str) -> Fact:
    """Return a fact: the kind of each layer, by whether it has KV heads: llama.cpp writes 0 for a layer without attention."""

    def read(source: Source) -> list[str]:
        heads = source.each(KV_HEADS)
        return [no if count == 0 else yes for count in heads[: source.layers]]

    return read


# ---- groups of fields ------------------------------------------------------------------------------------------------

Fields = Mapping[str, str | Fact | None]

BIASES: Fields = {"attention_bias": has("attn_q.bias", "attn_qkv.bias"), "mlp_bias": has("ffn_up.bias")}

ONE_BIAS: Fields = {"use_bias": has("attn_q.bias", "ffn_up.bias")}

LOCAL: Fields = {"num_local_experts": EXPERTS, "num_experts_per_tok": "expert_used_count"}
"""Experts whose width is the network's."""

ROUTED: Fields = {
    "num_experts": EXPERTS,
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": EXPERT_WIDTH,
}
"""Experts with a width of their own."""

SHARED: Fields = {
    "n_routed_experts": EXPERTS,
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": EXPERT_WIDTH,
    "n_shared_experts": count("expert_shared_count"),
    "first_k_dense_replace": count(DENSE),
    "num_nextn_predict_layers": NEXTN,
}
"""Experts, some that every token passes, and dense layers at the start."""


def latent_key(source: Source) -> int | None:
    """Return the elements of a key that are not rotated: lengths are those of the compressed form where the file has both."""
    key = source.number("attention.key_length_mla") or source.number("attention.key_length")
    rope = source.number("rope.dimension_count")
    return None if key is None or rope is None else key - rope


LATENT: Fields = {
    "q_lora_rank": "attention.q_lora_rank",
    "kv_lora_rank": "attention.kv_lora_rank",
    "qk_rope_head_dim": "rope.dimension_count",
    "qk_nope_head_dim": latent_key,
    "v_head_dim": first("attention.value_length_mla", "attention.value_length"),
    "num_key_value_heads": "attention.head_count",
    "head_dim": None,
}

INDEXED: Fields = {
    "index_n_heads": "attention.indexer.head_count",
    "index_head_dim": "attention.indexer.key_length",
    "index_topk": "attention.indexer.top_k",
}

MAMBA2: Fields = {
    "mamba_n_heads": HEADS_OF_STATE,
    "mamba_d_head": ratio(INNER, HEADS_OF_STATE),
    "mamba_n_groups": "ssm.group_count",
    "mamba_d_state": "ssm.state_size",
    "mamba_d_conv": "ssm.conv_kernel",
    "mamba_conv_bias": has("ssm_conv1d.bias"),
    "mamba_proj_bias": has("ssm_in.bias"),
}

DELTA: Fields = {
    "linear_conv_kernel_dim": "ssm.conv_kernel",
    "linear_key_head_dim": "ssm.state_size",
    "linear_num_key_heads": "ssm.group_count",
    "linear_num_value_heads": HEADS_OF_STATE,
    "linear_value_head_dim": ratio(INNER, HEADS_OF_STATE),
    "layer_types": kinds("ssm_out.weight", "linear_attention", "full_attention"),
}

WINDOWED: Fields = {"sliding_window": window}
