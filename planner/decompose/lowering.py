"""Walks a model's layers and collects their operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from planner.model import Model, Tensor, Vector
from planner.model.stack import LayerKind
from planner.op import SINGLE, Axis, Elementwise, Lookup, Matmul, Op
from planner.precision import Precision, Role
from planner.units import Numeric
from planner.workload import Step


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
    """

    model: Model
    step: Step
    precision: Precision
    group: str
    layers: int

    def matmul(
        self,
        tensor: Tensor,
        rows: Numeric | None = None,
        *,
        touched: Numeric | None = None,
        note: str = "",
    ) -> Matmul:
        """Return the multiplication of `rows` rows (every token where not given) by a weight tensor."""
        return Matmul(
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
            scheme=self.precision.scheme(tensor.role),
        )

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
        width = self.model.hidden_size
        weights = width * self.model.norm.parameters_per_element
        return self.elementwise(name, 2 * width, 2 * width, weights=weights, axis=Axis("hidden", width))


BlockLowering = Callable[[Any, Lowering], Iterator[Op]]
"""Turns one attention or feed-forward block into its operations."""

REGISTRY: dict[type, BlockLowering] = {}
"""How each kind of block is lowered."""


def lowers(kind: type) -> Callable[[BlockLowering], BlockLowering]:
    """Register the lowering of a kind of block."""

    def register(function: BlockLowering) -> BlockLowering:
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
    """
    outside = Lowering(model=model, step=step, precision=precision, group=OUTSIDE, layers=1)
    ops: list[Op] = [
        Lookup(
            name="embed_tokens",
            group=outside.group,
            rows=step.tokens,
            width=model.hidden_size,
            scheme=precision.scheme(Role.EMBEDDING),
            table=Axis("vocab", model.vocab_size),
        )
    ]
    for kind in model.layer_kinds:
        ops += _layer(kind, Lowering(model=model, step=step, precision=precision, group=kind.label, layers=kind.count))
    if model.final_norm:
        ops.append(outside.norm("final_norm"))
    ops.append(replace(outside.matmul(model.lm_head, step.logit_rows), shared_rows=step.logits == "last"))
    return tuple(ops)


def _layer(kind: LayerKind, lowering: Lowering) -> Iterator[Op]:
    names = ("input_norm", "post_attention_norm")
    norms = kind.layer.norm_count
    blocks = [block for block in (kind.layer.attention, kind.layer.ffn) if block is not None]
    for index, block in enumerate(blocks):
        # Parallel blocks share one norm; a model with more norms than blocks has them after the blocks as well.
        if index < max(norms, 1):
            yield lowering.norm(names[index])
        yield from REGISTRY[type(block)](block, lowering)
        if norms > len(blocks):
            yield lowering.norm(f"{names[index]}.after")
