"""The algorithms of each collective on each shape of fabric, and the cheapest of them.

Within a domain an algorithm is a row of a table: what a chip sends, over which bandwidth, in how many steps. Between domains the same
algorithms run over the scale-out links, on what a domain has to exchange with the others; the parts overlap, chunk by chunk, so that the
slowest link decides, while their latencies add up. Left out: traffic that a collective causes in the chips' memory (less than on the
slower link), contention between collectives, and the start of a kernel, which belongs to estimates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from planner.collectives.fabric import Fabric, Family
from planner.collectives.volumes import gather_bytes, in_switch_bytes, one_shot_bytes, ring_bytes, tree_bytes
from planner.numeric import Numeric, is_array
from planner.op import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a collective costs one chip.

    Attributes
    ----------
    algorithm : str, or array of str
        The algorithm, for each element where sizes are arrays.
    sent_bytes : Numeric
        Bytes through its links, one direction [B].
    steps : Numeric
        Steps that wait for each other.
    latency_s : Numeric
        Of all steps [s].
    transfer_s : Numeric or None
        Of all bytes [s]; None where the link's bandwidth is not published.
    """

    algorithm: Any
    sent_bytes: Numeric
    steps: Numeric
    latency_s: Numeric
    transfer_s: Numeric | None

    @property
    def seconds(self) -> Numeric | None:
        """Time of the collective [s]."""
        return None if self.transfer_s is None else self.latency_s + self.transfer_s


NOTHING = Cost(algorithm="none", sent_bytes=0, steps=0, latency_s=0.0, transfer_s=0.0)
"""A collective of one chip."""


def _always(fabric: Fabric) -> bool:  # the signature of all conditions
    return True


def _port(fabric: Fabric) -> float | None:
    return fabric.port_bytes_per_s


def _link(fabric: Fabric) -> float | None:
    return fabric.link_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One way to run a collective.

    Attributes
    ----------
    name : str
        Its name in results.
    sent : callable
        (size, fabric) to what a chip sends [B].
    steps : callable
        fabric to steps that wait for each other.
    rate : callable
        fabric to the bandwidth of the links used at once [B/s].
    runs_on : callable
        Whether a fabric allows it.
    """

    name: str
    sent: Callable[[Numeric, Fabric], Numeric]
    steps: Callable[[Fabric], int]
    rate: Callable[[Fabric], float | None] = _port
    runs_on: Callable[[Fabric], bool] = _always

    def cost(self, size_bytes: Numeric, fabric: Fabric) -> Cost:
        """Return what it costs on a fabric."""
        sent, steps, rate = self.sent(size_bytes, fabric), self.steps(fabric), self.rate(fabric)
        return Cost(
            algorithm=self.name,
            sent_bytes=sent,
            steps=steps,
            latency_s=steps * fabric.latency_s,
            transfer_s=None if rate is None else sent / rate,
        )


# ---- tables ----------------------------------------------------------------------------------------------------------


def _by_chips(volume: Callable[[Numeric, float], Numeric]) -> Callable[[Numeric, Fabric], Numeric]:
    return lambda size, fabric: volume(size, fabric.chips)


def _whole(size: Numeric, fabric: Fabric) -> Numeric:  # the signature of all volumes
    return size


def _is_ring(fabric: Fabric) -> bool:
    """Whether the chips form one closed ring, which can also be used in one direction alone."""
    return len(fabric.sides) == 1 and all(fabric.wraps)


def _is_closed(fabric: Fabric) -> bool:
    return all(fabric.wraps)


def _is_open(fabric: Fabric) -> bool:
    return not _is_closed(fabric)


def _busiest_axis(fabric: Fabric) -> tuple[float, int]:
    """Return the load and the links of the axis that an all-to-all takes longest over: bytes for each byte that a chip sends.

    Along an axis of n chips, ``floor(n/2) ceil(n/2) / n`` of what every chip sends crosses the middle, over one link each way; a ring
    has two middles. Derived here: each half sends to the other its share of the other's chips.
    """
    loads = [
        (side // 2 * ((side + 1) // 2) / side, 2 if wrap else 1)
        for side, wrap in zip(fabric.sides, fabric.wraps, strict=True)
    ]
    return max(loads, key=lambda load: load[0] / load[1])


def _axis_rate(fabric: Fabric) -> float | None:
    link = fabric.link_bytes_per_s
    return None if link is None else link * _busiest_axis(fabric)[1]


_GATHER, _REDUCE = _by_chips(gather_bytes), _by_chips(ring_bytes)
_GATHERS = (Operation.ALL_GATHER, Operation.REDUCE_SCATTER)


def _rings(rounds: int, sent: Callable[[Numeric, Fabric], Numeric]) -> tuple[Algorithm, ...]:
    """Return the algorithms of a torus: data goes round every axis both ways where the axis is closed."""
    return (
        Algorithm(name="one_way_ring", sent=sent, steps=lambda f: rounds * (f.chips - 1), rate=_link, runs_on=_is_ring),
        Algorithm(name="two_way_ring", sent=sent, steps=lambda f: rounds * f.hops, runs_on=_is_closed),
        # Data flows both ways, but the chips at the ends receive over one link.
        Algorithm(name="one_way_ring", sent=sent, steps=lambda f: rounds * f.hops, runs_on=_is_open),
    )


TABLE: dict[tuple[Family, Operation], tuple[Algorithm, ...]] = {
    (Family.SWITCHED, Operation.ALL_REDUCE): (
        Algorithm(name="ring", sent=_REDUCE, steps=lambda f: 2 * (f.chips - 1)),
        Algorithm(name="tree", sent=_by_chips(tree_bytes), steps=lambda f: 2 * math.ceil(math.log2(f.chips))),
        Algorithm(name="one_shot", sent=_by_chips(one_shot_bytes), steps=lambda _: 1),
        Algorithm(name="in_switch", sent=_by_chips(in_switch_bytes), steps=lambda _: 2, runs_on=lambda f: f.reduces),
    ),
    **{
        (Family.SWITCHED, what): (Algorithm(name="ring", sent=_GATHER, steps=lambda f: f.chips - 1),)
        for what in _GATHERS
    },
    (Family.SWITCHED, Operation.ALL_TO_ALL): (Algorithm(name="direct", sent=_GATHER, steps=lambda _: 1),),
    (Family.MESHED, Operation.ALL_REDUCE): (
        Algorithm(name="direct", sent=_REDUCE, steps=lambda _: 2),
        Algorithm(name="one_shot", sent=_by_chips(one_shot_bytes), steps=lambda _: 1),
        Algorithm(name="ring", sent=_REDUCE, steps=lambda f: 2 * (f.chips - 1), rate=_link),
    ),
    **{
        (Family.MESHED, what): (Algorithm(name="direct", sent=_GATHER, steps=lambda _: 1),)
        for what in (*_GATHERS, Operation.ALL_TO_ALL)
    },
    (Family.TORUS, Operation.ALL_REDUCE): _rings(2, _REDUCE),
    **{(Family.TORUS, what): _rings(1, _GATHER) for what in _GATHERS},
    (Family.TORUS, Operation.ALL_TO_ALL): (
        Algorithm(
            name="hop_by_hop", sent=lambda s, f: s * _busiest_axis(f)[0], steps=lambda f: f.hops, rate=_axis_rate
        ),
    ),
    **{
        (family, Operation.SEND_RECEIVE): (Algorithm(name="direct", sent=_whole, steps=lambda _: 1, rate=_link),)
        for family in Family
    },
}
"""The algorithms of each collective on each shape of fabric."""


# ---- choosing --------------------------------------------------------------------------------------------------------


def options(operation: Operation, size_bytes: Numeric, fabric: Fabric) -> tuple[Cost, ...]:
    """Return what a collective costs under each algorithm that a fabric allows."""
    table = TABLE[fabric.family, operation]
    return tuple(algorithm.cost(size_bytes, fabric) for algorithm in table if algorithm.runs_on(fabric))


def cheapest(costs: Sequence[Cost]) -> Cost:
    """Return the cheapest of some costs; for each element where they are arrays. Equal: the earlier one."""
    first = costs[0]
    seconds = [cost.seconds for cost in costs]
    times = [time for time in seconds if time is not None]
    if len(costs) == 1 or len(times) < len(costs):
        return first
    if not is_array(*times):
        return min(zip(times, costs, strict=True), key=lambda pair: pair[0])[1]
    import numpy as np  # see is_array

    best = np.argmin(np.stack(np.broadcast_arrays(*times)), axis=0)

    def pick(name: str) -> Any:
        values = np.broadcast_arrays(best, *(getattr(cost, name) for cost in costs))[1:]
        return np.choose(best, values)

    names = ("sent_bytes", "steps", "latency_s", "transfer_s")
    algorithm = np.asarray([cost.algorithm for cost in costs])[best]
    return Cost(algorithm=algorithm, **{name: pick(name) for name in names})
