"""Embeddings of n-grams that a layer mixes into its residual streams (Qwen 4, experimental)."""

from __future__ import annotations

from typing import Literal

from planner.model.attention.base import STATE_BYTES, AttentionBlock, Cache
from planner.model.tensor import Count, Tensor, Vector
from planner.op import Axis
from planner.precision import Role


class NgramMemory(AttentionBlock):
    """What a layer makes of the rows that a token's n-grams look up: keys that gate them, and a dilated convolution over the tokens."""

    kind: Literal["ngram"]
    embedding_size: Count
    """Elements of all rows that a token looks up."""
    width: Count
    """Channels: of all residual streams."""
    conv_kernel: Count
    """Tokens that the convolution spans."""
    ngram_size: Count
    """Tokens of the longest n-gram, and steps between the tokens that the convolution reads."""

    @property
    def convolved(self) -> Axis:
        """Channels of the convolution."""
        return Axis("streams", self.width)

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`: the inputs that the convolution will still read, and the tokens before."""
        inputs = (self.conv_kernel - 1) * self.ngram_size * self.width
        return Cache(state_bytes=STATE_BYTES * (inputs + self.ngram_size - 1))

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        return f"{self.ngram_size}-grams"

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        rows, hidden = Axis("embedding", self.embedding_size), Axis("hidden", hidden_size)
        return (
            Tensor("ngram.key_proj", Role.ATTENTION, rows, (Axis("streams", self.width),)),
            Tensor("ngram.value_proj", Role.ATTENTION, rows, (hidden,)),
            Vector("ngram.conv1d", Role.STATE, self.width * self.conv_kernel),
            Vector("ngram.norms", Role.NORM, 3 * self.width),
        )
