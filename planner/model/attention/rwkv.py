"""RWKV: recurrences whose inputs are mixed with those of the token before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import model_validator

from planner.model.attention.recurrent import RecurrentBlock
from planner.model.tensor import Count, Tensor, Vector
from planner.op import Axis
from planner.precision import Role
from planner.sourced import Flag

INPUTS = 5
"""Inputs of RWKV-6 that are mixed by maps of low rank: of decay, keys, values, receptance and gate."""


class Rwkv(RecurrentBlock):
    """Time mixing of RWKV-4 (arXiv 2305.13048)."""

    kind: Literal["rwkv"]
    hidden_size: Count
    """Elements of the residual stream, the last of which are kept for this block and for the feed-forward network."""
    attention_size: Count
    """Channels."""

    @property
    def state(self) -> Axis:
        """See `RecurrentBlock.state`: numerator, denominator and maximum of a channel, and the last inputs of both halves of the layer."""
        return Axis("channels", 3 * self.attention_size + 2 * self.hidden_size)

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, role, channels = Axis("hidden", hidden_size), Role.ATTENTION, Axis("channels", self.attention_size)
        return (
            Tensor("in_proj", role, hidden, (channels, channels, channels)),
            Vector("time_mix", Role.STATE, 3 * hidden_size + 2 * self.attention_size),
            Tensor("out_proj", role, channels, (hidden,)),
        )


class _MatrixState(RecurrentBlock):
    """What RWKV-5 to 7 have in common: a matrix for each head, and inputs mixed with those of the token before."""

    hidden_size: Count
    """Elements of the residual stream."""
    num_heads: Count
    """Heads."""
    key_head_dim: Count
    """Elements of a receptance (query) and of a key."""
    value_head_dim: Count
    """Elements of a value."""
    shifted_inputs: Count = 2
    """Inputs of the token before that are kept: this block's, and the feed-forward network's where that mixes them too."""

    @property
    def state(self) -> Axis:
        """See `RecurrentBlock.state`."""
        return Axis("query_heads", self.num_heads, self.key_head_dim * self.value_head_dim)

    @property
    def convolved(self) -> Axis:
        """See `RecurrentBlock.convolved`: the mixture with the token before is a convolution over two tokens, on every chip alike."""
        return Axis("hidden", self.shifted_inputs * self.hidden_size)

    @property
    def kernel(self) -> int:
        """See `RecurrentBlock.kernel`: one earlier token is kept."""
        return 1

    @property
    def _keys(self) -> Axis:
        return Axis("query_heads", self.num_heads, self.key_head_dim)

    @property
    def _values(self) -> Axis:
        return Axis("query_heads", self.num_heads, self.value_head_dim)


def _low_rank(name: str, hidden: Axis, rank: int, to: Axis, *, bias: bool) -> Iterator[Tensor]:
    middle = Axis(f"{name}_rank", rank)
    yield Tensor(f"{name}_a_proj", Role.ATTENTION, hidden, (middle,))
    yield Tensor(f"{name}_b_proj", Role.ATTENTION, middle, (to,), bias=bias)


class RwkvMatrix(_MatrixState):
    """Time mixing of RWKV-5 and 6 (arXiv 2404.05892); in 6 the mixtures and the decay depend on the token."""

    kind: Literal["rwkv5", "rwkv6"]
    num_key_value_heads: Count | None = None
    """Heads of keys and values, each for a group of heads (RWKV6-Qwen2); as many as heads where not given."""
    mix_rank: Count | None = None
    """Rank of each map from the token to how an input is mixed; RWKV-6 alone."""
    decay_rank: Count | None = None
    """Rank of the map from the token to the decay; RWKV-6 alone."""
    qkv_bias: Flag = False
    """Biases on receptance, keys and values."""
    bonus: Flag = True
    """The token at hand counts with a weight of its own for each channel."""
    output_norm: Flag = True
    """A norm of the result."""

    @model_validator(mode="after")
    def _check(self) -> RwkvMatrix:
        if (self.kind == "rwkv6") != bool(self.mix_rank and self.decay_rank):
            raise ValueError("mix_rank and decay_rank belong to rwkv6, which needs both")
        if self.num_heads % (self.num_key_value_heads or 1):
            raise ValueError(
                f"num_heads {self.num_heads} is not a multiple of num_key_value_heads {self.num_key_value_heads}"
            )
        return self

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, keys, values = Axis("hidden", hidden_size), self._keys, self._values
        shared = self.num_key_value_heads or self.num_heads
        pairs = Axis("kv_heads", shared, self.key_head_dim + self.value_head_dim)
        biases = keys.elements + pairs.elements if self.qkv_bias else 0
        # RWKV-6 mixes its input once more, before the maps that say how to mix it; a bias on the decay's map is the decay itself.
        mixes, own = (INPUTS + 1, keys.elements) if self.mix_rank else (INPUTS - 1, 2 * keys.elements)
        if not self.bonus:
            own -= keys.elements
        return (
            Tensor("in_proj", Role.ATTENTION, hidden, (keys, pairs, values)),
            *self._maps(hidden),
            Vector("rkv.bias", Role.ATTENTION, biases),
            Vector("mixes", Role.STATE, mixes * hidden_size),
            Vector("decay", Role.STATE, own),
            Vector("norm", Role.NORM, 2 * values.elements if self.output_norm else 0),
            Tensor("out_proj", Role.ATTENTION, values, (hidden,)),
        )

    def _maps(self, hidden: Axis) -> Iterator[Tensor]:
        if self.mix_rank and self.decay_rank:
            rank, each = Axis("mix_rank", self.mix_rank), Axis("mixes", INPUTS)
            yield Tensor("mix_a_proj", Role.ATTENTION, hidden, (Axis("mixes", INPUTS, self.mix_rank),))
            yield Tensor("mix_b_proj", Role.ATTENTION, rank, (hidden,), copies=each)
            yield from _low_rank("decay", hidden, self.decay_rank, self._keys, bias=True)


class Rwkv7(_MatrixState):
    """Time mixing of RWKV-7 (arXiv 2503.14456): a delta rule with a learning rate for each channel."""

    kind: Literal["rwkv7"]
    decay_rank: Count
    """Rank of the map to the decay."""
    rate_rank: Count
    """Rank of the map to the in-context learning rate."""
    gate_rank: Count
    """Rank of the map to the gate on the result."""
    value_rank: Count | None = None
    """Rank of the map that mixes values with those of the first layer; null in the first layer."""

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, keys, values = Axis("hidden", hidden_size), self._keys, self._values
        residual = _low_rank("value", hidden, self.value_rank, values, bias=True) if self.value_rank else ()
        return (
            Tensor("in_proj", Role.ATTENTION, hidden, (keys, keys, values)),
            *_low_rank("decay", hidden, self.decay_rank, keys, bias=True),
            *_low_rank("rate", hidden, self.rate_rank, keys, bias=True),
            *_low_rank("gate", hidden, self.gate_rank, values, bias=False),
            *residual,
            Vector("mixes", Role.STATE, 6 * hidden_size),
            Vector("keys", Role.STATE, 3 * keys.elements),
            Vector("norm", Role.NORM, 2 * values.elements),
            Tensor("out_proj", Role.ATTENTION, values, (hidden,)),
        )
