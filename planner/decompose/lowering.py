"""Walks a model's layers and collects their operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from planner.model import Encoder, LayerGroup, LayerKind, Model, Projection, Tensor, Vector
from planner.numeric import Numeric
from planner.op import SINGLE, Axis, Elementwise, Lookup, Matmul, Op
from planner.precision import Precision, Role
from planner.workload import Phase, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowering:
    """What the lowering of one kind of layer needs to know, and the constructors that it shares.

    Attributes
    ----------
    model : Model
        The whole model.
    step : Step
        What is asked of it.
    precision : Precision
        The policy.
    group : str
        Label of the kind of layer.
    layers : int
        How many layers of this kind there are.
    hidden_size : int
        Elements of the residual stream.
    source : Numeric
        Tokens of the encoder's output that each sequence of the decoder attends to; 0 without an encoder.
    is_encoder : bool
        The layers are the encoder's: they keep no cache.
    read_share : Numeric or None
        How much of the layers' weights a step reads, in expectation; all where None.
    """

    model: Model
    step: Step
    precision: Precision
    group: str
    layers: int
    hidden_size: int
    source: Numeric = 0
    is_encoder: bool = False
    read_share: Numeric | None = None

    def matmul(
        self,
        tensor: Tensor,
        rows: Numeric | None = None,
        *,
        touched: Numeric | None = None,
        note: str = "",
        kind: type[Matmul] = Matmul,
    ) -> Matmul:
        """Return the multiplication of `rows` rows (every token where not given) by a weight tensor."""
        if touched is None and self.read_share is not None:
            touched = tensor.copies.size * self.read_share
        return kind(
            name=tensor.name,
            group=self.group,
            layers=self.layers,
            count=self.layers,
            note=note,
            rows=self.step.tokens if rows is None else rows,
            inner=tensor.inner,
            outer=tensor.outer,
            copies=tensor.copies,
            touched=touched,
            scheme=self.precision.scheme(tensor.role, tensor.name),
        )

    def project(self, projection: Projection) -> Matmul:
        """Return the multiplication of every token, as often as it is to run, by a further matrix."""
        return self.matmul(projection.tensor, self.step.tokens * projection.times)

    def elementwise(
        self,
        name: str,
        read: int,
        written: int,
        *,
        rows: Numeric | None = None,
        weights: int = 0,
        axis: Axis = SINGLE,
        copies: Axis = SINGLE,
    ) -> Elementwise:
        """Return a pass over activations, along `axis` where that can be sharded."""
        return Elementwise(
            name=name,
            group=self.group,
            layers=self.layers,
            count=self.layers,
            rows=self.step.tokens if rows is None else rows,
            read=read,
            written=written,
            weights=weights,
            scheme=self.precision.base,
            axis=axis,
            copies=copies,
        )

    def norm(self, name: str) -> Elementwise:
        """Return a norm of the hidden width, fused with the residual add before it."""
        width = self.hidden_size
        weights = width * self.model.norm.parameters_per_element
        return self.elementwise(name, 2 * width, 2 * width, weights=weights, axis=Axis("hidden", width))

    def lookup(self, name: str, width: int, table: Axis = SINGLE) -> Lookup:
        """Return a look-up of `width` elements of a table for each token; `table` are its rows, where they can be sharded."""
        scheme = self.precision.scheme(Role.EMBEDDING, name)
        return Lookup(name=name, group=self.group, rows=self.step.tokens, width=width, scheme=scheme, table=table)

    def embed(self) -> Lookup:
        """Return the look-up of a token's embedding."""
        (rows,) = self.model.embedding.outer
        return self.lookup("embed_tokens", self.model.embedding.inner.elements, rows)


BlockLowering = Callable[[Any, Lowering], Iterator[Op]]
"""Turns one attention or feed-forward block into its operations."""

REGISTRY: dict[type, BlockLowering] = {}
"""How each kind of block is lowered."""


def lowers(*kinds: type) -> Callable[[BlockLowering], BlockLowering]:
    """Register the lowering of kinds of block."""

    def register(function: BlockLowering) -> BlockLowering:
        for kind in kinds:
            REGISTRY[kind] = function
        return function

    return register


def tensors_by_name(tensors: tuple[Tensor | Vector, ...]) -> dict[str, Tensor]:
    """Return the matrices among a block's tensors by name."""
    return {tensor.name: tensor for tensor in tensors if isinstance(tensor, Tensor)}


OUTSIDE = "outside layers"
"""The group of what stands before and after the layers."""


def decompose(model: Model, step: Step, precision: Precision) -> tuple[Op, ...]:
    """Break a forward step into operations.

    Parameters
    ----------
    model : Model
        The transformer.
    step : Step
        Batch, new tokens and context; numbers or arrays that broadcast.
    precision : Precision
        The policy.

    Returns
    -------
    tuple of Op
        In the order in which they run; an operation of n layers of one kind stands once, with count n.

    Notes
    -----
    An encoder-decoder reads its prompt in the encoder: prefill runs the encoder over the new tokens and the decoder over one start
    token, and a decode step attends to a source as long as its context. Where the source has a fixed length (Whisper's 30 s of
    audio), prefill runs the encoder over that, and the decoder over the new tokens.
    """
    source: Numeric = 0
    ops: list[Op] = []
    if model.encoder is not None:
        fixed, prefill = model.encoder.source_positions, step.phase is Phase.PREFILL
        source = fixed or (step.new_tokens if prefill else step.context)
        if prefill:
            ops += _encode(model, model.encoder, replace(step, new_tokens=source, context=0, mask="full"), precision)
            step = step if fixed else replace(step, new_tokens=1)
    outside = Lowering(
        model=model,
        step=step,
        precision=precision,
        group=OUTSIDE,
        layers=1,
        hidden_size=model.hidden_size,
        source=source,
    )
    ops.append(outside.embed())
    ops += [outside.lookup(table.name, table.width * table.lookups) for table in model.tables]
    ops += [outside.project(projection) for projection in model.projections]
    for kind in model.layer_kinds:
        if not kind.layer.needs_source:
            ops += _layer(kind.layer, _inside(outside, kind))
    if model.final_norm:
        ops.append(outside.norm("final_norm"))
    ops.append(replace(outside.matmul(model.lm_head, step.logit_rows), shared_rows=step.logits == "last"))
    return tuple(ops)


def share_begun(tokens_per_patch: float, tokens: Numeric) -> Numeric:
    """Return how likely it is that at least one of some tokens begins a patch.

    Parameters
    ----------
    tokens_per_patch : float
        Tokens of a patch in the mean, p.
    tokens : Numeric
        Tokens of a step, over all sequences, M.

    Notes
    -----
    ``1 - (1 - 1/p)^M``. Derived here, as for experts: a token begins a patch with probability 1/p, each by itself.

    Examples
    --------
    >>> share_begun(4, 1)
    0.25
    """
    return 1 - (1 - 1 / tokens_per_patch) ** tokens


def _inside(outside: Lowering, kind: LayerKind) -> Lowering:
    """Return what the lowering of one kind of layer needs to know; a layer that works on patches sees fewer tokens."""
    layer, step = kind.layer, outside.step
    width, length = layer.hidden_size or outside.hidden_size, layer.tokens_per_patch
    inside = replace(outside, group=kind.label, layers=kind.count, hidden_size=width)
    if length is None:
        return inside
    fewer = replace(step, new_tokens=step.new_tokens / length, context=step.context / length)
    return replace(inside, step=fewer, read_share=share_begun(length, step.tokens))


def _encode(model: Model, encoder: Encoder, step: Step, precision: Precision) -> Iterator[Op]:
    """Yield the encoder's operations."""
    outside = Lowering(
        model=model,
        step=step,
        precision=precision,
        group="encoder",
        layers=1,
        hidden_size=encoder.hidden_size or model.hidden_size,
        is_encoder=True,
    )
    if not encoder.source_positions:
        yield outside.embed()
    for projection in encoder.projections:
        yield outside.project(projection)
    for kind in encoder.layer_kinds:
        yield from _layer(kind.layer, replace(outside, group=f"encoder {kind.label}", layers=kind.count))
    for _ in range(encoder.norms):
        yield outside.norm("encoder.norm")


def _layer(layer: LayerGroup, lowering: Lowering) -> Iterator[Op]:
    halves = [half for half in (layer.mixers, layer.networks) if half]
    names = ("input_norm", "post_attention_norm")
    norms = layer.norm_count
    for index, blocks in enumerate(halves):
        # Parallel blocks share one norm; a layer with more norms than halves has them after the halves as well.
        if index < max(norms, 1):
            yield lowering.norm(names[index])
        for block in blocks:
            yield from REGISTRY[type(block)](block, lowering)
        if norms > len(halves):
            yield lowering.norm(f"{names[index]}.after")
    for projection in layer.projections:
        yield lowering.project(projection)
