"""Readers of softmax attention, and of the windows that it looks through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.parts.basics import Fact, Rule, build, count, flag
from planner.model import CrossAttention, SoftmaxAttention

WindowReader = Callable[[Config, int], int | None]
Overrides = Callable[[Config, int], dict[str, Any]]


# ---- windows ---------------------------------------------------------------------------------------------------------


def no_window(config: Config, index: int) -> int | None:  # the signature of every window reader
    """Every layer attends to everything."""
    return None


def window_everywhere(config: Config, index: int) -> int | None:
    """`sliding_window` holds for every layer, null or 0 for none."""
    return config.optional("sliding_window", least=0) or None


def window_on(kind_of: Rule, field: str = "sliding_window") -> WindowReader:
    """Return a window reader: layers of kind `sliding_attention` look through `field`."""

    def read(config: Config, index: int) -> int | None:
        window = config.optional(field, least=0) or None
        return window if kind_of(config, index) == "sliding_attention" else None

    return read


def window_if_used(kind_of: Rule) -> WindowReader:
    """Return a window reader for Qwen: `use_sliding_window` must be true."""

    def read(config: Config, index: int) -> int | None:
        if not config.flag("use_sliding_window", default=False):
            config.mark("sliding_window", "max_window_layers", "layer_types")
            return None
        window = config.optional("sliding_window", least=0) or None
        config.mark("max_window_layers", "layer_types")
        return window if kind_of(config, index) == "sliding_attention" else None

    return read


def after_first_full(config: Config, index: int) -> str:
    """Qwen: the first `max_window_layers` layers attend to everything."""
    first = config.integer("max_window_layers", 28, least=0)
    return "sliding_attention" if index >= first else "full_attention"


# ---- shapes ----------------------------------------------------------------------------------------------------------


def softmax_kind(heads: int, kv_heads: int) -> Literal["mha", "mqa", "gqa"]:
    """Return the name of the sharing of KV heads."""
    if kv_heads == heads:
        return "mha"
    return "mqa" if kv_heads == 1 else "gqa"


def head_dim(config: Config, heads: int, field: str = "head_dim") -> int:
    """Return `head_dim`, or the hidden size shared out over the heads."""
    stated = config.optional(field)
    return shared_out(config, heads) if stated is None else stated


def shared_out(config: Config, heads: int) -> int:
    """Return the hidden size shared out over the heads."""
    hidden = config.integer("hidden_size")
    if hidden % heads:
        config.conflict(
            "num_attention_heads", f"{heads} does not divide hidden_size {hidden}, and head_dim is not given"
        )
        return 1
    return hidden // heads


def heads_of(config: Config, heads_field: str, kv_field: str) -> tuple[int, int]:
    """Return query heads and KV heads; as many where the latter are not given."""

    def read() -> tuple[int, int]:
        heads = config.integer(heads_field)
        kv_heads = config.optional(kv_field) or heads
        if heads % kv_heads:
            config.conflict(kv_field, f"{kv_heads} does not divide {config.name(heads_field)} {heads}")
            kv_heads = heads
        return heads, kv_heads

    return config.derived(("heads", heads_field, kv_field), read)


# ---- attention -------------------------------------------------------------------------------------------------------


def softmax(
    *,
    window: WindowReader = no_window,
    bias: Fact = False,
    output_bias: Fact = False,
    qk_norm: str | Callable[[Config, int], str | None] | None = None,
    heads: str = "num_attention_heads",
    derived_dim: bool = False,
    more: Overrides | None = None,
) -> Callable[[Config, int], SoftmaxAttention]:
    """Return a reader of softmax attention.

    Parameters
    ----------
    window : WindowReader
        How far a layer looks.
    bias, output_bias : Fact
        Biases of queries, keys and values, and of the output.
    qk_norm : str or callable, optional
        See `planner.model.SoftmaxAttention`.
    heads : str
        The field that counts query heads.
    derived_dim : bool
        The head dimension is always the hidden size shared out, whatever the file says.
    more : callable, optional
        Returns further fields of the block, which prevail.
    """

    def read(config: Config, index: int) -> SoftmaxAttention:
        def shape() -> dict[str, Any]:
            n, k = heads_of(config, heads, "num_key_value_heads")
            dim = shared_out(config, n) if derived_dim else head_dim(config, n)
            return {
                "num_attention_heads": n,
                "num_key_value_heads": k,
                "head_dim": dim,
                "qkv_bias": flag(config, bias),
                "output_bias": flag(config, output_bias),
            }

        fields = dict(config.derived(("softmax", read), shape))
        fields["qk_norm"] = qk_norm(config, index) if callable(qk_norm) else qk_norm
        fields["sliding_window"] = window(config, index)
        if more is not None:
            fields |= more(config, index)
        fields["kind"] = softmax_kind(fields["num_attention_heads"], fields["num_key_value_heads"])
        return build(config, SoftmaxAttention, **fields)

    return read


def fixed(**fields: Any) -> Overrides:
    """Return overrides that hold for every layer; a callable among them is asked for each."""

    def read(config: Config, index: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, fact in fields.items():
            found[name] = fact(config, index) if callable(fact) else fact
        return found

    return read


def cross(
    *,
    heads: str = "decoder_attention_heads",
    bias: Fact = True,
    key_bias: bool = True,
    output_bias: Fact = None,
    dim: Fact = None,
) -> Callable[[Config, int], CrossAttention]:
    """Return a reader of cross-attention; its output has biases where its projections have."""

    def read(config: Config, index: int) -> CrossAttention:
        n = config.integer(heads)
        return build(
            config,
            CrossAttention,
            kind="cross",
            num_attention_heads=n,
            head_dim=count(config, dim, index) or shared_out(config, n),
            qkv_bias=flag(config, bias),
            key_bias=key_bias,
            output_bias=flag(config, bias if output_bias is None else output_bias),
        )

    return read
