"""Cuts a step's operations to those of one chip, and adds the collectives that the cuts force.

The rules follow from the axes. A matmul whose contracted axis is cut leaves partial sums, which are added up over the chips before
the next norm reads them: sums that stand open at the same time (attention and FFN in parallel, routed and shared experts) are added
up at once. A look-up in a cut table leaves zeros on all chips but one, and is summed as well. Logits of a cut vocabulary are gathered.
Routed experts see the tokens of all ranks: where ranks have tokens of their own (attention-DP, context parallelism), tokens are sent to
the groups of their experts and the results are sent back; else every chip has all tokens and the sum is all that is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from planner.decompose import decompose
from planner.decompose.lowering import OUTSIDE
from planner.model import Model
from planner.numeric import Numeric
from planner.op import Attention, Collective, Elementwise, Group, Lookup, Matmul, Op, Operation, WeightedSum
from planner.parallel.layout import Layout, divider, ranks_reached
from planner.parallel.pipeline import Pipeline, Stage, divide_up
from planner.precision import Precision
from planner.units import Format


@dataclass(frozen=True, slots=True)
class _Open:
    """A result that the next reader of the hidden axis needs whole, and what it takes to make it so."""

    after: Op
    operation: Operation
    size_bytes: Numeric
    format: str


def _is_routed(op: Op) -> bool:
    """Whether the operation runs on routed experts."""
    return isinstance(op, Matmul | Elementwise) and op.copies.name == "experts"


def _reads_whole(op: Op) -> bool:
    """Whether the operation needs every element of the hidden axis, summed: a norm."""
    return isinstance(op, Elementwise) and op.axis.name == "hidden"


def _is_cut(whole: Op, piece: Op) -> bool:
    """Whether the contracted axis of a matmul is cut."""
    return isinstance(whole, Matmul) and isinstance(piece, Matmul) and piece.inner.size < whole.inner.size


class _Sharder:
    """Walks the operations of one chip's stage and notes what has to be exchanged between them."""

    def __init__(self, layout: Layout, token_share: Numeric) -> None:
        self.layout = layout
        self.divide = divider(layout)
        self.token_share = token_share
        self.found: list[Op] = []
        self.open: _Open | None = None
        self.routing: _Routing | None = None

    def collective(
        self, after: Op, name: str, operation: Operation, chips: Group, size_bytes: Numeric, element: str
    ) -> None:
        """Add a collective, unless there is nobody to exchange with."""
        if chips.chips > 1:
            self.found.append(
                Collective(
                    name=f"{after.name}.{name}",
                    group=after.group,
                    layers=after.layers,
                    count=after.count,
                    operation=operation,
                    chips=chips,
                    size_bytes=size_bytes,
                    format=element,
                )
            )

    def close(self) -> None:
        """Make an open result whole."""
        if self.open is not None:
            tp, name = Group(self.layout.tp), self.open.operation
            self.collective(self.open.after, name, name, tp, self.open.size_bytes, self.open.format)
            self.open = None

    def leave_open(self, op: Op, operation: Operation, size_bytes: Numeric, element: str) -> None:
        """Note a result that is not whole; a sum takes in what has still to be gathered."""
        if self.open is not None and Operation.ALL_REDUCE in (operation, self.open.operation):
            operation = Operation.ALL_REDUCE
        self.open = _Open(op, operation, size_bytes, element)

    def add(self, op: Op, pooled: Op, routing: _Routing | None) -> None:
        """Add the chip's part of one operation, and what it takes before and after it."""
        if self.open is not None and (_reads_whole(op) or op.group != self.open.after.group):
            self.close()
        if _is_routed(op):
            self.add_routed(pooled, routing)
            return
        piece = op.on_chip(self.divide)
        if self.layout.cp > 1:
            piece = piece.with_tokens(self.token_share)
        if isinstance(op, Attention) and isinstance(piece, Attention):
            self.pass_cache(op, piece)
        if isinstance(op, WeightedSum) and isinstance(piece, WeightedSum):
            piece = self.gather_experts(op, piece)
        self.found.append(piece)
        self.after(op, piece)

    def after(self, op: Op, piece: Op) -> None:
        """Note or add what the cuts of an operation force."""
        tp = Group(self.layout.tp)
        if isinstance(piece, Lookup) and piece.hits is not None:
            self.collective(op, "all_reduce", Operation.ALL_REDUCE, tp, *_result(piece))
        elif isinstance(piece, Matmul) and _is_cut(op, piece):
            size, element = piece.result_bytes, piece.scheme.output.name
            if any(axis.name == "hidden" for axis in piece.outer):
                self.leave_open(op, Operation.ALL_REDUCE, size, element)
            else:
                self.collective(op, "all_reduce", Operation.ALL_REDUCE, tp, size, element)
        elif isinstance(piece, Matmul) and any(axis.name == "vocab" for axis in piece.outer):
            size = piece.result_bytes * self.layout.tp
            self.collective(op, "all_gather", Operation.ALL_GATHER, tp, size, piece.scheme.output.name)

    def pass_cache(self, op: Attention, piece: Attention) -> None:
        """Let every chip of a context-parallel group see the keys and values of the others."""
        chips = Group(self.layout.cp, self.layout.tp)
        cached = piece.cache_format.bytes_per_element * op.cache_read
        fresh = piece.activation_format.bytes_per_element * op.cache_written
        size = piece.cache_heads.size * piece.cache_width * (cached + fresh)
        self.collective(op, "all_gather", Operation.ALL_GATHER, chips, size, piece.activation_format.name)

    # ---- routed experts ----------------------------------------------------------------------------------------------

    def add_routed(self, pooled: Op, routing: _Routing | None) -> None:
        """Add an operation of the experts that this chip's group holds."""
        if self.routing is None and routing is not None and isinstance(pooled, Matmul):
            self.routing = routing
            if self.layout.token_ranks > 1:
                self.exchange(pooled, pooled.scheme.activations, "dispatch")
        piece = pooled.on_chip(self.divide)
        if self.layout.ep > 1:
            piece = piece.with_tokens(self.layout.expert_imbalance)
        self.found.append(piece)

    def gather_experts(self, op: WeightedSum, piece: WeightedSum) -> WeightedSum:
        """Bring the experts' results back to where their tokens are, and leave the sum over chips open."""
        routing = self.routing
        size, element = _result(piece)
        if self.layout.token_ranks == 1 or routing is None:
            if self.layout.tp > 1:
                self.leave_open(op, Operation.ALL_REDUCE, size, element)
            self.routing = None
            return piece
        self.exchange(op, op.scheme.output, "combine")
        self.routing = None
        if self.layout.tp > 1:
            self.leave_open(op, Operation.ALL_GATHER, size, element)
        share = 1 if self.layout.tp == 1 else 1 / self.layout.tp
        return replace(piece, sources=routing.reached, rows=piece.rows * share)

    def exchange(self, after: Op, element: Format, name: str) -> None:
        """Send tokens to the groups of their experts, or results back.

        Each chip sends its share of the tokens once to each group that holds an expert of theirs; the chips that share the width of
        those experts then gather what came, or add up what they computed before it goes back.
        """
        layout, routing = self.layout, self.routing
        if routing is None:
            return
        load = layout.expert_imbalance if layout.ep > 1 else 1
        row = routing.width * element.bytes_per_element * load * routing.reached
        groups = (
            (Operation.ALL_TO_ALL, Group(layout.ep, layout.moe_tp), row * routing.tokens / layout.stage_chips),
            (Operation.ALL_GATHER, Group(layout.moe_tp), row * routing.tokens / layout.ep),
        )
        is_return = name == "combine"
        for operation, chips, size in reversed(groups) if is_return else groups:
            is_sum = is_return and operation is Operation.ALL_GATHER
            what = Operation.REDUCE_SCATTER if is_sum else operation
            self.collective(replace(after, name="experts"), f"{name}.{what}", what, chips, size, element.name)


@dataclass(frozen=True, slots=True)
class _Routing:
    """What the exchange around routed experts needs to know."""

    tokens: Numeric
    width: int
    reached: float


def _result(piece: WeightedSum | Lookup) -> tuple[Numeric, str]:
    """Return the bytes and the format of a result of the hidden width."""
    output = piece.scheme.output
    return piece.rows * piece.width * output.bytes_per_element, output.name


def _routings(ops: Sequence[Op], layout: Layout) -> dict[str, _Routing]:
    """Return what is known of the routing in each kind of layer that has routed experts."""
    sums = [op for op in ops if isinstance(op, WeightedSum)]
    return {
        op.group: _Routing(op.rows, op.width, ranks_reached(op.experts.size, int(op.sources), layout.ep)) for op in sums
    }


def shard(
    ops: Sequence[Op], layout: Layout, *, pooled: Sequence[Op] | None = None, token_share: Numeric = 1
) -> tuple[Op, ...]:
    """Return the operations of one chip, collectives included.

    Parameters
    ----------
    ops : sequence of Op
        The operations of the sequences of one attention-DP rank, in order.
    layout : Layout
        The cuts.
    pooled : sequence of Op, optional
        The same operations for the sequences of all ranks, which routed experts see; `ops` where there is one rank.
    token_share : Numeric
        The part of each sequence's new tokens that is the chip's, under context parallelism.

    Returns
    -------
    tuple of Op
        Those of the busiest chip; `ops` themselves where the layout is one chip.
    """
    if layout.stage_chips == 1:
        return tuple(ops)
    everything = ops if pooled is None else pooled
    routings = _routings(everything, layout)
    sharder = _Sharder(layout, token_share)
    for op, of_all in zip(ops, everything, strict=True):
        sharder.add(op, of_all, routings.get(op.group))
    sharder.close()
    return tuple(sharder.found)


def _of_stage(ops: Sequence[Op], stage: Stage) -> Iterator[tuple[int, Op]]:
    """Yield the operations of a stage, with their place in the whole."""
    if stage.of == 1:
        yield from enumerate(ops)
        return
    held, before = dict(stage.layers), True
    for index, op in enumerate(ops):
        if op.group == OUTSIDE:
            if stage.is_first if before else stage.is_last:
                yield index, op
            continue
        before = False
        if op.group in held:
            # What runs more than once in a layer keeps doing so.
            runs = held[op.group] if op.count == op.layers else held[op.group] * op.count // op.layers
            yield index, replace(op, layers=held[op.group], count=runs)


def _between_stages(tokens: Numeric, model: Model, layout: Layout, stage: Stage, element: Format) -> Iterator[Op]:
    """Yield what a stage receives from the one before it and sends to the one after.

    Every chip sends its share of the hidden width to its counterpart; the chips that receive gather the rest from each other.
    """
    size = tokens * model.hidden_size * element.bytes_per_element
    if not stage.is_first and layout.tp > 1:
        yield Collective(
            name="stage.all_gather",
            group=OUTSIDE,
            operation=Operation.ALL_GATHER,
            chips=Group(layout.tp),
            size_bytes=size,
            format=element.name,
        )
    if not stage.is_last:
        yield Collective(
            name="stage.send_receive",
            group=OUTSIDE,
            operation=Operation.SEND_RECEIVE,
            chips=Group(2, layout.stage_chips),
            size_bytes=size / layout.tp,
            format=element.name,
        )


def shard_stage(model: Model, precision: Precision, layout: Layout, stage: Stage, flow: Pipeline) -> tuple[Op, ...]:
    """Return the operations of one chip of a pipeline stage, for all microbatches of a step.

    Parameters
    ----------
    model : Model
        The transformer.
    precision : Precision
        The policy.
    layout : Layout
        The cuts.
    stage : Stage
        One of `stages`.
    flow : Pipeline
        How the step passes, from `pipeline`.
    """
    part = flow.part
    ops = decompose(model, part, precision)
    pooled = ops if layout.attention_dp == 1 else decompose(model, flow.pooled, precision)
    if layout.is_single:
        return ops
    chosen = list(_of_stage(ops, stage))
    of_all = [replace(pooled[index], layers=op.layers, count=op.count) for index, op in chosen]
    share = divide_up(part.new_tokens, layout.cp) / part.new_tokens
    found = list(shard([op for _, op in chosen], layout, pooled=of_all, token_share=share))
    ends = list(_between_stages(part.tokens * share, model, layout, stage, precision.base.output))
    found += ends
    return tuple(replace(op, count=op.count * flow.microbatches) for op in found)
