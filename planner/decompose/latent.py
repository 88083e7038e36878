"""Lowering of attention over compressed vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from planner.decompose.attention import index, index_scores
from planner.decompose.lowering import Lowering, lowers, tensors_by_name
from planner.model import CompressedAttention, LatentAttention, Tensor
from planner.numeric import Numeric, anywhere, everywhere, is_array
from planner.op import Attention, Axis, FullSpan, IndexMatmul, Matmul, Op, SelectedSpan, SlidingSpan
from planner.precision import Role
from planner.workload import Step

LATENT = Axis("latent", 1)
"""The one head that latent attention keeps in its cache, shared by all query heads."""

ABSORBED = "latent attention absorbed: attends to compressed vectors"
EXPANDED = "latent attention expanded: keys and values of every head"


@lowers(LatentAttention)
def latent_attention(block: LatentAttention, lowering: Lowering) -> Iterator[Op]:
    """Attend in the compressed space, or expand the cache into keys and values first (DeepSeek-V2, arXiv 2405.04434, section 2.1).

    Absorbed (decode), each head's query is multiplied by its slice of the up-projection and attends to the compressed vectors; the
    slice for values is applied to the result. Expanded (prefill), the up-projection turns compressed vectors into keys and values of
    every head, those of cached tokens included. Where arrays of steps differ in the form, both stand, each with its share of rows.
    """
    tensors = tensors_by_name(block.tensors(lowering.hidden_size))
    for name in ("q_a_proj", "q_b_proj", "q_proj", "kv_a_proj"):
        if name in tensors:
            yield lowering.matmul(tensors[name])
    if block.indexer:
        yield from index(block.indexer, tensors, lowering)
    absorbed = _absorbed(block, lowering.step)
    if anywhere(absorbed):
        yield from _absorbed_attention(block, lowering, absorbed)
    if not everywhere(absorbed):
        yield from _expanded_attention(block, lowering, tensors["kv_b_proj"], 1 - absorbed)
    if block.output_gate:
        width = block.num_attention_heads * block.v_head_dim
        if "gate_proj" in tensors:
            yield lowering.matmul(tensors["gate_proj"])
        yield lowering.elementwise("output_gate", 2 * width, width, axis=Axis("query_heads", block.num_attention_heads))
    yield lowering.matmul(tensors["o_proj"])


def _absorbed(block: LatentAttention, step: Step) -> Numeric:
    """Return 1 where the absorbed form takes fewer FLOPs than the expanded one, or was asked for, else 0."""
    if step.mla != "auto":
        return int(step.mla == "absorbed")
    # Of one sequence: both grow with the batch alike.
    pairs = block.span.pairs(step.new_tokens, step.context, causal=step.mask == "causal")
    wider = (2 * block.kv_lora_rank + block.qk_rope_head_dim) - (block.qk_head_dim + block.v_head_dim)
    re_expanded = step.context * block.kv_lora_rank * (block.qk_nope_head_dim + block.v_head_dim)
    fewer: Any = pairs * wider <= re_expanded
    if not is_array(fewer):
        return int(fewer)
    # One number where all points agree. NumPy's own scalars would carry 64-bit integers, which overflow, into counts.
    shares: Numeric = int(fewer.all()) if fewer.all() == fewer.any() else fewer.astype(float)
    return shares


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
        pairs=share * step.batch * block.span.pairs(step.new_tokens, step.context, causal=step.mask == "causal"),
        rows=step.tokens * share,
        query_heads=Axis("query_heads", block.num_attention_heads),
        qk_dim=dims[0],
        v_dim=dims[1],
        fresh_tokens=fresh_tokens * share,
        fresh_heads=fresh_heads,
        fresh_width=fresh_width,
        cache_read=step.batch * block.span.read(step.new_tokens, step.context) * share,
        cache_written=step.tokens * share,
        cache_heads=LATENT,
        cache_width=block.cache.width,
        cache_format=precision.kv,
        activation_format=precision.base.output,
        compute_format=precision.attention_arithmetic,
    )


@lowers(CompressedAttention)
def compressed_attention(block: CompressedAttention, lowering: Lowering) -> Iterator[Op]:
    """Attend to a window of tokens and to entries that stand for runs of older ones, all of one vector each."""
    step = lowering.step
    tensors = tensors_by_name(block.tensors(lowering.hidden_size))
    early = [name for name in tensors if not name.startswith("o_")]
    rate = block.compress_rate
    for name in early:
        kind = IndexMatmul if name.startswith("indexer.") else Matmul
        from_entries = name == "indexer.k_proj" and rate is not None
        yield lowering.matmul(tensors[name], step.tokens / rate if from_entries and rate else None, kind=kind)
    if block.indexer and rate:
        pairs, read = _scored(block, lowering, rate)
        yield index_scores(
            block.indexer,
            lowering,
            pairs=step.batch * pairs,
            keys_read=step.batch * read,
            keys_written=0 if block.shared_entries else step.tokens / rate,
        )
    yield _compressed_core(block, lowering)
    yield lowering.matmul(tensors["o_a_proj"], step.tokens * block.o_groups)
    yield lowering.matmul(tensors["o_b_proj"])


def _scored(block: CompressedAttention, lowering: Lowering, rate: int) -> tuple[Numeric, Numeric]:
    """Return the pairs of query and entry that one sequence's indexer scores, and the keys that it reads."""
    step, causal = lowering.step, lowering.step.mask == "causal"
    if block.index_candidates is None:
        return FullSpan().pairs(step.new_tokens, step.context, causal=causal) / rate, step.context / rate
    span = SelectedSpan(block.index_candidates)
    pairs = rate * span.pairs(step.new_tokens / rate, step.context / rate, causal=causal)
    return pairs, span.read(step.new_tokens, step.context / rate)


def _compressed_core(block: CompressedAttention, lowering: Lowering) -> Attention:
    """Return the core; entries are counted as fractions of a token, whole runs and rests alike."""
    step, precision, causal = lowering.step, lowering.precision, lowering.step.mask == "causal"
    window, rate = SlidingSpan(block.sliding_window), block.compress_rate
    pairs = window.pairs(step.new_tokens, step.context, causal=causal)
    read, written = window.past(step.context), step.new_tokens
    if rate:
        entries = SelectedSpan(block.index_topk) if block.index_topk else FullSpan()
        pairs = pairs + rate * entries.pairs(step.new_tokens / rate, step.context / rate, causal=causal)
        read = read + entries.read(step.new_tokens, step.context / rate)
        written = written + (0 if block.shared_entries else step.new_tokens / rate)
    return Attention(
        name="attention",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        pairs=step.batch * pairs,
        rows=step.tokens,
        query_heads=Axis("query_heads", block.num_attention_heads),
        qk_dim=block.head_dim,
        v_dim=block.head_dim,
        fresh_tokens=step.tokens,
        fresh_heads=LATENT,
        fresh_width=block.head_dim,
        cache_read=step.batch * read,
        cache_written=step.batch * written,
        cache_heads=LATENT,
        cache_width=block.head_dim,
        cache_format=precision.kv,
        activation_format=precision.base.output,
        compute_format=precision.attention_arithmetic,
    )
