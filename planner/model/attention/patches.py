"""Attention between tokens and the patches that they are gathered in (byte latent transformer)."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.model.attention.base import STATE_BYTES, AttentionBlock, Cache
from planner.model.tensor import Count, Tensor, Vector
from planner.op import Axis
from planner.precision import Role


class PatchAttention(AttentionBlock):
    """Cross-attention within a patch (arXiv 2412.09871): its few vectors read its tokens, or its tokens read its few vectors."""

    kind: Literal["patch"]
    queries: Literal["patches", "tokens"]
    """What asks: the vectors of a patch (in the local encoder), or its tokens (in the local decoder)."""
    num_attention_heads: Count
    """Query heads."""
    num_key_value_heads: Count | None = None
    """Key-value heads; as many as query heads where not given."""
    head_dim: Count
    """Elements of a query, a key and a value."""
    vectors_per_patch: Count
    """Vectors that a patch is held in."""
    tokens_per_patch: Annotated[float, Field(strict=True, ge=1, le=10_000, allow_inf_nan=False)]
    """Tokens of a patch, in the mean."""

    @model_validator(mode="after")
    def _check(self) -> PatchAttention:
        if self.num_attention_heads % self.kv_heads:
            raise ValueError(
                f"num_attention_heads {self.num_attention_heads} is not a multiple of num_key_value_heads {self.kv_heads}"
            )
        return self

    @property
    def kv_heads(self) -> int:
        """Key-value heads."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def kept(self) -> int:
        """Keys that are kept: those of the patch at hand."""
        return self.vectors_per_patch if self.queries == "tokens" else math.ceil(self.tokens_per_patch)

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`: of constant size, since nothing outside the patch is read."""
        return Cache(state_bytes=2 * self.kv_heads * self.head_dim * self.kept * STATE_BYTES)

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        return f"{self.queries} in patch"

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, heads = Axis("hidden", hidden_size), Axis("query_heads", self.num_attention_heads, self.head_dim)
        return (
            Tensor("patch.q_proj", Role.ATTENTION, hidden, (heads,)),
            Tensor("patch.kv_proj", Role.ATTENTION, hidden, (Axis("kv_heads", self.kv_heads, 2 * self.head_dim),)),
            Tensor("patch.o_proj", Role.ATTENTION, heads, (hidden,)),
            Vector("patch.norms", Role.NORM, 2 * hidden_size),
        )
