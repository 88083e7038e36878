"""Readers of recurrent kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.parts.basics import Fact, build, count, flag
from planner.model import (
    DeltaAttention,
    GatedRecurrence,
    LightningAttention,
    Mamba,
    Mamba2,
    MatrixLstm,
    Rwkv,
    ShortConvolution,
)


def gated_delta(config: Config, index: int) -> DeltaAttention:  # the signature of every reader
    """Read gated delta attention under Qwen's field names."""
    return build(
        config,
        DeltaAttention,
        kind="gated_delta",
        num_key_heads=config.integer("linear_num_key_heads"),
        num_value_heads=config.integer("linear_num_value_heads"),
        key_head_dim=config.integer("linear_key_head_dim"),
        value_head_dim=config.integer("linear_value_head_dim"),
        conv_kernel=config.integer("linear_conv_kernel_dim"),
    )


def lightning(config: Config, index: int) -> LightningAttention:
    """Read lightning attention: heads like those of softmax attention."""
    heads = config.integer("num_attention_heads")
    dim = config.optional("head_dim") or config.integer("hidden_size") // heads
    return build(config, LightningAttention, kind="lightning", num_attention_heads=heads, head_dim=max(dim, 1))


def time_step_rank(config: Config, field: str) -> int:
    """Return the rank of the time step: a number, or a sixteenth of the hidden size."""
    if config.get(field) in (None, "auto"):
        return math.ceil(config.integer("hidden_size") / 16)
    return config.integer(field)


def mamba(
    prefix: str = "", *, inner_norms: bool = False, bias: Fact = "use_bias", heads: Fact = 1
) -> Callable[[Config, int], Mamba]:
    """Return a reader of Mamba, under the field names of Mamba or, with the prefix ``mamba_``, of Jamba."""
    names = ("mamba_expand", "mamba_d_state", "mamba_d_conv", "mamba_dt_rank", "mamba_conv_bias")
    plain = ("expand", "state_size", "conv_kernel", "time_step_rank", "use_conv_bias")
    expand, state, kernel, rank, conv_bias = names if prefix else plain

    def read(config: Config, index: int) -> Mamba:
        return build(
            config,
            Mamba,
            kind="mamba",
            inner_size=int(config.real(expand, 2) * config.integer("hidden_size")),
            state_size=config.integer(state),
            time_step_rank=time_step_rank(config, rank),
            conv_kernel=config.integer(kernel),
            conv_bias=config.flag(conv_bias, default=True),
            bias=flag(config, bias),
            inner_norms=inner_norms,
            num_heads=count(config, heads) or 1,
        )

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2Reader:
    """A reader of Mamba-2: the names of its fields, and what is a fact of the architecture.

    Attributes
    ----------
    head_dim : callable
        Returns the channels of a head.
    heads, groups, state, kernel : str
        The fields that state them.
    conv_bias, bias, output_bias, gated_norm : Fact
        See `planner.model.Mamba2`.
    """

    head_dim: Callable[[Config], int]
    heads: str = "mamba_n_heads"
    groups: str = "mamba_n_groups"
    state: str = "mamba_d_state"
    kernel: str = "mamba_d_conv"
    conv_bias: Fact = "mamba_conv_bias"
    bias: Fact = "mamba_proj_bias"
    output_bias: Fact = None
    gated_norm: Fact = True

    def __call__(self, config: Config, index: int) -> Mamba2:  # the signature of every reader
        """Read one layer's mixer."""
        return build(
            config,
            Mamba2,
            kind="mamba2",
            num_heads=config.integer(self.heads),
            head_dim=self.head_dim(config),
            n_groups=config.integer(self.groups),
            state_size=config.integer(self.state),
            conv_kernel=config.integer(self.kernel),
            conv_bias=flag(config, self.conv_bias),
            bias=flag(config, self.bias),
            output_bias=None if self.output_bias is None else flag(config, self.output_bias),
            gated_norm=flag(config, self.gated_norm),
        )


def expanded(
    heads: str, dim: str | None = None, expand: str = "mamba_expand", inner: str | None = None
) -> Callable[[Config], int]:
    """Return a reader of the head dimension: the field `dim`, or the expanded hidden size shared out over the heads."""

    def read(config: Config) -> int:
        if dim is not None and config.get(dim) not in (None, "auto"):
            return config.integer(dim)
        stated = config.optional(inner) if inner else None
        size = stated or int(config.real(expand, 2) * config.integer("hidden_size"))
        return max(size // config.integer(heads), 1)

    return read


def short_convolution(config: Config, index: int) -> ShortConvolution:
    """Read LFM2's short convolution."""
    return build(
        config,
        ShortConvolution,
        kind="short_conv",
        channels=config.integer("hidden_size"),
        conv_kernel=config.integer("conv_L_cache"),
        bias=config.flag("conv_bias", default=False),
    )


def gated_recurrence(config: Config, index: int) -> GatedRecurrence:
    """Read RecurrentGemma's recurrent block."""
    return build(
        config,
        GatedRecurrence,
        kind="rg_lru",
        lru_width=config.optional("lru_width") or config.integer("hidden_size"),
        num_heads=config.integer("num_attention_heads"),
        conv_kernel=config.integer("conv1d_width"),
    )


def kimi_delta(heads: str, dim: str, kernel: str, *, low_rank: bool = True) -> Callable[[Config, int], DeltaAttention]:
    """Return a reader of Kimi Delta Attention; its decay and its gate are low-rank, or projected in one step."""

    def read(config: Config, index: int) -> DeltaAttention:
        number = config.integer(heads)
        size = config.optional("linear_head_dim") or config.integer(dim)
        return build(
            config,
            DeltaAttention,
            kind="kda",
            num_key_heads=number,
            num_value_heads=number,
            key_head_dim=size,
            value_head_dim=size,
            conv_kernel=config.integer(kernel),
            decay_rank=size if low_rank else None,
            gate_rank=size if low_rank else None,
        )

    return read


def matrix_lstm(config: Config, index: int) -> MatrixLstm:
    """Read xLSTM's matrix memory: heads share out a fraction of the hidden size."""
    heads, hidden = config.integer("num_heads"), config.integer("hidden_size")
    keys, values = int(hidden * config.real("qk_dim_factor", 0.5)), int(hidden * config.real("v_dim_factor", 1.0))
    if keys % heads or values % heads:
        config.fault(
            "num_heads", f"{heads} does not divide the {keys} elements of all keys, or the {values} of all values"
        )
    return build(
        config,
        MatrixLstm,
        kind="mlstm",
        num_heads=heads,
        qk_head_dim=max(keys // heads, 1),
        v_head_dim=max(values // heads, 1),
        bias=config.flag("use_bias", default=False),
    )


def rwkv(config: Config, index: int) -> Rwkv:
    """Read RWKV-4's time mixing."""
    hidden = config.integer("hidden_size")
    size = config.optional("attention_hidden_size") or hidden
    return build(config, Rwkv, kind="rwkv", hidden_size=hidden, attention_size=size)
