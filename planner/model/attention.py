"""Kinds of attention: their fields, their weights, and what they keep for each token or sequence."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.model.tensor import Count, Description, Flag, Tensor, Vector
from planner.op import Axis, ChunkedSpan, FullSpan, SlidingSpan, Span
from planner.precision import Role


@dataclass(frozen=True, slots=True)
class Cache:
    """What one layer keeps of a sequence.

    Attributes
    ----------
    width : int
        Elements for each cached token, in the format of the KV cache.
    span : Span
        Which tokens are kept.
    state_bytes : int
        Recurrent state of a sequence, whatever its length [B].
    index_width : int
        Elements for each token that a sparse-attention indexer keeps.
    """

    width: int = 0
    span: Span = FullSpan()
    state_bytes: int = 0
    index_width: int = 0


class AttentionBlock(Description):
    """What every kind of attention answers."""

    @abstractmethod
    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """Return the weights of one layer."""

    @property
    @abstractmethod
    def cache(self) -> Cache:
        """What one layer keeps of a sequence."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The kind in a few words, for tables."""


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
    qkv_bias: Flag = False
    """Biases on the query, key and value projections."""
    output_bias: Flag = False
    """Bias on the output projection."""
    qk_norm: Literal["head", "full"] | None = None
    """Norms of queries and keys: one weight vector for all heads of head_dim elements, or one over all heads together."""
    sliding_window: Count | None = None
    """Tokens attended to, the query's own included."""
    attention_chunk_size: Count | None = None
    """Attention stays within chunks of this many tokens."""

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
        if self.sliding_window and self.attention_chunk_size:
            raise ValueError("sliding_window and attention_chunk_size exclude each other")
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
            return ChunkedSpan(self.attention_chunk_size)
        return FullSpan()

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`."""
        return Cache(width=self.kv_heads * (self.head_dim + self.value_dim), span=self.span)

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        if self.sliding_window:
            return f"{self.kind} window {self.sliding_window}"
        return f"{self.kind} chunk {self.attention_chunk_size}" if self.attention_chunk_size else self.kind

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden = Axis("hidden", hidden_size)
        n, k, h, v = self.num_attention_heads, self.kv_heads, self.head_dim, self.value_dim
        outer = (Axis("query_heads", n, h), Axis("kv_heads", k, h + v))
        tensors: list[Tensor | Vector] = [
            Tensor("qkv_proj", Role.ATTENTION, hidden, outer, bias=self.qkv_bias),
            Tensor("o_proj", Role.ATTENTION, Axis("query_heads", n, v), (hidden,), bias=self.output_bias),
        ]
        if self.qk_norm:
            norm = 2 * h if self.qk_norm == "head" else (n + k) * h
            tensors.append(Vector("qk_norm", Role.NORM, norm))
        return tuple(tensors)


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
    qk_rope_head_dim: Count
    """Elements with rotary embedding, shared by all heads."""
    v_head_dim: Count
    """Elements of a value."""
    attention_bias: Flag = False
    """Biases on the two down-projections and the output projection."""

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`. Independent of the number of heads."""
        return Cache(width=self.kv_lora_rank + self.qk_rope_head_dim)

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        return self.kind

    @property
    def qk_head_dim(self) -> int:
        """Elements of a query."""
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, rank = Axis("hidden", hidden_size), Axis("kv_rank", self.kv_lora_rank)
        n, role, bias = self.num_attention_heads, Role.ATTENTION, self.attention_bias
        queries = (Axis("query_heads", n, self.qk_head_dim),)
        tensors: list[Tensor | Vector] = []
        if self.q_lora_rank:
            q_rank = Axis("q_rank", self.q_lora_rank)
            tensors += [
                Tensor("q_a_proj", role, hidden, (q_rank,), bias=bias),
                Vector("q_a_layernorm", Role.NORM, self.q_lora_rank),
                Tensor("q_b_proj", role, q_rank, queries),
            ]
        else:
            tensors.append(Tensor("q_proj", role, hidden, queries))
        tensors += [
            Tensor("kv_a_proj", role, hidden, (rank, Axis("rope", self.qk_rope_head_dim)), bias=bias),
            Vector("kv_a_layernorm", Role.NORM, self.kv_lora_rank),
            Tensor("kv_b_proj", role, rank, (Axis("query_heads", n, self.qk_nope_head_dim + self.v_head_dim),)),
            Tensor("o_proj", role, Axis("query_heads", n, self.v_head_dim), (hidden,), bias=bias),
        ]
        return tuple(tensors)


AnyAttention = Annotated[SoftmaxAttention | LatentAttention, Field(discriminator="kind")]
