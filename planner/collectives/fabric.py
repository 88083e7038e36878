"""The links between the chips of a group, seen as one fabric: what shape they form and what one chip can send at once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from planner.errors import InputError
from planner.hardware import Hardware, ScaleUp
from planner.op import Group
from planner.sourced import Figure


class Family(StrEnum):
    """Shapes that collectives tell apart."""

    SWITCHED = "switched"
    """Any chip reaches any other through a switch (or host) at the full rate of its port."""
    MESHED = "meshed"
    """A link of its own between any two chips."""
    TORUS = "torus"
    """Links to neighbours along one or more axes, which wrap around or end."""


# A bridge of two is one link; larger ones join every pair. What a hybrid mesh lacks in single links it makes up by many rings.
FAMILIES = {
    "switch": Family.SWITCHED,
    "pcie": Family.SWITCHED,
    "socket": Family.SWITCHED,
    "hybrid_mesh": Family.SWITCHED,
    "bridge": Family.MESHED,
    "full_mesh": Family.MESHED,
    "ring": Family.TORUS,
    "torus_2d": Family.TORUS,
    "torus_3d": Family.TORUS,
}

AXES = {"ring": 1, "torus_2d": 2, "torus_3d": 3}
"""Axes of a whole domain."""

PAIR = 2
"""Two chips are joined by one link: a ring of two goes back the way that it came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What joins the chips of a group on one level.

    Attributes
    ----------
    name : str
        Of the links.
    family : Family
        Their shape.
    chips : int
        Chips joined.
    port_bytes_per_s : float or None
        What one chip sends at once over all links to others of the group, one direction [B/s]; None where not published.
    link_bytes_per_s : float or None
        What it sends to one other [B/s].
    latency_s : float
        Of one step [s]; 0 where not known.
    reduces : bool
        Whether a switch adds up on the way.
    sides : tuple of int
        Chips along each axis of a torus.
    wraps : tuple of bool
        Which of them wrap around.
    """

    name: str
    family: Family
    chips: int
    port_bytes_per_s: float | None
    link_bytes_per_s: float | None
    latency_s: float
    reduces: bool = False
    sides: tuple[int, ...] = ()
    wraps: tuple[bool, ...] = ()

    @property
    def hops(self) -> int:
        """Steps along all axes of a torus, one after the other."""
        axes = zip(self.sides, self.wraps, strict=True)
        return sum(side // 2 if wraps else side - 1 for side, wraps in axes)


def ways(wraps: tuple[bool, ...]) -> int:
    """Return the links of the worst-placed chip of a torus: two along an axis that wraps around, one at the end of one that does not.

    >>> ways((True, False))
    3
    """
    return sum(2 if wrap else 1 for wrap in wraps)


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


@cache
def most_equal_sides(chips: int, axes: int, limits: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
    """Return the sides of a torus of `chips` chips, as equal as possible, shortest first; None where there is no such shape.

    Parameters
    ----------
    chips, axes : int
        Chips, and axes to lay them along; an axis may be 1 long.
    limits : tuple of int, optional
        Longest side along each axis, in ascending order.

    Examples
    --------
    >>> most_equal_sides(8960, 3), most_equal_sides(8, 2, (16, 16)), most_equal_sides(34, 2, (16, 16))
    ((16, 20, 28), (2, 4), None)
    """
    shapes = _products(chips, axes)
    if limits is not None:
        shapes = [shape for shape in shapes if all(a <= b for a, b in zip(shape, limits, strict=True))]
    return min(shapes, key=lambda sides: (sum(sides), max(sides)), default=None)


def _products(number: int, parts: int, least: int = 1) -> list[tuple[int, ...]]:
    """Return the ways to write a number as an ascending product of so many factors."""
    if parts == 1:
        return [(number,)] if number >= least else []
    firsts = [f for f in range(least, number + 1) if f**parts <= number and number % f == 0]
    return [(first, *rest) for first in firsts for rest in _products(number // first, parts - 1, first)]


def _torus(links: ScaleUp, chips: int) -> Fabric:
    """Return the most compact slice of a torus that holds so many chips."""
    axes, port = AXES[links.topology], links.one_way.value
    link = _value(links.one_way_pair) or (None if port is None else port / (2 * axes))
    whole = tuple(sorted(links.sides or most_equal_sides(links.chips, axes) or (links.chips,)))
    sides = most_equal_sides(chips, len(whole), whole)
    if sides is None:
        shape = " x ".join(map(str, whole))
        raise InputError(f"chips: {chips} have no shape on {links.name} of {shape}, choose a product of such sides")
    every = links.wrap_multiple
    is_closed = every is not None and all(side % every == 0 for side in sides)
    closed = [is_closed if every else side == full for side, full in zip(sides, whole, strict=True)]
    wraps = tuple(wrap and side > PAIR for side, wrap in zip(sides, closed, strict=True) if side > 1)
    return Fabric(
        name=links.name,
        family=Family.TORUS,
        chips=chips,
        port_bytes_per_s=None if link is None else link * ways(wraps),
        link_bytes_per_s=link,
        latency_s=_value(links.latency) or 0.0,
        sides=tuple(side for side in sides if side > 1),
        wraps=wraps,
    )


def scale_up_fabric(links: ScaleUp, chips: int) -> Fabric:
    """Return the fabric that joins `chips` chips of one domain.

    Raises
    ------
    InputError
        If so many chips have no shape on a torus.
    """
    family = FAMILIES[links.topology]
    if family is Family.TORUS:
        return _torus(links, chips)
    port = links.one_way.value
    pair = _value(links.one_way_pair) or port
    return Fabric(
        name=links.name,
        family=family,
        chips=chips,
        port_bytes_per_s=None if port is None or pair is None else min(port, (chips - 1) * pair),
        link_bytes_per_s=pair,
        latency_s=_value(links.latency) or 0.0,
        reduces=links.in_network_reduction is not None and links.in_network_reduction.value,
    )


def scale_out_fabric(hardware: Hardware, domains: int) -> Fabric | None:
    """Return the fabric that joins chips of so many domains, one of each; None where there is none."""
    link = hardware.links.scale_out
    if link is None:
        return None
    return Fabric(
        name=link.name or "scale-out",
        family=Family.SWITCHED,
        chips=domains,
        port_bytes_per_s=link.one_way.value,
        link_bytes_per_s=link.one_way.value,
        latency_s=_value(link.latency) or 0.0,
    )


@dataclass(frozen=True, slots=True)
class Reach:
    """The fabrics that a group communicates over.

    Attributes
    ----------
    inner : Fabric or None
        Within a domain; None where no two chips of the group share one.
    outer : Fabric or None
        Between domains; None where the group is in one.
    """

    inner: Fabric | None
    outer: Fabric | None


def reach(hardware: Hardware, group: Group) -> Reach:
    """Return the fabrics that a group of chips communicates over.

    Parameters
    ----------
    hardware : Hardware
        With its links.
    group : Group
        Who takes part.

    Raises
    ------
    InputError
        If the group is larger than the domain and there is no scale-out link, or has no shape on a torus.
    """
    links = hardware.links.scale_up
    domain = links.chips if links else 1
    within = max(1, min(group.chips, domain // group.stride))
    # As many to a domain as leaves none half full.
    within = next(size for size in range(within, 0, -1) if group.chips % size == 0)
    inner = scale_up_fabric(links, within) if links and within > 1 else None
    outer = scale_out_fabric(hardware, group.chips // within) if group.chips > within else None
    if group.chips > within and outer is None:
        raise InputError(
            f"chips: {group.chips * group.stride} asked for, but {hardware.name} joins {domain} and no scale-out link is "
            "known, take fewer or give links.scale_out in its file"
        )
    return Reach(inner, outer)
