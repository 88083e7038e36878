"""What one chip of each pipeline stage holds: weights once, and the rest for each token and sequence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from planner.engine import Engine
from planner.memory.stored import stored_bytes
from planner.model import AttentionBlock, Model, RecurrentBlock, Tensor, Vector
from planner.numeric import Numeric, maximum, minimum, summed
from planner.op import Collective, Divide, Kind, Matmul, Op, Span
from planner.parallel import Layout, Stage, distinct, divide_up, divider, pipeline, shard_stage, stages
from planner.precision import Precision, Role
from planner.workload import Phase, Step

Held = tuple[Tensor | Vector, int]
"""A weight, with the number of layers that it is in."""


def _held(model: Model, stage: Stage) -> Iterator[Held]:
    """Yield the weights of a stage; a head tied to the embedding is stored twice where stages part them."""
    if stage.of == 1:
        yield from model.stored_tensors
        return
    for tensor in model.outer_tensors():
        if stage.is_first if tensor.role is Role.EMBEDDING else stage.is_last:
            yield tensor, 1
    if model.tie_word_embeddings and stage.is_last:
        yield model.embedding, 1
    counts = dict(stage.layers)
    for kind in model.layer_kinds:
        if kind.label in counts:
            yield from ((tensor, counts[kind.label]) for tensor in kind.tensors(model))


def stage_weight_bytes(model: Model, precision: Precision, layout: Layout, stage: Stage) -> Mapping[Role, float]:
    """Return the weights on one chip of a stage, by tensor class [B]."""
    divide = divider(layout)
    parts: dict[Role, float] = {}
    for tensor, count in _held(model, stage):
        piece = tensor
        if isinstance(tensor, Tensor):
            outer = tuple(divide(axis) for axis in tensor.outer)
            piece = replace(tensor, inner=divide(tensor.inner), outer=outer, copies=divide(tensor.copies))
        parts[tensor.role] = parts.get(tensor.role, 0.0) + count * stored_bytes(piece, precision)
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedLayers:
    """What layers of one kind keep of a sequence on one chip.

    Attributes
    ----------
    span : Span
        Which tokens are kept.
    tokens_per_entry : float
        Tokens that each one kept stands for.
    per_token, index_per_token, per_source : float
        For each token kept, for each token at all, and for each token of an encoder's output, all such layers together [B].
    state : float
        Whatever the length [B].
    """

    span: Span
    tokens_per_entry: float
    per_token: float
    index_per_token: float
    per_source: float
    state: float


def _share(block: AttentionBlock, model: Model, divide: Divide) -> float:
    """Return the part of a block's KV heads that a chip holds; 1 where it has none."""
    tensors = [tensor for tensor in block.tensors(model.hidden_size) if isinstance(tensor, Tensor)]
    axes = [axis for tensor in tensors for axis in tensor.outer if axis.name == "kv_heads"]
    return divide(axes[0]).size / axes[0].size if axes else 1.0


def _state_share(block: AttentionBlock, divide: Divide) -> float:
    """Return the part of a block's recurrent state that a chip holds."""
    if not isinstance(block, RecurrentBlock) or not block.state.size:
        return 1.0
    return divide(block.state).size / block.state.size


def _cached(model: Model, precision: Precision, layout: Layout, stage: Stage) -> Iterator[CachedLayers]:
    counts, element, divide = dict(stage.layers), precision.kv.bytes_per_element, divider(layout)
    held = ((kind, counts[kind.label]) for kind in model.layer_kinds if kind.label in counts)
    for kind, count in held:
        pairs = () if kind.layer.needs_source else zip(kind.layer.mixers, kind.layer.caches, strict=True)
        for block, cache in pairs:
            share = _share(block, model, divide)
            yield CachedLayers(
                span=cache.span,
                tokens_per_entry=cache.tokens_per_entry,
                per_token=count * cache.width * element * share,
                index_per_token=count * cache.index_width * element,
                per_source=count * cache.source_width * element * share,
                state=count * cache.state_bytes * _state_share(block, divide),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBytes:
    """What a chip of one stage holds.

    Attributes
    ----------
    stage : Stage
        Which.
    weights : mapping of Role to float
        By tensor class [B].
    cached : tuple of CachedLayers
        KV cache, by kind of layer.
    activations_per_token, logits_per_sequence : float
        Largest activations alive at once, for each token of a step; those of the LM head for each sequence [B].
    message_per_token, message_per_sequence : float
        Largest message of a collective, likewise [B].
    source_tokens : int or None
        Tokens of an encoder's output; None where they are as many as the sequence's own.
    """

    stage: Stage
    weights: Mapping[Role, float]
    cached: tuple[CachedLayers, ...]
    activations_per_token: float
    logits_per_sequence: float
    message_per_token: float
    message_per_sequence: float
    source_tokens: int | None

    @property
    def weight_bytes(self) -> float:
        """All weights [B]."""
        return sum(self.weights.values())

    def sequence_bytes(self, tokens: Numeric, page_tokens: int) -> Numeric:
        """Return the KV cache of one sequence, in whole pages [B]."""
        size: Numeric = 0
        for layers in self.cached:
            kept = tokens if layers.tokens_per_entry == 1 else tokens / layers.tokens_per_entry
            held = page_tokens * divide_up(layers.span.held(kept), page_tokens)
            source = tokens if self.source_tokens is None else self.source_tokens
            constant = layers.per_source * source + layers.state
            size = size + layers.per_token * held + layers.index_per_token * kept + constant
        return size


def _is_head(op: Op) -> bool:
    """Whether the operation is the LM head's, which runs on one token of a sequence and not on all."""
    is_matmul = isinstance(op, Matmul) and any(axis.name == "vocab" for axis in op.outer)
    return is_matmul or (isinstance(op, Collective) and op.name.startswith("lm_head"))


def _stage_bytes(model: Model, precision: Precision, layout: Layout, stage: Stage, tokens: int) -> StageBytes:
    """Measure a stage on a chunk of a prefill: activations and messages grow in proportion to its tokens."""
    phase = Phase.PREFILL
    step = Step(phase=phase, batch=layout.attention_dp, new_tokens=tokens)
    ops = shard_stage(model, precision, layout, stage, pipeline(step, layout))
    body = [op for op in ops if not _is_head(op) and op.kind is not Kind.COLLECTIVE]
    messages = [op for op in ops if isinstance(op, Collective)]
    residual = model.hidden_size * precision.base.output.bytes_per_element / layout.cp
    return StageBytes(
        stage=stage,
        weights=stage_weight_bytes(model, precision, layout, stage),
        cached=tuple(_cached(model, precision, layout, stage)),
        activations_per_token=residual + max((float(op.activation_bytes) for op in body), default=0) / tokens,
        logits_per_sequence=max((float(op.activation_bytes) for op in ops if _is_head(op)), default=0.0),
        message_per_token=max((float(op.size_bytes) for op in messages if not _is_head(op)), default=0) / tokens,
        message_per_sequence=max((float(op.size_bytes) for op in messages if _is_head(op)), default=0.0),
        source_tokens=model.encoder.source_positions if model.encoder else None,
    )


IN_AND_OUT = 2
"""Buffers of a collective: one that is sent from and one that is received into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Bytes on one chip, by part; they sum to `total` [B]."""

    weights_bytes: Numeric
    kv_bytes: Numeric
    activation_bytes: Numeric
    communication_bytes: Numeric
    reserve_bytes: Numeric

    @property
    def total_bytes(self) -> Numeric:
        """All parts together [B]."""
        return (
            self.weights_bytes + self.kv_bytes + self.activation_bytes + self.communication_bytes + self.reserve_bytes
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """What a layout takes of each chip, for any batch and context.

    Attributes
    ----------
    layout : Layout
        The cuts.
    engine : Engine
        The rules.
    capacity_bytes : float or None
        Memory of a chip [B].
    stages : tuple of StageBytes
        One of each sort of stage.
    """

    layout: Layout
    engine: Engine
    capacity_bytes: float | None
    stages: tuple[StageBytes, ...]

    def parts(self, stage: StageBytes, batch: Numeric, tokens: Numeric) -> Parts:
        """Return the bytes on a chip of a stage, for sequences of so many tokens each."""
        local = divide_up(batch, self.layout.attention_dp)
        kept = divide_up(tokens, self.layout.cp)
        step = maximum(minimum(local * tokens, int(self.engine.batched_tokens.value)), local)
        page = int(self.engine.page_tokens.value)
        weights, runtime = stage.weight_bytes, self.engine.runtime.value or 0.0
        kv = local * stage.sequence_bytes(kept, page)
        activations = maximum(stage.activations_per_token * step, stage.logits_per_sequence * local)
        communication = IN_AND_OUT * maximum(stage.message_per_token * step, stage.message_per_sequence * local)
        fraction, capacity = self.engine.memory_fraction.value, self.capacity_bytes or 0.0
        base = capacity
        if self.engine.fraction_of == "free":
            base = maximum(capacity - weights - runtime - activations - communication, 0.0)  # type: ignore[assignment]
        return Parts(
            weights_bytes=weights,
            kv_bytes=kv,
            activation_bytes=activations,
            communication_bytes=communication,
            reserve_bytes=(1 - fraction) * base + runtime,
        )

    def fullest(self, batch: Numeric, tokens: Numeric) -> tuple[StageBytes, Parts]:
        """Return the stage whose chips hold most, and what they hold; summed over arrays."""
        found = [(stage, self.parts(stage, batch, tokens)) for stage in self.stages]
        return max(found, key=lambda pair: summed(pair[1].total_bytes))

    def fits(self, batch: int, tokens: int) -> bool:
        """Whether sequences of so many tokens fit."""
        _, parts = self.fullest(batch, tokens)
        return self.capacity_bytes is not None and bool(parts.total_bytes <= self.capacity_bytes)


def footprint(
    model: Model, capacity_bytes: float | None, precision: Precision, layout: Layout, engine: Engine
) -> Footprint:
    """Return what a layout takes of each chip.

    Parameters
    ----------
    model : Model
        The transformer.
    capacity_bytes : float or None
        Memory of a chip [B]; None where it is not fixed.
    precision : Precision
        The policy.
    layout : Layout
        The cuts.
    engine : Engine
        The rules.
    """
    tokens = int(engine.batched_tokens.value)
    found = distinct(stages(model, layout.pp))
    return Footprint(
        layout=layout,
        engine=engine,
        capacity_bytes=capacity_bytes,
        stages=tuple(_stage_bytes(model, precision, layout, stage, tokens) for stage in found),
    )
