"""Bytes of weights and of KV cache, by named part, and what fits in a chip's memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planner.model import Cache, Model, Tensor, Vector
from planner.numeric import Numeric
from planner.op import FullSpan
from planner.precision import Precision, Role
from planner.units import Format


def stored_bytes(tensor: Tensor | Vector, precision: Precision) -> float:
    """Return the bytes of a stored tensor: matrices and vectors in the format of their role, biases in 16 or 32 bits [B]."""
    if isinstance(tensor, Vector):
        return tensor.parameters * precision.vector_scheme(tensor.role, tensor.name).weights.bytes_per_element
    scheme = precision.scheme(tensor.role, tensor.name)
    matrix = tensor.matrix_elements
    plain = tensor.parameters - matrix
    return matrix * scheme.weights.bytes_per_element + plain * precision.base.weights.bytes_per_element


def weight_bytes(model: Model, precision: Precision) -> Mapping[Role, float]:
    """Return the bytes of the weights that serve a model, by tensor class [B]: neither vision nor multi-token prediction."""
    parts: dict[Role, float] = {}
    for tensor, count in model.stored_tensors:
        parts[tensor.role] = parts.get(tensor.role, 0.0) + count * stored_bytes(tensor, precision)
    return parts


MTP, VISION = "mtp", "vision"
"""What a checkpoint holds beside the text model's tensor classes."""


def checkpoint_bytes(model: Model, precision: Precision) -> Mapping[str, float]:
    """Return the bytes that a checkpoint of a model takes, by tensor class [B].

    Beside the weights that serve the text model it holds modules for multi-token prediction, and towers and projectors for
    pictures and sound, which stay in 16 bits.
    """
    parts: dict[str, float] = {str(role): size for role, size in weight_bytes(model, precision).items()}
    extra = sum(count * stored_bytes(tensor, precision) for tensor, count in model.mtp_tensors())
    seen = (model.vision_parameters or 0) * precision.base.weights.bytes_per_element
    return parts | {name: size for name, size in ((MTP, extra), (VISION, seen)) if size}


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
    per_token: float = 0
    index: float = 0
    window, state = 0, 0
    for count, cache in _caches(model):
        if isinstance(cache.span, FullSpan):
            per_token += count * cache.width * cache.entries_per_token
        else:
            window += count * cache.width * int(cache.span.held(UNBOUNDED))
        state += count * cache.state_bytes
        index += count * cache.index_width * cache.entries_per_token
    size = kv.bytes_per_element
    return CacheBytes(per_token * size, window * size, state, index * size)


def _caches(model: Model) -> Iterator[tuple[int, Cache]]:
    """Yield the caches of a text model, with the number of layers that have them."""
    for kind in model.layer_kinds:
        if not kind.layer.needs_source:
            yield from ((kind.count, cache) for cache in kind.layer.caches)


UNBOUNDED = 10**18
"""More tokens than any sequence has: what a window holds of them is its ceiling."""


def sequence_bytes(model: Model, context: Numeric, kv: Format) -> Numeric:
    """Return the bytes that one sequence of `context` tokens keeps: KV cache, windows and state [B].

    A source that cross-attention reads counts with its own length where that is fixed, else as long as the context.
    """
    size: Numeric = 0
    source = (model.encoder.source_positions or context) if model.encoder else 0
    for count, cache in _caches(model):
        kept = cache.entries(context)
        held = cache.width * cache.span.held(kept) + cache.index_width * kept + cache.source_width * source
        size = size + count * (held * kv.bytes_per_element + cache.state_bytes)
    return size
