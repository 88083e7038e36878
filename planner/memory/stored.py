"""Bytes of weights and of KV cache, by named part, and what fits in a chip's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.model import Model, Tensor, Vector
from planner.op import FullSpan
from planner.precision import Precision, Role
from planner.units import Format, Numeric


def stored_bytes(tensor: Tensor | Vector, precision: Precision) -> float:
    """Return the bytes of a stored tensor: matrices in the format of their role, biases and vectors in 16 or 32 bits [B]."""
    matrix = tensor.matrix_elements
    plain = tensor.parameters - matrix
    scheme = precision.scheme(tensor.role)
    return matrix * scheme.weights.bytes_per_element + plain * precision.base.weights.bytes_per_element


def weight_bytes(model: Model, precision: Precision) -> Mapping[Role, float]:
    """Return the bytes of the weights of a model, by tensor class [B]."""
    parts: dict[Role, float] = {}
    stored = [(tensor, 1) for tensor in model.outer_tensors()]
    stored += [(tensor, kind.count) for kind in model.layer_kinds for tensor in kind.tensors(model)]
    for tensor, count in stored:
        parts[tensor.role] = parts.get(tensor.role, 0.0) + count * stored_bytes(tensor, precision)
    return parts


@dataclass(frozen=True, slots=True)
class CacheBytes:
    """What a model keeps of one sequence.

    Attributes
    ----------
    per_token : float
        For each token, in layers whose cache grows with every token [B].
    window : float
        Ceiling of the layers whose cache stops growing [B].
    state : int
        Recurrent state [B].
    index_per_token : float
        Keys of a sparse-attention indexer, for each token [B].
    """

    per_token: float
    window: float
    state: int
    index_per_token: float


def cache_bytes(model: Model, kv: Format) -> CacheBytes:
    """Return what a model keeps of one sequence, by the way it grows."""
    per_token, window, state, index = 0, 0, 0, 0
    for kind in model.layer_kinds:
        if kind.layer.attention is None:
            continue
        cache = kind.layer.attention.cache
        if isinstance(cache.span, FullSpan):
            per_token += kind.count * cache.width
        else:
            window += kind.count * cache.width * int(cache.span.held(UNBOUNDED))
        state += kind.count * cache.state_bytes
        index += kind.count * cache.index_width
    size = kv.bytes_per_element
    return CacheBytes(per_token * size, window * size, state, index * size)


UNBOUNDED = 10**18
"""More tokens than any sequence has: what a window holds of them is its ceiling."""


def sequence_bytes(model: Model, context: Numeric, kv: Format) -> Numeric:
    """Return the bytes that one sequence of `context` tokens keeps: KV cache, windows and state [B]."""
    size: Numeric = 0
    for kind in model.layer_kinds:
        if kind.layer.attention is not None:
            cache = kind.layer.attention.cache
            held = cache.width * cache.span.held(context) + cache.index_width * context
            size = size + kind.count * (held * kv.bytes_per_element + cache.state_bytes)
    return size
