"""Lowering of attention kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.decompose.lowering import Lowering, lowers, tensors_by_name
from planner.model import LatentAttention, SoftmaxAttention, Tensor
from planner.op import Attention, Axis, FullSpan, Op
from planner.precision import Role
from planner.units import Numeric
from planner.workload import Step

LATENT = Axis("latent", 1)
"""The one head that latent attention keeps in its cache, shared by all query heads."""

ABSORBED = "latent attention absorbed: attends to compressed vectors"
EXPANDED = "latent attention expanded: keys and values of every head"


@lowers(SoftmaxAttention)
def softmax_attention(block: SoftmaxAttention, lowering: Lowering) -> Iterator[Op]:
    """Project, attend, project back."""
    step, precision = lowering.step, lowering.precision
    tensors = tensors_by_name(block.tensors(lowering.model.hidden_size))
    yield lowering.matmul(tensors["qkv_proj"])
    if block.qk_norm:
        width = (block.num_attention_heads + block.kv_heads) * block.head_dim
        heads = Axis("query_heads", block.num_attention_heads)
        yield lowering.elementwise("qk_norm", width, width, axis=heads)
    kv_heads = Axis("kv_heads", block.kv_heads)
    width = block.head_dim + block.value_dim
    yield Attention(
        name="attention",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        pairs=step.batch * block.span.pairs(step.new_tokens, step.context, causal=step.mask == "causal"),
        rows=step.tokens,
        query_heads=Axis("query_heads", block.num_attention_heads),
        qk_dim=block.head_dim,
        v_dim=block.value_dim,
        fresh_tokens=step.tokens,
        fresh_heads=kv_heads,
        fresh_width=width,
        cache_read=step.batch * block.span.past(step.context),
        cache_written=step.tokens,
        cache_heads=kv_heads,
        cache_width=width,
        cache_format=precision.kv,
        activation_format=precision.base.output,
        compute_format=precision.attention_arithmetic,
    )
    yield lowering.matmul(tensors["o_proj"])


@lowers(LatentAttention)
def latent_attention(block: LatentAttention, lowering: Lowering) -> Iterator[Op]:
    """Attend in the compressed space, or expand the cache into keys and values first (DeepSeek-V2, arXiv 2405.04434, section 2.1).

    Absorbed (decode), each head's query is multiplied by its slice of the up-projection and attends to the compressed vectors; the
    slice for values is applied to the result. Expanded (prefill), the up-projection turns compressed vectors into keys and values of
    every head, those of cached tokens included. Where arrays of steps differ in the form, both stand, each with its share of rows.
    """
    tensors = tensors_by_name(block.tensors(lowering.model.hidden_size))
    for name in ("q_a_proj", "q_b_proj", "q_proj", "kv_a_proj"):
        if name in tensors:
            yield lowering.matmul(tensors[name])
    absorbed = _absorbed(block, lowering.step)
    if np.any(absorbed):
        yield from _absorbed_attention(block, lowering, np.multiply(absorbed, 1))
    if not np.all(absorbed):
        yield from _expanded_attention(block, lowering, tensors["kv_b_proj"], 1 - np.multiply(absorbed, 1))
    yield lowering.matmul(tensors["o_proj"])


def _absorbed(block: LatentAttention, step: Step) -> bool | NDArray[np.bool_]:
    """Whether the absorbed form takes fewer FLOPs than the expanded one, or was asked for."""
    if step.mla != "auto":
        return step.mla == "absorbed"
    pairs = step.batch * FullSpan().pairs(step.new_tokens, step.context, causal=step.mask == "causal")
    wider = (2 * block.kv_lora_rank + block.qk_rope_head_dim) - (block.qk_head_dim + block.v_head_dim)
    re_expanded = step.batch * step.context * block.kv_lora_rank * (block.qk_nope_head_dim + block.v_head_dim)
    return np.less_equal(pairs * wider, re_expanded)


def _absorbed_attention(block: LatentAttention, lowering: Lowering, share: Numeric) -> Iterator[Op]:
    n, rank, rope = block.num_attention_heads, block.kv_lora_rank, block.qk_rope_head_dim
    heads, rank_axis = Axis("query_heads", n), Axis("kv_rank", rank)
    rows = lowering.step.tokens * n * share
    keys, values = Axis("nope", block.qk_nope_head_dim), Axis("value", block.v_head_dim)
    up_keys = Tensor("kv_b_proj.keys", Role.ATTENTION, keys, (rank_axis,), copies=heads)
    up_values = Tensor("kv_b_proj.values", Role.ATTENTION, rank_axis, (values,), copies=heads)
    yield lowering.matmul(up_keys, rows, touched=n * share, note=ABSORBED)
    yield _latent_core(
        block,
        lowering,
        share,
        note=ABSORBED,
        dims=(rank + rope, rank),
        fresh=(lowering.step.tokens, LATENT, rank + rope),
    )
    yield lowering.matmul(up_values, rows, touched=n * share, note=ABSORBED)


def _expanded_attention(block: LatentAttention, lowering: Lowering, up: Tensor, share: Numeric) -> Iterator[Op]:
    step = lowering.step
    rows = step.batch * (step.context + step.new_tokens)
    yield replace(lowering.matmul(up, rows * share, touched=share, note=EXPANDED), shared_rows=True)
    heads = Axis("query_heads", block.num_attention_heads)
    yield _latent_core(
        block,
        lowering,
        share,
        note=EXPANDED,
        dims=(block.qk_head_dim, block.v_head_dim),
        fresh=(rows, heads, block.qk_head_dim + block.v_head_dim),
    )


def _latent_core(
    block: LatentAttention,
    lowering: Lowering,
    share: Numeric,
    *,
    note: str,
    dims: tuple[int, int],
    fresh: tuple[Numeric, Axis, int],
) -> Attention:
    step, precision = lowering.step, lowering.precision
    fresh_tokens, fresh_heads, fresh_width = fresh
    return Attention(
        name="attention",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        note=note,
        pairs=share * step.batch * FullSpan().pairs(step.new_tokens, step.context, causal=step.mask == "causal"),
        rows=step.tokens * share,
        query_heads=Axis("query_heads", block.num_attention_heads),
        qk_dim=dims[0],
        v_dim=dims[1],
        fresh_tokens=fresh_tokens * share,
        fresh_heads=fresh_heads,
        fresh_width=fresh_width,
        cache_read=step.batch * step.context * share,
        cache_written=step.tokens * share,
        cache_heads=LATENT,
        cache_width=block.cache.width,
        cache_format=precision.kv,
        activation_format=precision.base.output,
        compute_format=precision.attention_arithmetic,
    )
