"""Kinds with a state of constant size in place of a growing cache: linear attention, state spaces, gated recurrences."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

from pydantic import model_validator

from planner.model.attention.base import STATE_BYTES, AttentionBlock, Cache
from planner.model.tensor import Count, Tensor, Vector
from planner.op import Axis
from planner.precision import Role
from planner.sourced import Flag


class RecurrentBlock(AttentionBlock):
    """What recurrent kinds answer besides."""

    projected_in: ClassVar[tuple[str, ...]] = ("in_proj",)
    """The matrices among `tensors` whose results the recurrence reads."""
    projected_back: ClassVar[str] = "out_proj"
    """The matrix that its result is multiplied by."""

    @property
    @abstractmethod
    def state(self) -> Axis:
        """The recurrent state of a sequence: heads (or channels), and elements of each."""

    @property
    def convolved(self) -> Axis | None:
        """Channels that pass a short causal convolution before the recurrence; None where there is none."""
        return None

    @property
    def kernel(self) -> int:
        """Tokens that the convolution spans."""
        return 0

    @property
    def cache(self) -> Cache:
        """See `AttentionBlock.cache`: the state, and the last `kernel` inputs of the convolution."""
        channels = self.convolved.elements if self.convolved else 0
        return Cache(state_bytes=STATE_BYTES * (self.state.elements + channels * self.kernel))

    @property
    def label(self) -> str:
        """See `AttentionBlock.label`."""
        return str(getattr(self, "kind")).replace("_", " ")  # noqa: B009 - every kind has one, the base has not


class LightningAttention(RecurrentBlock):
    """Linear attention with a fixed decay for each head and an output gate (MiniMax-01, arXiv 2501.08313)."""

    kind: Literal["lightning"]
    num_attention_heads: Count
    """Heads of queries, keys and values."""
    head_dim: Count
    """Elements of each."""

    @property
    def state(self) -> Axis:
        """See `RecurrentBlock.state`."""
        return Axis("query_heads", self.num_attention_heads, self.head_dim**2)

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, role = Axis("hidden", hidden_size), Role.ATTENTION
        heads = Axis("query_heads", self.num_attention_heads, self.head_dim)
        return (
            Tensor("in_proj", role, hidden, (heads, heads, heads, heads)),
            Vector("norm", Role.NORM, heads.elements),
            Tensor("out_proj", role, heads, (hidden,)),
        )


class DeltaAttention(RecurrentBlock):
    """Linear attention by the gated delta rule (Gated DeltaNet, arXiv 2412.06464; Kimi Delta Attention, arXiv 2510.26692).

    `gated_delta` forgets by one number for each head, `kda` by one for each channel of a key.
    """

    kind: Literal["gated_delta", "kda"]
    num_key_heads: Count
    """Heads of queries and keys."""
    num_value_heads: Count
    """Heads of values, and of the state."""
    key_head_dim: Count
    """Elements of a query and of a key."""
    value_head_dim: Count
    """Elements of a value."""
    conv_kernel: Count
    """Tokens that the convolution of queries, keys and values spans."""
    decay_rank: Count | None = None
    """Rank of the projection to the decay, where it is low-rank."""
    gate_rank: Count | None = None
    """Rank of the projection to the output gate, where it is low-rank."""
    output_gate: Flag = True
    """The result is gated, element by element."""

    @property
    def state(self) -> Axis:
        """See `RecurrentBlock.state`."""
        return Axis("value_heads", self.num_value_heads, self.key_head_dim * self.value_head_dim)

    @property
    def convolved(self) -> Axis:
        """See `RecurrentBlock.convolved`."""
        keys, values = self.num_key_heads * self.key_head_dim, self.num_value_heads * self.value_head_dim
        return Axis("channels", 2 * keys + values)

    @property
    def kernel(self) -> int:
        """See `RecurrentBlock.kernel`."""
        return self.conv_kernel

    @property
    def decay(self) -> Axis:
        """What is forgotten at a rate of its own."""
        return Axis("value_heads", self.num_value_heads, self.key_head_dim if self.kind == "kda" else 1)

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, role = Axis("hidden", hidden_size), Role.ATTENTION
        keys = Axis("key_heads", self.num_key_heads, self.key_head_dim)
        values = Axis("value_heads", self.num_value_heads, self.value_head_dim)
        into = [keys, keys, values, Axis("value_heads", self.num_value_heads)]
        low: list[Tensor] = []
        gates = [("decay", self.decay, self.decay_rank)]
        gates += [("gate", values, self.gate_rank)] if self.output_gate else []
        for name, axis, rank in gates:
            if rank is None:
                into.append(axis)
            else:
                middle = Axis(f"{name}_rank", rank)
                low.append(Tensor(f"{name}_a_proj", role, hidden, (middle,)))
                low.append(Tensor(f"{name}_b_proj", role, middle, (axis,)))
        return (
            Tensor("in_proj", role, hidden, tuple(into)),
            *low,
            Vector("conv1d", Role.STATE, self.convolved.elements * self.conv_kernel),
            Vector("decay", Role.STATE, self.decay.elements + self.num_value_heads),
            Vector("norm", Role.NORM, self.value_head_dim),
            Tensor("out_proj", role, values, (hidden,)),
        )


class Mamba(RecurrentBlock):
    """A selective state space with a state for each channel (Mamba, arXiv 2312.00752)."""

    kind: Literal["mamba"]
    inner_size: Count
    """Channels."""
    state_size: Count
    """Elements of the state of a channel."""
    time_step_rank: Count
    """Rank of the projection to the time step."""
    conv_kernel: Count
    """Tokens that the convolution spans."""
    conv_bias: Flag = True
    """A bias for each channel of the convolution."""
    bias: Flag = False
    """Biases on the projections in and out."""
    inner_norms: Flag = False
    """Norms of the time step and of the two state projections (Jamba)."""
    num_heads: Count = 1
    """Heads that have projections to time step and state of their own (Zamba)."""
    time_steps: Count | None = None
    """Time steps, each with a decay, that are shared by as many channels as there are for each (PLaMo 2); null: a channel has its own."""

    @model_validator(mode="after")
    def _check(self) -> Mamba:
        if self.inner_size % self.num_heads:
            raise ValueError(f"inner_size {self.inner_size} is not a multiple of num_heads {self.num_heads}")
        if self.time_steps and (self.num_heads > 1 or self.inner_size % self.time_steps):
            raise ValueError(
                f"time_steps {self.time_steps} is not a divisor of inner_size, or there are several num_heads"
            )
        return self

    @property
    def state(self) -> Axis:
        """See `RecurrentBlock.state`."""
        return Axis("channels", self.inner_size, self.state_size)

    @property
    def convolved(self) -> Axis:
        """See `RecurrentBlock.convolved`."""
        return Axis("channels", self.inner_size)

    @property
    def kernel(self) -> int:
        """See `RecurrentBlock.kernel`."""
        return self.conv_kernel

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, role, n = Axis("hidden", hidden_size), Role.ATTENTION, self.inner_size
        channels, rank = Axis("channels", n), Axis("time_step_rank", self.time_step_rank)
        heads, each = Axis("channel_groups", self.num_heads), Axis("channels", n // self.num_heads)
        selective = (rank, Axis("state", 2 * self.state_size))
        norms = self.time_step_rank + 2 * self.state_size if self.inner_norms else 0
        steps, own = each, n * (self.state_size + 1)
        if self.time_steps:
            steps, own = Axis("channels", self.time_steps), 2 * self.time_steps
        return (
            Tensor("in_proj", role, hidden, (channels, channels), bias=self.bias),
            Vector("conv1d", Role.STATE, n * (self.conv_kernel + self.conv_bias)),
            Tensor("x_proj", role, each, selective, copies=heads),
            Tensor("dt_proj", role, rank, (steps,), bias=True, copies=heads),
            Vector("state", Role.STATE, own),
            Vector("norms", Role.NORM, norms),
            Tensor("out_proj", role, channels, (hidden,), bias=self.bias),
        )


class Mamba2(RecurrentBlock):
    """A state space with heads and one decay for each (Mamba-2, arXiv 2405.21060)."""

    kind: Literal["mamba2"]
    num_heads: Count
    """Heads."""
    head_dim: Count
    """Channels of a head."""
    n_groups: Count
    """Groups of heads that share the projections into and out of the state."""
    state_size: Count
    """Elements of the state of a channel."""
    conv_kernel: Count
    """Tokens that the convolution spans."""
    conv_bias: Flag = True
    """A bias for each channel of the convolution."""
    bias: Flag = False
    """Biases on the projections in and out."""
    output_bias: Flag | None = None
    """A bias on the projection out, where it differs from `bias`."""
    gated_norm: Flag = True
    """A norm with weights of the gated result."""

    @property
    def state(self) -> Axis:
        """See `RecurrentBlock.state`."""
        return Axis("mamba_heads", self.num_heads, self.head_dim * self.state_size)

    @property
    def convolved(self) -> Axis:
        """See `RecurrentBlock.convolved`."""
        return Axis("channels", self.num_heads * self.head_dim + 2 * self.n_groups * self.state_size)

    @property
    def kernel(self) -> int:
        """See `RecurrentBlock.kernel`."""
        return self.conv_kernel

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, role = Axis("hidden", hidden_size), Role.ATTENTION
        heads = Axis("mamba_heads", self.num_heads, self.head_dim)
        groups, steps = Axis("mamba_groups", self.n_groups, 2 * self.state_size), Axis("mamba_heads", self.num_heads)
        return (
            Tensor("in_proj", role, hidden, (heads, heads, groups, steps), bias=self.bias),
            Vector("conv1d", Role.STATE, self.convolved.elements * (self.conv_kernel + self.conv_bias)),
            Vector("state", Role.STATE, 3 * self.num_heads),
            Vector("norm", Role.NORM, heads.elements if self.gated_norm else 0),
            Tensor(
                "out_proj", role, heads, (hidden,), bias=self.bias if self.output_bias is None else self.output_bias
            ),
        )


class ShortConvolution(RecurrentBlock):
    """A gated convolution over a few tokens (LFM2)."""

    kind: Literal["short_conv"]
    conv_kernel: Count
    """Tokens that the convolution spans."""
    channels: Count
    """Channels: the hidden size."""
    bias: Flag = False
    """Biases on both projections and on the convolution."""

    @property
    def state(self) -> Axis:
        """See `RecurrentBlock.state`: none but the convolution's."""
        return Axis("channels", 0)

    @property
    def convolved(self) -> Axis:
        """See `RecurrentBlock.convolved`."""
        return Axis("channels", self.channels)

    @property
    def kernel(self) -> int:
        """See `RecurrentBlock.kernel`."""
        return self.conv_kernel

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, role, channels = Axis("hidden", hidden_size), Role.ATTENTION, self.convolved
        return (
            Tensor("in_proj", role, hidden, (channels, channels, channels), bias=self.bias),
            Vector("conv", Role.STATE, self.channels * (self.conv_kernel + self.bias)),
            Tensor("out_proj", role, channels, (hidden,), bias=self.bias),
        )


class GatedRecurrence(RecurrentBlock):
    """The real-gated linear recurrent unit of Griffin (arXiv 2402.19427), as in RecurrentGemma."""

    kind: Literal["rg_lru"]
    lru_width: Count
    """Channels."""
    num_heads: Count
    """Blocks of channels that the gates mix within."""
    conv_kernel: Count
    """Tokens that the convolution spans."""

    @model_validator(mode="after")
    def _check(self) -> GatedRecurrence:
        if self.lru_width % self.num_heads:
            raise ValueError(f"lru_width {self.lru_width} is not a multiple of num_heads {self.num_heads}")
        return self

    @property
    def state(self) -> Axis:
        """See `RecurrentBlock.state`."""
        return Axis("channels", self.lru_width)

    @property
    def convolved(self) -> Axis:
        """See `RecurrentBlock.convolved`."""
        return Axis("channels", self.lru_width)

    @property
    def kernel(self) -> int:
        """See `RecurrentBlock.kernel`."""
        return self.conv_kernel

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, role, w = Axis("hidden", hidden_size), Role.ATTENTION, self.lru_width
        channels, block = Axis("channels", w), Axis("block", w // self.num_heads)
        return (
            Tensor("in_proj", role, hidden, (channels, channels), bias=True),
            Vector("conv_1d", Role.STATE, w * (self.conv_kernel + 1)),
            Vector("recurrent_param", Role.STATE, w),
            Tensor("gates", role, block, (block, block), bias=True, copies=Axis("blocks", self.num_heads)),
            Tensor("out_proj", role, channels, (hidden,), bias=True),
        )


class MatrixLstm(RecurrentBlock):
    """The matrix memory of xLSTM (arXiv 2405.04517), as in xLSTM-7B (arXiv 2503.13427)."""

    kind: Literal["mlstm"]
    num_heads: Count
    """Heads."""
    qk_head_dim: Count
    """Elements of a query and of a key."""
    v_head_dim: Count
    """Elements of a value."""
    bias: Flag = False
    """Biases on the projections (the two gates of a head always have one)."""

    @property
    def state(self) -> Axis:
        """See `RecurrentBlock.state`: the matrix, its normaliser, and the running maximum."""
        return Axis("query_heads", self.num_heads, self.qk_head_dim * (self.v_head_dim + 1) + 1)

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `AttentionBlock.tensors`."""
        hidden, role, n = Axis("hidden", hidden_size), Role.ATTENTION, self.num_heads
        keys, values = Axis("query_heads", n, self.qk_head_dim), Axis("query_heads", n, self.v_head_dim)
        return (
            Tensor("in_proj", role, hidden, (keys, keys, values, values), bias=self.bias),
            Tensor("gates", role, hidden, (Axis("query_heads", n), Axis("query_heads", n)), bias=True),
            Vector("norm", Role.NORM, values.elements * (1 + self.bias)),
            Tensor("out_proj", role, values, (hidden,), bias=self.bias),
        )
