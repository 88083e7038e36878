"""A collective on a chip's links: within a domain, or across several, in parts that overlap."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from planner.collectives.cost import NOTHING, Cost, cheapest, options
from planner.collectives.fabric import Fabric, Reach, reach
from planner.hardware import Hardware
from planner.numeric import Numeric, is_array, maximum
from planner.op import Collective, Group, Operation

Part = tuple[Operation, Numeric, Fabric]
"""One part of a collective: what, how large, over which links."""


def _all_reduce(size: Numeric, inner: Fabric, outer: Fabric) -> tuple[Part, ...]:
    return (
        (Operation.REDUCE_SCATTER, size, inner),
        (Operation.ALL_REDUCE, size / inner.chips, outer),
        (Operation.ALL_GATHER, size, inner),
    )


def _all_gather(size: Numeric, inner: Fabric, outer: Fabric) -> tuple[Part, ...]:
    return (Operation.ALL_GATHER, size / inner.chips, outer), (Operation.ALL_GATHER, size, inner)


def _reduce_scatter(size: Numeric, inner: Fabric, outer: Fabric) -> tuple[Part, ...]:
    return (Operation.REDUCE_SCATTER, size, inner), (Operation.REDUCE_SCATTER, size / inner.chips, outer)


def _all_to_all(size: Numeric, inner: Fabric, outer: Fabric) -> tuple[Part, ...]:
    # What stays in the domain, and what leaves it: each of the others gets its share.
    return (Operation.ALL_TO_ALL, size / outer.chips, inner), (Operation.ALL_TO_ALL, size, outer)


def _send(size: Numeric, inner: Fabric, outer: Fabric) -> tuple[Part, ...]:  # the signature of all splits
    return ((Operation.SEND_RECEIVE, size, outer),)


SPLITS: dict[Operation, Callable[[Numeric, Fabric, Fabric], tuple[Part, ...]]] = {
    Operation.ALL_REDUCE: _all_reduce,
    Operation.ALL_GATHER: _all_gather,
    Operation.REDUCE_SCATTER: _reduce_scatter,
    Operation.ALL_TO_ALL: _all_to_all,
    Operation.SEND_RECEIVE: _send,
}
"""How a collective across domains is made of ones within a domain and ones between domains."""


def _overlap(a: Cost, b: Cost) -> Cost:
    """Return two parts as one: bytes add up, steps wait for each other, transfers overlap chunk by chunk."""
    names: Any = f"{a.algorithm} + {b.algorithm}"
    if is_array(a.algorithm, b.algorithm):
        import numpy as np  # see is_array

        names = np.char.add(np.char.add(a.algorithm, " + "), b.algorithm)
    known = a.transfer_s is not None and b.transfer_s is not None
    return Cost(
        algorithm=names,
        sent_bytes=a.sent_bytes + b.sent_bytes,
        steps=a.steps + b.steps,
        latency_s=a.latency_s + b.latency_s,
        transfer_s=maximum(a.transfer_s, b.transfer_s) if known else None,  # type: ignore[arg-type]
    )


def _parts(operation: Operation, size: Numeric, links: Reach) -> tuple[Part, ...]:
    if links.inner is not None and links.outer is not None:
        return SPLITS[operation](size, links.inner, links.outer)
    fabric = links.inner or links.outer
    return () if fabric is None else ((operation, size, fabric),)


def collective_cost(hardware: Hardware, operation: Operation, group: Group, size_bytes: Numeric) -> Cost:
    """Return what a collective costs, by the cheapest algorithm that the links allow.

    Parameters
    ----------
    hardware : Hardware
        The chip, with its links.
    operation : Operation
        What is exchanged.
    group : Group
        Between whom.
    size_bytes : Numeric
        As `planner.op.Collective` says, any shape [B].

    Raises
    ------
    InputError
        If the links do not join so many chips.
    """
    parts = _parts(operation, size_bytes, reach(hardware, group))
    costs = [cheapest(options(what, size, fabric)) for what, size, fabric in parts]
    return reduce(_overlap, costs) if costs else NOTHING


def cost_of(op: Collective, hardware: Hardware) -> Cost:
    """Return what a collective operation costs on a chip's links; see `collective_cost`."""
    return collective_cost(hardware, op.operation, op.chips, op.size_bytes)
