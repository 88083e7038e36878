"""What a chip's links are, in words, and what each collective costs on them: for people who choose between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.collectives.cost import Cost, options
from planner.collectives.fabric import Fabric, Family, Reach, reach
from planner.collectives.levels import collective_cost
from planner.hardware import Hardware
from planner.op import Group, Operation
from planner.units import gigabytes_per_s, microseconds

SIZES = tuple(16**power for power in range(3, 8))
"""Messages that are looked at: 4 KiB to 256 MiB [B]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """One collective of one size, by one algorithm.

    Attributes
    ----------
    operation : Operation
        What is exchanged.
    size_bytes : int
        As `planner.op.Collective` says [B].
    cost : Cost
        What it costs.
    is_default : bool
        Whether it is the cheapest, which is planned with.
    """

    operation: Operation
    size_bytes: int
    cost: Cost
    is_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The links of a group of neighbouring chips.

    Attributes
    ----------
    hardware : Hardware
        The chip.
    chips : int
        How many.
    reach : Reach
        Their fabrics.
    words : tuple of str
        What a reader should know about them.
    rows : tuple of Surveyed
        Every collective, size and algorithm.
    """

    hardware: Hardware
    chips: int
    reach: Reach
    words: tuple[str, ...]
    rows: tuple[Surveyed, ...]


A_FEW = 8
"""Chips of a large domain that are looked at where no number is given."""


def default_chips(hardware: Hardware) -> int:
    """Return the chips to look at where no number is given: a whole domain, or some of a large one."""
    domain = hardware.links.scale_up.chips if hardware.links.scale_up else 1
    return min(domain, A_FEW)


def survey(hardware: Hardware, chips: int, sizes: tuple[int, ...] = SIZES) -> Survey:
    """Look at the links of a group of neighbouring chips.

    Parameters
    ----------
    hardware : Hardware
        The chip.
    chips : int
        How many take part.
    sizes : tuple of int
        Messages to look at [B].

    Raises
    ------
    InputError
        If the links do not join so many chips.
    """
    links = reach(hardware, Group(chips))
    rows = tuple(row for what in Operation for size in sizes for row in _rows(hardware, chips, what, size))
    return Survey(
        hardware=hardware,
        chips=chips,
        reach=links,
        words=tuple(_words(hardware, links)),
        rows=rows if chips > 1 else (),
    )


def _rows(hardware: Hardware, chips: int, what: Operation, size: int) -> Iterator[Surveyed]:
    links = reach(hardware, Group(chips))
    best = collective_cost(hardware, what, Group(chips), size)
    single = None if links.inner and links.outer else links.inner or links.outer
    costs = options(what, size, single) if single else (best,)
    for cost in costs:
        yield Surveyed(operation=what, size_bytes=size, cost=cost, is_default=cost == best)


SHAPES = {
    Family.SWITCHED: "through a switch or host: any chip reaches any other",
    Family.MESHED: "in a full mesh: each pair has a link of its own",
}


def _shape(fabric: Fabric) -> str:
    if fabric.family is not Family.TORUS:
        return SHAPES[fabric.family]
    axes = (
        f"{side} {'in a ring' if wraps else 'in a row, without wrap-around'}"
        for side, wraps in zip(fabric.sides, fabric.wraps, strict=True)
    )
    return f"on a torus: {', by '.join(axes)}"


def _fabric_words(fabric: Fabric) -> Iterator[str]:
    yield f"{fabric.chips} joined by {fabric.name}, {_shape(fabric)}"
    rates = (gigabytes_per_s(rate) for rate in (fabric.port_bytes_per_s, fabric.link_bytes_per_s))
    yield "a chip sends {} at most over all its links to the others, {} to one of them".format(*rates)
    yield f"a step takes {microseconds(fabric.latency_s)}" if fabric.latency_s else "the time of a step is not known"
    if fabric.reduces:
        yield "the switch adds up what chips send to it"


def _words(hardware: Hardware, links: Reach) -> Iterator[str]:
    domain = hardware.links.scale_up.chips if hardware.links.scale_up else 1
    yield f"a domain has {domain} chips" if domain > 1 else "a chip stands alone"
    if links.inner:
        yield from (f"within a domain: {line}" for line in _fabric_words(links.inner))
    if links.outer:
        yield from (f"between domains: {line}" for line in _fabric_words(links.outer))
        yield "across domains the parts of a collective overlap, chunk by chunk, and their latencies add up"
