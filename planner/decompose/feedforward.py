"""Lowering of feed-forward kinds."""

from __future__ import annotations

from collections.abc import Iterator

from planner.decompose.lowering import Lowering, lowers, tensors_by_name
from planner.model import FeedForward, MixtureOfExperts
from planner.op import Axis, Op, WeightedSum
from planner.units import Numeric


@lowers(FeedForward)
def feed_forward(block: FeedForward, lowering: Lowering) -> Iterator[Op]:
    """Project up (and gate), activate, project down."""
    into, down = block.tensors(lowering.model.hidden_size)
    width, inputs = block.intermediate_size, 2 if block.kind == "gated" else 1
    yield lowering.matmul(into)  # type: ignore[arg-type]
    yield lowering.elementwise("activation", inputs * width, width, axis=Axis("ffn", width))
    yield lowering.matmul(down)  # type: ignore[arg-type]


def experts_touched(experts: int, chosen: int, tokens: Numeric, held: int | None = None) -> Numeric:
    """Return how many of the experts held are used by at least one token, in expectation.

    Parameters
    ----------
    experts : int
        Routed experts, E.
    chosen : int
        Experts that a token is sent to, k.
    tokens : Numeric
        Tokens routed, M.
    held : int, optional
        Experts that the chip holds, e; all where not given.

    Notes
    -----
    ``e (1 - (1 - k/E)^M)`` for routing that is uniform and independent between tokens. Derived here: a token misses a given expert
    with probability 1 - k/E, all M of them with its M-th power.

    Examples
    --------
    >>> experts_touched(8, 2, 1)
    2.0
    """
    held = experts if held is None else held
    missed = 1 - chosen / experts
    return held * (1 - missed**tokens)


@lowers(MixtureOfExperts)
def mixture_of_experts(block: MixtureOfExperts, lowering: Lowering) -> Iterator[Op]:
    """Route, run the experts chosen, add them up, and run the shared experts on every token."""
    model, step = lowering.model, lowering.step
    tensors = tensors_by_name(block.tensors(model.hidden_size))
    touched = experts_touched(block.num_experts, block.num_experts_per_tok, step.tokens)
    pairs = step.tokens * block.num_experts_per_tok
    inputs, into = (2, "gate_up_proj") if block.gated else (1, "up_proj")
    width = block.moe_intermediate_size
    yield lowering.matmul(tensors["router"])
    yield lowering.matmul(tensors[f"experts.{into}"], pairs, touched=touched)
    experts, along = tensors["experts.down_proj"].copies, tensors["experts.down_proj"].inner
    yield lowering.elementwise("experts.activation", inputs * width, width, rows=pairs, axis=along, copies=experts)
    yield lowering.matmul(tensors["experts.down_proj"], pairs, touched=touched)
    yield WeightedSum(
        name="experts.combine",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        rows=step.tokens,
        sources=block.num_experts_per_tok,
        others=int(bool(block.shared_intermediate_size)),
        width=model.hidden_size,
        experts=experts,
        scheme=lowering.precision.base,
    )
    if block.shared_intermediate_size:
        shared = block.shared_intermediate_size
        if block.shared_gate:
            yield lowering.matmul(tensors["shared_experts.gate"])
        yield lowering.matmul(tensors[f"shared_experts.{into}"])
        along = Axis("ffn", shared)
        yield lowering.elementwise("shared_experts.activation", inputs * shared, shared, axis=along)
        yield lowering.matmul(tensors["shared_experts.down_proj"])
