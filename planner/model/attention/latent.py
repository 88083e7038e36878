"""Attention over compressed vectors: multi-head latent attention, and DeepSeek-V4's, which also compresses along the sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import model_validator

from planner.model.attention.base import STATE_BYTES, AttentionBlock, Cache, Indexer
from planner.model.tensor import Count, CountOrZero, Tensor, Vector
from planner.op import Axis, FullSpan, SelectedSpan, SlidingSpan, Span
from planner.precision import Role
from planner.sourced import Flag


class LatentAttention(AttentionBlock):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): the cache holds one compressed vector for all heads."""

    kind: Literal["mla"]
    num_attention_heads: Count
    """Query heads."""
    q_lora_rank: Count | None = None
    """Rank of the query's low-rank projection; null: queries are projected in one step."""
    kv_lora_rank: Count
    """Elements of the compressed key-value vector."""
    qk_nope_head_dim: Count
    """Elements of a query and key without rotary embedding."""
    qk_rope_head_dim: CountOrZero
    """Elements with rotary embedding, shared by all heads; 0 for none."""
    v_head_dim: Count
    """Elements of a value."""
    attention_bias: Flag = False
    """Biases on the two down-projections and the output projection."""
    query_norm: Flag = True
    """A norm of the query's low-rank vector."""
    sinks: Flag = False
    """A learned logit for each head that takes a share of the softmax."""
    output_gate: Literal["head", "element"] | None = None
    """A projected gate on the result: a number for each head, or for each element."""
    fused_gate: Flag = False
    """Queries and gate are projected together, from the query's low-rank vector with and without its norm (A.X K2)."""
    sliding_window: Count | None = None
    """Tokens attended to, the query's own included."""
    indexer: Indexer | None = None
    """Picks the positions attended to (DeepSeek-V3.2)."""
    index_topk: Count | None = None
    """The most positions attended to, picked by this layer's indexer or an earlier one's."""

    @model_validator(mode="after")
    def _check(self) -> LatentAttention:
        if self.indexer and not self.index_topk:
            raise ValueError("an indexer needs index_topk, the most positions it picks")
        if self.fused_gate and not (self.q_lora_rank and self.output_gate):
            raise ValueError("fused_gate needs q_lora_rank and output_gate")
        return self

    @property
    def span(self) -> Span:
        """Which positions a query sees."""
        if self.sliding_window:
            return SlidingSpan(self.sliding_window)
        return SelectedSpan(self.index_topk) if self.index_topk else FullSpan()

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`. Independent of the number of heads."""
        return Cache(
            width=self.kv_lora_rank + self.qk_rope_head_dim,
            span=FullSpan() if self.index_topk else self.span,
            index_width=self.indexer.key_width if self.indexer else 0,
        )

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        if self.sliding_window:
            return f"mla window {self.sliding_window}"
        if not self.index_topk:
            return "mla"
        return f"mla top {self.index_topk}{'' if self.indexer else ' as before'}"

    @property
    def qk_head_dim(self) -> int:
        """Elements of a query."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, rank = Axis("hidden", hidden_size), Axis("kv_rank", self.kv_lora_rank)
        n, role, bias = self.num_attention_heads, Role.ATTENTION, self.attention_bias
        up = (Axis("query_heads", n, self.qk_nope_head_dim + self.v_head_dim),)
        down = (rank, Axis("rope", self.qk_rope_head_dim)) if self.qk_rope_head_dim else (rank,)
        tensors = [
            *self._queries(hidden),
            Tensor("kv_a_proj", role, hidden, down, bias=bias),
            Vector("kv_a_layernorm", Role.NORM, self.kv_lora_rank),
            Tensor("kv_b_proj", role, rank, up),
            Tensor("o_proj", role, Axis("query_heads", n, self.v_head_dim), (hidden,), bias=bias),
        ]
        if self.output_gate and not self.fused_gate:
            tensors.append(Tensor("gate_proj", role, hidden, (self._gate,)))
        if self.sinks:
            tensors.append(Vector("sinks", Role.NORM, n))
        return tuple(tensors)

    @property
    def _gate(self) -> Axis:
        return Axis("query_heads", self.num_attention_heads, self.v_head_dim if self.output_gate == "element" else 1)

    def _queries(self, hidden: Axis) -> Iterator[Tensor | Vector]:
        queries = (Axis("query_heads", self.num_attention_heads, self.qk_head_dim),)
        source = hidden
        if self.q_lora_rank:
            source = Axis("q_rank", self.q_lora_rank)
            yield Tensor("q_a_proj", Role.ATTENTION, hidden, (source,), bias=self.attention_bias)
            if self.query_norm:
                yield Vector("q_a_layernorm", Role.NORM, self.q_lora_rank)
            both = Axis("q_rank", 2 * self.q_lora_rank) if self.fused_gate else source
            yield Tensor("q_b_proj", Role.ATTENTION, both, (*queries, self._gate) if self.fused_gate else queries)
        else:
            yield Tensor("q_proj", Role.ATTENTION, hidden, queries)
        if self.indexer:
            yield from self.indexer.tensors(source, hidden)


class CompressedAttention(AttentionBlock):
    """DeepSeek-V4: one key that is also the value, a window of recent tokens, and runs of older tokens merged into one entry each."""

    kind: Literal["compressed"]
    num_attention_heads: Count
    """Query heads."""
    head_dim: Count
    """Elements of a query and of the one vector that is key and value."""
    q_lora_rank: Count
    """Rank of the query's low-rank projection."""
    o_groups: Count
    """Groups of heads that are projected together on the way out."""
    o_lora_rank: Count
    """Rank of the output's low-rank projection, for each group."""
    sliding_window: Count
    """Recent tokens that are kept as they are."""
    compress_rate: Count | None = None
    """Tokens that are merged into one entry; null: only the window is attended to."""
    overlap: Flag = False
    """Entries overlap: each is merged from two runs."""
    indexer: Indexer | None = None
    """Picks the entries attended to."""
    index_topk: Count | None = None
    """The most entries attended to, picked by this layer's indexer or an earlier one's."""
    index_candidates: Count | None = None
    """The most entries that the indexer scores, where an earlier one has narrowed them down."""
    shared_entries: Flag = False
    """Entries, and the keys that they are picked by, are those of an earlier layer: neither made nor cached here."""
    entry_keys: Flag = False
    """The indexer's keys are projected from entries, which have no bias by position, and a gate only where they merge tokens."""

    @model_validator(mode="after")
    def _check(self) -> CompressedAttention:
        if self.num_attention_heads % self.o_groups:
            raise ValueError(f"num_attention_heads {self.num_attention_heads} is not a multiple of o_groups")
        if self.indexer and not (self.index_topk and self.compress_rate):
            raise ValueError("an indexer needs index_topk and compress_rate")
        if self.shared_entries and not self.compress_rate:
            raise ValueError("shared_entries needs compress_rate")
        return self

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`. The window is a constant state; entries are counted by the token, rounded up."""
        rate = None if self.shared_entries else self.compress_rate
        return Cache(
            width=-(-self.head_dim // rate) if rate else 0,
            state_bytes=self.sliding_window * self.head_dim * STATE_BYTES,
            index_width=-(-self.indexer.head_dim // rate) if self.indexer and rate else 0,
        )

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        rate = f" 1/{self.compress_rate}" if self.compress_rate else ""
        top = f" top {self.index_topk}" if self.index_topk else ""
        return f"compressed{rate}{top}{' as before' if self.shared_entries and not self.indexer else ''}"

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, q_rank = Axis("hidden", hidden_size), Axis("q_rank", self.q_lora_rank)
        n, h, role = self.num_attention_heads, self.head_dim, Role.ATTENTION
        each, groups = Axis("group_heads", n // self.o_groups, h), Axis("o_groups", self.o_groups)
        low = Axis("o_groups", self.o_groups, self.o_lora_rank)
        tensors: list[Tensor | Vector] = [
            Vector("sinks", Role.NORM, n),
            Tensor("q_a_proj", role, hidden, (q_rank,)),
            Vector("q_a_norm", Role.NORM, self.q_lora_rank),
            Tensor("q_b_proj", role, q_rank, (Axis("query_heads", n, h),)),
            Tensor("kv_proj", role, hidden, (Axis("latent", h),)),
            Vector("kv_norm", Role.NORM, h),
            Tensor("o_a_proj", role, each, (Axis("o_rank", self.o_lora_rank),), copies=groups),
            Tensor("o_b_proj", role, low, (hidden,)),
        ]
        if self.compress_rate and not self.shared_entries:
            tensors += self._entries(hidden, h) if self.entry_keys else self._compressor("compressor", hidden, h)
        if self.indexer:
            tensors += self._index(self.indexer, hidden, q_rank)
        return tuple(tensors)

    def _index(self, indexer: Indexer, hidden: Axis, q_rank: Axis) -> Iterator[Tensor | Vector]:
        """Yield what picks entries: queries, weights of heads, and keys where they are made here."""
        role, heads = Role.ATTENTION, Axis("index_heads", indexer.num_heads, indexer.head_dim)
        if not self.entry_keys:
            yield from self._compressor("indexer", hidden, indexer.head_dim)
        elif not self.shared_entries:
            key = (Axis("index_key", indexer.head_dim),)
            yield Tensor("indexer.k_proj", role, Axis("latent", self.head_dim), key)
            yield Vector("indexer.norm", Role.NORM, indexer.head_dim)
        yield Tensor("indexer.q_proj", role, q_rank, (heads,))
        yield Tensor("indexer.weights_proj", Role.ROUTER, hidden, (Axis("index_heads", indexer.num_heads),))

    def _entries(self, hidden: Axis, width: int) -> Iterator[Tensor | Vector]:
        """Yield what makes entries of `width` elements, with a gate where they merge tokens."""
        made = (Axis("latent", width),) * (2 if (self.compress_rate or 1) > 1 else 1)
        yield Tensor("compressor.kv_gate_proj", Role.ATTENTION, hidden, made)
        yield Vector("compressor.kv_norm", Role.NORM, width)

    def _compressor(self, prefix: str, hidden: Axis, width: int) -> Iterator[Tensor | Vector]:
        """Yield what merges runs of tokens into entries of `width` elements: a vector, its gate, and a bias by position."""
        each = width * (1 + self.overlap)
        yield Tensor(f"{prefix}.kv_gate_proj", Role.ATTENTION, hidden, (Axis("latent", each), Axis("latent", each)))
        yield Vector(f"{prefix}.position_bias", Role.NORM, (self.compress_rate or 0) * each)
        yield Vector(f"{prefix}.kv_norm", Role.NORM, width)
