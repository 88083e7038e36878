"""Softmax attention with separate keys and values, of a token's own sequence or of an encoder's output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import model_validator

from planner.model.attention.base import STATE_BYTES, AttentionBlock, Cache, Indexer
from planner.model.tensor import Count, CountOrZero, Tensor, Vector
from planner.op import Axis, ChunkedSpan, FullSpan, SelectedSpan, SlidingSpan, Span
from planner.precision import Role
from planner.sourced import Flag


class SoftmaxAttention(AttentionBlock):
    """Softmax attention with separate keys and values: multi-head, multi-query or grouped-query."""

    kind: Literal["mha", "mqa", "gqa"]
    """`mha`: a KV head for each query head; `mqa`: one for all; `gqa`: one for a group."""
    num_attention_heads: Count
    """Query heads."""
    num_key_value_heads: Count | None = None
    """Key-value heads; needed for gqa."""
    head_dim: Count
    """Elements of a query and of a key."""
    v_head_dim: Count | None = None
    """Elements of a value, where it differs from a key."""
    q_lora_rank: Count | None = None
    """Rank of the query's low-rank projection; null: queries are projected in one step, with keys and values."""
    query_experts: Count | None = None
    """Projections of queries, each with one of the output, of which a router picks some for each token (JetMoE)."""
    query_experts_per_tok: Count | None = None
    """How many of them a token is sent to; their heads stand side by side."""
    value_experts: Count | None = None
    """Projections of values, of which a router picks some for each token and adds up their results (K2 Horizon)."""
    value_experts_per_tok: Count | None = None
    """How many of them a token is sent to."""
    earlier_run: Flag = False
    """Attends besides, with no window, to what an earlier run of the layer keeps; both are mixed by each head (IQuest-LoopCoder)."""
    input_size: Count | None = None
    """Elements of the input, where it is not the hidden size."""
    qkv_bias: Flag = False
    """Biases on the query, key and value projections."""
    key_bias: Flag = True
    """Whether `qkv_bias` holds for the keys too."""
    output_bias: Flag = False
    """Bias on the output projection."""
    qk_norm: Literal["head", "full"] | None = None
    """Norms of queries and keys: one weight vector for all heads of head_dim elements, or one over all heads together."""
    qk_norm_bias: Flag = False
    """These norms have an offset as well."""
    sinks: Flag = False
    """A learned logit for each head that takes a share of the softmax."""
    output_gate: Literal["head", "element"] | None = None
    """A projected gate on the result: a number for each head, or for each element."""
    gate_bias: Flag = True
    """Whether `qkv_bias` holds for the gate too."""
    differential: Flag = False
    """Heads work in pairs whose results are subtracted; each weighs the values of both (arXiv 2410.05258)."""
    tied_values: Flag = False
    """Values are the keys before their norm: there is no projection of values (both are cached)."""
    shared_kv: Flag = False
    """Keys and values are those of an earlier layer: neither projected nor cached here."""
    state_elements: CountOrZero = 0
    """Elements of a constant state beside the cache: the last inputs of short convolutions."""
    sliding_window: Count | None = None
    """Tokens attended to, the query's own included."""
    attention_chunk_size: Count | None = None
    """Attention stays within chunks of this many tokens."""
    attention_chunk_lookback: CountOrZero = 0
    """Chunks before the query's own that are attended to as well."""
    indexer: Indexer | None = None
    """Picks the positions attended to."""
    index_topk: Count | None = None
    """The most positions attended to, picked by this layer's indexer or an earlier one's."""

    @model_validator(mode="after")
    def _check(self) -> SoftmaxAttention:
        n, k = self.num_attention_heads, self.num_key_value_heads
        if self.kind == "gqa" and k is None:
            raise ValueError("num_key_value_heads is missing, grouped-query attention needs it")
        fixed = {"mha": n, "mqa": 1}.get(self.kind)
        if fixed is not None and k not in (None, fixed):
            raise ValueError(f"num_key_value_heads is {k}, but {self.kind} has {fixed}")
        if n % self.kv_heads:
            raise ValueError(f"num_attention_heads {n} is not a multiple of num_key_value_heads {self.kv_heads}")
        if self.differential and (n % 2 or self.kv_heads % 2):
            raise ValueError(f"differential attention needs pairs of heads, and there are {n} and {self.kv_heads}")
        if self.sliding_window and self.attention_chunk_size:
            raise ValueError("sliding_window and attention_chunk_size exclude each other")
        if self.attention_chunk_lookback and not self.attention_chunk_size:
            raise ValueError("attention_chunk_lookback needs attention_chunk_size")
        if self.indexer and not self.index_topk:
            raise ValueError("an indexer needs index_topk, the most positions it picks")
        return self

    @model_validator(mode="after")
    def _check_experts(self) -> SoftmaxAttention:
        if bool(self.value_experts) != bool(self.value_experts_per_tok):
            raise ValueError("value_experts and value_experts_per_tok need each other")
        if self.query_experts and (
            not self.query_experts_per_tok or self.num_attention_heads % self.query_experts_per_tok
        ):
            raise ValueError("query_experts needs query_experts_per_tok, which divides num_attention_heads")
        pairs = ((self.value_experts_per_tok, self.value_experts), (self.query_experts_per_tok, self.query_experts))
        for used, there in pairs:
            if used and there and used > there:
                raise ValueError(f"a token is sent to {used} experts of attention, and there are {there}")
        return self

    @property
    def kv_heads(self) -> int:
        """Key-value heads."""
        if self.num_key_value_heads is not None:
            return self.num_key_value_heads
        return 1 if self.kind == "mqa" else self.num_attention_heads

    @property
    def value_dim(self) -> int:
        """Elements of a value."""
        return self.v_head_dim or self.head_dim

    @property
    def span(self) -> Span:
        """Which positions a query sees."""
        if self.sliding_window:
            return SlidingSpan(self.sliding_window)
        if self.attention_chunk_size:
            return ChunkedSpan(self.attention_chunk_size, self.attention_chunk_lookback)
        return SelectedSpan(self.index_topk) if self.index_topk else FullSpan()

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`. Every token stays in the cache of sparse attention: the choice changes with the query."""
        width = 0 if self.shared_kv else self.kv_heads * (self.head_dim + self.value_dim)
        kept = FullSpan() if self.index_topk else self.span
        return Cache(
            width=width,
            span=kept,
            state_bytes=self.state_elements * STATE_BYTES,
            index_width=self.indexer.key_width if self.indexer else 0,
        )

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        words: list[str] = [f"differential {self.kind}" if self.differential else self.kind]
        if self.sliding_window:
            words.append(f"window {self.sliding_window}")
        if self.attention_chunk_size:
            words.append(f"chunk {self.attention_chunk_size}")
        if self.index_topk:
            words.append(f"top {self.index_topk}")
        if self.shared_kv:
            words.append("shared kv")
        return " ".join(words)

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden = Axis("hidden", hidden_size)
        inner = Axis("hidden", self.input_size) if self.input_size else hidden
        n, v = self.num_attention_heads, self.value_dim
        tensors: list[Tensor | Vector] = [*self._inputs(inner)]
        if self.value_experts:
            tensors += self._value_experts(inner)
        if not self.query_experts:
            tensors.append(
                Tensor("o_proj", Role.ATTENTION, Axis("query_heads", n, v), (hidden,), bias=self.output_bias)
            )
        tensors += [*self._vectors(), *self._experts(hidden)]
        if self._plain_gate:
            tensors.append(Tensor("gate_proj", Role.ATTENTION, inner, (self._gate,)))
        if self.indexer:
            tensors += self.indexer.tensors(hidden, hidden)
        return tuple(tensors)

    def _inputs(self, inner: Axis) -> Iterator[Tensor | Vector]:
        """Yield the projections of queries, keys and values, those of queries apart where they are not like the others."""
        role, bias = Role.ATTENTION, self.qkv_bias and self.key_bias
        if not self.q_lora_rank and not self.query_experts:
            yield Tensor("qkv_proj", role, inner, self._projected(), bias=bias)
            return
        queries, *others = self._projected()
        if self.q_lora_rank:
            rank = Axis("q_rank", self.q_lora_rank)
            yield Tensor("q_a_proj", role, inner, (rank,), bias=self.qkv_bias)
            yield Vector("q_a_layernorm", Role.NORM, self.q_lora_rank)
            yield Tensor("q_b_proj", role, rank, (queries,))
        if others:
            yield Tensor("kv_proj", role, inner, tuple(others), bias=bias)

    def _experts(self, hidden: Axis) -> Iterator[Tensor]:
        """Yield the router of attention's experts, and their projections of queries and outputs."""
        if not (self.query_experts and self.query_experts_per_tok):
            return
        copies, used = Axis("query_experts", self.query_experts), self.query_experts_per_tok
        heads = Axis("query_heads", self.num_attention_heads // used, self.head_dim)
        values = Axis("query_heads", self.num_attention_heads // used, self.value_dim)
        yield Tensor("query_router", Role.ROUTER, hidden, (Axis("router", self.query_experts),))
        yield Tensor("query_experts.q_proj", Role.ATTENTION, hidden, (heads,), copies=copies, used=used)
        yield Tensor("query_experts.o_proj", Role.ATTENTION, values, (hidden,), copies=copies, used=used)

    def _value_experts(self, inner: Axis) -> Iterator[Tensor]:
        """Yield the router of values, and their projections."""
        copies = Axis("value_experts", self.value_experts or 1)
        values = Axis("kv_heads", self.kv_heads, self.value_dim)
        yield Tensor("value_router", Role.ROUTER, inner, (Axis("router", copies.size),))
        yield Tensor(
            "value_experts.v_proj",
            Role.ATTENTION,
            inner,
            (values,),
            copies=copies,
            used=self.value_experts_per_tok,
        )

    def _projected(self) -> tuple[Axis, ...]:
        """Return the axes of queries, keys and values, and of the gate, which is projected with them."""
        n, h, v = self.num_attention_heads, self.head_dim, self.value_dim
        axes = [Axis("query_heads", n, h)]
        if not self.shared_kv:
            keys_alone = self.tied_values or self.value_experts
            axes.append(Axis("kv_heads", self.kv_heads, h if keys_alone else h + v))
        if self.output_gate and not self._plain_gate:
            axes.append(self._gate)
        return tuple(axes)

    @property
    def _gate(self) -> Axis:
        return Axis("query_heads", self.num_attention_heads, self.value_dim if self.output_gate == "element" else 1)

    @property
    def _plain_gate(self) -> bool:
        """Whether the gate stands apart, having no bias where the other projections have."""
        return self.output_gate is not None and self.qkv_bias and not self.gate_bias

    def _vectors(self) -> Iterator[Vector]:
        n, k, h, v = self.num_attention_heads, self.kv_heads, self.head_dim, self.value_dim
        if self.qkv_bias and not self.key_bias:
            yield Vector("qv_proj.bias", Role.ATTENTION, n * h + k * v)
        if self.qk_norm:
            queries, keys = (n, k) if self.qk_norm == "full" else (1, 1)
            width = (queries + (0 if self.shared_kv else keys)) * h
            yield Vector("qk_norm", Role.NORM, width * (1 + self.qk_norm_bias))
        if self.sinks:
            yield Vector("sinks", Role.NORM, n)


class CrossAttention(AttentionBlock):
    """Attention from a decoder's tokens to an encoder's output, whose keys and values are projected once and kept."""

    kind: Literal["cross"]
    num_attention_heads: Count
    """Query heads."""
    num_key_value_heads: Count | None = None
    """Key-value heads; as many as query heads where not given."""
    head_dim: Count
    """Elements of a query, a key and a value."""
    source_size: Count | None = None
    """Elements of the encoder's output, where it is not the hidden size."""
    qkv_bias: Flag = False
    """Biases on the query, key and value projections."""
    key_bias: Flag = True
    """Whether `qkv_bias` holds for the keys too."""
    output_bias: Flag = False
    """Bias on the output projection."""
    qk_norm: Literal["head", "full"] | None = None
    """Norms of queries and keys."""
    merged: Flag = False
    """One softmax with the layer's self-attention, by its weights: queries and outputs are projected once for both (T5Gemma 2)."""

    @model_validator(mode="after")
    def _check(self) -> CrossAttention:
        if self.merged and not self.shared_weights:
            raise ValueError(
                "merged: attention that is one with self-attention has its weights, set shared_weights: true"
            )
        return self

    @property
    def kv_heads(self) -> int:
        """Key-value heads."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`."""
        return Cache(source_width=2 * self.kv_heads * self.head_dim)

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        return "cross"

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, source = Axis("hidden", hidden_size), Axis("hidden", self.source_size or hidden_size)
        n, k, h, role = self.num_attention_heads, self.kv_heads, self.head_dim, Role.ATTENTION
        heads = Axis("query_heads", n, h)
        tensors: list[Tensor | Vector] = [
            Tensor("cross.q_proj", role, hidden, (heads,), bias=self.qkv_bias),
            Tensor("cross.kv_proj", role, source, (Axis("kv_heads", k, 2 * h),), bias=self.qkv_bias and self.key_bias),
            Tensor("cross.o_proj", role, heads, (hidden,), bias=self.output_bias),
        ]
        if self.qkv_bias and not self.key_bias:
            tensors.append(Vector("cross.v_proj.bias", role, k * h))
        if self.qk_norm:
            tensors.append(Vector("cross.qk_norm", Role.NORM, (n + k) * h if self.qk_norm == "full" else 2 * h))
        return tuple(tensors)
