"""Parameters of the layers that towers are built from: whole numbers, weights and offsets together."""

from __future__ import annotations

from math import prod


def linear(inputs: int, outputs: int, *, bias: bool = True) -> int:
    """Return the parameters of a matrix, and of an offset for each output.

    >>> linear(3, 4)
    16
    """
    return (inputs + bias) * outputs


def norm(width: int, *, bias: bool = True) -> int:
    """Return the parameters of a norm: a weight for each element, and an offset where it is a layer norm with one.

    >>> norm(8), norm(8, bias=False)
    (16, 8)
    """
    return (1 + bias) * width


def convolution(inputs: int, outputs: int, *kernel: int, bias: bool = True, groups: int = 1) -> int:
    """Return the parameters of a convolution; `kernel` has a size for each dimension, `groups` share the channels out.

    >>> convolution(3, 8, 14, 14, bias=False)
    4704
    """
    return (inputs // groups * prod(kernel) + bias) * outputs


def mlp(width: int, inner: int, *, gated: bool = False, bias: bool = True, outputs: int | None = None) -> int:
    """Return the parameters of a feed-forward network: up, down, and a gate where it has one.

    >>> mlp(4, 16, bias=False), mlp(4, 16, gated=True, bias=False)
    (128, 192)
    """
    return (1 + gated) * linear(width, inner, bias=bias) + linear(inner, outputs or width, bias=bias)


def attention(
    width: int, *, inner: int | None = None, kv: int | None = None, source: int | None = None, bias: bool = True
) -> int:
    """Return the parameters of query, key, value and output matrices.

    Parameters
    ----------
    width : int
        Elements of the input and of the output.
    inner : int, optional
        Elements of all query heads; `width` where None.
    kv : int, optional
        Elements of all key heads; `inner` where None.
    source : int, optional
        Elements of what keys and values are made from; `width` where None.
    bias : bool
        Each of the four has offsets.

    >>> attention(8, bias=False)
    256
    """
    inner = inner or width
    kv, source = kv or inner, source or width
    return linear(width, inner, bias=bias) + 2 * linear(source, kv, bias=bias) + linear(inner, width, bias=bias)


def block(width: int, inner: int, *, gated: bool = False, bias: bool = True, norm_bias: bool = True) -> int:
    """Return the parameters of a plain encoder layer: two norms, attention of the full width, a feed-forward network.

    >>> block(8, 32)
    872
    """
    return 2 * norm(width, bias=norm_bias) + attention(width, bias=bias) + mlp(width, inner, gated=gated, bias=bias)
