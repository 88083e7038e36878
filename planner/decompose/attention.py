"""Lowering of softmax attention: to a sequence's own tokens, and to an encoder's output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.decompose.lowering import Lowering, lowers, share_begun, tensors_by_name
from planner.model import CrossAttention, Indexer, PatchAttention, SoftmaxAttention, Tensor
from planner.numeric import Numeric, minimum
from planner.op import Attention, Axis, FullSpan, Index, IndexMatmul, Op
from planner.workload import Phase

CHOSEN = ("query_experts.q_proj", "value_experts.v_proj")
"""Projections of which each token is sent to some."""


@lowers(SoftmaxAttention)
def softmax_attention(block: SoftmaxAttention, lowering: Lowering) -> Iterator[Op]:
    """Project, attend, project back."""
    tensors = tensors_by_name(block.tensors(lowering.hidden_size))
    for name in ("qkv_proj", "q_a_proj", "q_b_proj", "kv_proj", "query_router", "value_router"):
        if name in tensors:
            yield lowering.matmul(tensors[name])
    yield from (_chosen(tensors[name], lowering) for name in CHOSEN if name in tensors)
    if block.qk_norm:
        heads = block.num_attention_heads + (0 if block.shared_kv else block.kv_heads)
        width = heads * block.head_dim
        yield lowering.elementwise("qk_norm", width, width, axis=Axis("query_heads", block.num_attention_heads))
    if block.indexer:
        yield from index(block.indexer, tensors, lowering)
    yield _core(block, lowering)
    if block.differential:
        width = block.num_attention_heads * block.value_dim
        yield lowering.elementwise("difference", 2 * width, width, axis=Axis("query_heads", block.num_attention_heads))
    if block.earlier_run:
        whole = block.model_copy(update={"sliding_window": None, "shared_kv": True})
        yield replace(_core(whole, lowering), name="attention.earlier_run")
    if block.output_gate:
        yield from _gated(block, tensors, lowering)
    if block.query_experts:
        yield _chosen(tensors["query_experts.o_proj"], lowering)
    else:
        yield lowering.matmul(tensors["o_proj"])


def _gated(block: SoftmaxAttention, tensors: dict[str, Tensor], lowering: Lowering) -> Iterator[Op]:
    """Project the gate, where it stands apart, and apply it."""
    width = block.num_attention_heads * block.value_dim
    if "gate_proj" in tensors:
        yield lowering.matmul(tensors["gate_proj"])
    yield lowering.elementwise("output_gate", 2 * width, width, axis=Axis("query_heads", block.num_attention_heads))


def _chosen(tensor: Tensor, lowering: Lowering) -> Op:
    """Return the projections of the experts that each token is sent to."""
    experts, used, tokens = tensor.copies.size, tensor.used or 1, lowering.step.tokens
    return lowering.matmul(tensor, tokens * used, touched=experts * (1 - (1 - used / experts) ** tokens))


def _core(block: SoftmaxAttention, lowering: Lowering) -> Attention:
    step, precision = lowering.step, lowering.precision
    kv_heads, width = Axis("kv_heads", block.kv_heads), block.head_dim + block.value_dim
    # A layer that shares its keys and values reads even the newest from the cache, where an earlier layer has put them.
    fresh = 0 if block.shared_kv else step.tokens
    read = block.span.read(step.new_tokens, step.context) + (step.new_tokens if block.shared_kv else 0)
    if lowering.read_share is not None:
        # Less than one patch in a step: most steps read nothing.
        read = read * minimum(step.new_tokens, 1)
    return Attention(
        name="attention",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        pairs=step.batch * block.span.pairs(step.new_tokens, step.context, causal=step.mask == "causal"),
        rows=step.tokens,
        query_heads=Axis("query_heads", block.num_attention_heads),
        qk_dim=block.head_dim,
        v_dim=block.value_dim * (1 + block.differential),
        fresh_tokens=fresh,
        fresh_heads=kv_heads,
        fresh_width=width,
        cache_read=0 if lowering.is_encoder else step.batch * read,
        cache_written=0 if lowering.is_encoder else fresh,
        cache_heads=kv_heads,
        cache_width=width,
        cache_format=precision.kv,
        activation_format=precision.base.output,
        compute_format=precision.attention_arithmetic,
    )


def index(indexer: Indexer, tensors: dict[str, Tensor], lowering: Lowering) -> Iterator[Op]:
    """Project the indexer's queries, key and weights, and score every position before the token."""
    step = lowering.step
    for name in ("indexer.q_proj", "indexer.k_proj", "indexer.weights_proj"):
        if name in tensors:
            yield lowering.matmul(tensors[name], kind=IndexMatmul)
    yield index_scores(
        indexer,
        lowering,
        pairs=step.batch * FullSpan().pairs(step.new_tokens, step.context, causal=step.mask == "causal"),
        keys_read=step.batch * step.context,
        keys_written=step.tokens,
    )


def index_scores(
    indexer: Indexer, lowering: Lowering, *, pairs: Numeric, keys_read: Numeric, keys_written: Numeric
) -> Index:
    """Return the scoring of `pairs` pairs of query and key; where keys are merged, of so many fewer."""
    precision, pool = lowering.precision, indexer.pool
    if pool > 1:
        pairs, keys_read, keys_written = pairs / pool, keys_read / pool, keys_written / pool
    return Index(
        name="indexer",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        pairs=pairs,
        rows=lowering.step.tokens,
        heads=Axis("index_heads", indexer.num_heads, indexer.head_dim),
        key_dim=indexer.head_dim,
        keys_read=keys_read,
        keys_written=keys_written,
        cache_format=precision.kv,
        activation_format=precision.base.output,
        compute_format=precision.attention_arithmetic,
    )


@lowers(CrossAttention)
def cross_attention(block: CrossAttention, lowering: Lowering) -> Iterator[Op]:
    """Attend to the source; its keys and values are projected in prefill, and read from the cache in decode."""
    step, precision = lowering.step, lowering.precision
    tensors = tensors_by_name(block.tensors(lowering.hidden_size))
    source = step.batch * lowering.source
    projected = source if step.phase is Phase.PREFILL else 0
    kv_heads, width = Axis("kv_heads", block.kv_heads), 2 * block.head_dim
    if not block.merged:
        yield lowering.matmul(tensors["cross.q_proj"])
    if step.phase is Phase.PREFILL:
        yield lowering.matmul(tensors["cross.kv_proj"], source)
    yield Attention(
        name="cross_attention",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        pairs=step.tokens * lowering.source,
        rows=step.tokens,
        query_heads=Axis("query_heads", block.num_attention_heads),
        qk_dim=block.head_dim,
        v_dim=block.head_dim,
        fresh_tokens=projected,
        fresh_heads=kv_heads,
        fresh_width=width,
        cache_read=source - projected,
        cache_written=projected,
        cache_heads=kv_heads,
        cache_width=width,
        cache_format=precision.kv,
        activation_format=precision.base.output,
        compute_format=precision.attention_arithmetic,
    )
    if not block.merged:
        yield lowering.matmul(tensors["cross.o_proj"])


@lowers(PatchAttention)
def patch_attention(block: PatchAttention, lowering: Lowering) -> Iterator[Op]:
    """Attend within the patch at hand: each of its tokens meets each of its vectors, whichever of them asks."""
    step, precision = lowering.step, lowering.precision
    tensors = tensors_by_name(block.tensors(lowering.hidden_size))
    tokens, length = step.tokens, block.tokens_per_patch
    vectors, begun = tokens * block.vectors_per_patch / length, share_begun(length, tokens)
    asking, asked = (vectors, tokens) if block.queries == "patches" else (tokens, vectors)
    # Weights that only vectors pass are read in steps that begin a patch.
    queries, keys = (begun, None) if block.queries == "patches" else (None, begun)
    kv_heads, width = Axis("kv_heads", block.kv_heads), 2 * block.head_dim
    yield lowering.matmul(tensors["patch.q_proj"], asking, touched=queries)
    yield lowering.matmul(tensors["patch.kv_proj"], asked, touched=keys)
    yield Attention(
        name="patch_attention",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        pairs=tokens * block.vectors_per_patch,
        rows=asking,
        query_heads=Axis("query_heads", block.num_attention_heads),
        qk_dim=block.head_dim,
        v_dim=block.head_dim,
        fresh_tokens=asked,
        fresh_heads=kv_heads,
        fresh_width=width,
        cache_read=step.batch * block.kept,
        cache_written=asked,
        cache_heads=kv_heads,
        cache_width=width,
        cache_format=precision.kv,
        activation_format=precision.base.output,
        compute_format=precision.attention_arithmetic,
    )
    yield lowering.matmul(tensors["patch.o_proj"], asking, touched=queries)
