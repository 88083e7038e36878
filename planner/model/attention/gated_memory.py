"""A gate on what an earlier layer's recurrence gave: the cheap half of a decoder that shares its memory (SambaY)."""

from __future__ import annotations

from typing import Literal

from planner.model.attention.base import AttentionBlock, Cache
from planner.model.tensor import Count, Tensor, Vector
from planner.op import Axis
from planner.precision import Role


class GatedMemory(AttentionBlock):
    """A gated memory unit (arXiv 2507.06607): an earlier layer's result of its recurrence, gated by the token, keeps no state of its own."""

    kind: Literal["gated_memory"]
    inner_size: Count
    """Channels of the earlier layer's result."""

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`: none."""
        return Cache()

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        return "gated memory"

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, channels = Axis("hidden", hidden_size), Axis("channels", self.inner_size)
        return (
            Tensor("in_proj", Role.ATTENTION, hidden, (channels,)),
            Tensor("out_proj", Role.ATTENTION, channels, (hidden,)),
        )
