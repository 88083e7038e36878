"""Lowering of feed-forward kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.decompose.lowering import Lowering, lowers, tensors_by_name
from planner.model import FeedForward, MixtureOfExperts, Tensor
from planner.numeric import Numeric
from planner.op import Op, WeightedSum


@lowers(FeedForward)
def feed_forward(block: FeedForward, lowering: Lowering) -> Iterator[Op]:
    """Project up (and gate), activate, project down."""
    into, down = block.tensors(lowering.hidden_size)
    width, inputs = block.intermediate_size, 2 if block.kind == "gated" else 1
    yield lowering.matmul(into)
    yield lowering.elementwise("activation", inputs * width, width, axis=down.inner)
    yield lowering.matmul(down)


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
    if block.needs_source:
        return
    step, hidden = lowering.step, lowering.hidden_size
    tensors = tensors_by_name(block.tensors(hidden))
    choices = block.num_experts + block.zero_experts
    touched = experts_touched(choices, block.num_experts_per_tok, step.tokens, held=block.num_experts)
    pairs = step.tokens * block.num_experts_per_tok
    if block.zero_experts:
        pairs = pairs * block.num_experts / choices
    inputs, into = (2, "gate_up_proj") if block.gated else (1, "up_proj")
    width = block.moe_intermediate_size
    yield lowering.matmul(tensors["router"])
    if block.latent_size:
        yield lowering.matmul(tensors["latent_in_proj"])
    yield lowering.matmul(tensors[f"experts.{into}"], pairs, touched=touched)
    down = tensors["experts.down_proj"]
    activated = lowering.elementwise("experts.activation", inputs * width, width, rows=pairs)
    yield replace(activated, axis=down.inner, copies=down.copies)
    yield lowering.matmul(down, pairs, touched=touched)
    yield WeightedSum(
        name="experts.combine",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        rows=step.tokens,
        sources=block.num_experts_per_tok,
        others=int(bool(block.shared_intermediate_size and not block.latent_size)),
        width=block.latent_size or hidden,
        experts=down.copies,
        scheme=lowering.precision.base,
    )
    if block.latent_size:
        yield lowering.matmul(tensors["latent_out_proj"])
    yield from _shared_experts(block, lowering, tensors)


def _shared_experts(block: MixtureOfExperts, lowering: Lowering, tensors: dict[str, Tensor]) -> Iterator[Op]:
    if not block.shared_intermediate_size:
        return
    inputs, into = (2, "gate_up_proj") if block.gated else (1, "up_proj")
    width = block.shared_intermediate_size
    if block.shared_gate:
        yield lowering.matmul(tensors["shared_experts.gate"])
    yield lowering.matmul(tensors[f"shared_experts.{into}"])
    down = tensors["shared_experts.down_proj"]
    yield lowering.elementwise("shared_experts.activation", inputs * width, width, axis=down.inner)
    yield lowering.matmul(down)
