"""Matmuls cut over chips: from which width on they are not bound by the network, and how many chips a width carries.

Closed forms for one matmul ``[B, D] x [D, F]`` on n chips of C FLOP/s and W bytes/s, with W_link bytes/s of link in one direction. They
leave latency out: below `latency_bound_bytes` the width no longer decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.collectives.volumes import VOLUMES, transfer_seconds
from planner.numeric import Numeric, maximum


def critical_width(
    flops_per_s: float,
    link_bytes_per_s: float,
    chips: int = 2,
    *,
    algorithm: str = "ring",
    output_bytes: float = 2.0,
) -> float:
    """Return the contracted dimension above which a matmul cut along it is bound by compute, not by the network.

    Parameters
    ----------
    flops_per_s : float
        Peak of one chip, C [FLOP/s].
    link_bytes_per_s : float
        One direction; twice that of a link where a ring is used both ways [B/s].
    chips : int
        n.
    algorithm : str
        How partial sums are added up: a key of `VOLUMES`.
    output_bytes : float
        Bytes of an element of a partial sum.

    Notes
    -----
    Each chip computes ``2 B D F / (n C)`` and sends ``v o B F / W_link`` for partial sums of o bytes, v the volume of the algorithm for
    a buffer of one byte. Equal at ``D = n v o C / (2 W_link)``; for a ring and 16 bits, ``2 (n - 1) C / W_link``. B and F cancel.

    Examples
    --------
    >>> [round(critical_width(197e12, 45e9, n)) for n in (2, 4, 8)]
    [8756, 26267, 61289]
    """
    volume = float(VOLUMES[algorithm](1.0, chips))
    return chips * volume * output_bytes * flops_per_s / (2 * link_bytes_per_s)


def critical_width_decode(
    batch: Numeric,
    memory_bytes_per_s: float,
    link_bytes_per_s: float,
    chips: int = 2,
    *,
    algorithm: str = "ring",
    output_bytes: float = 2.0,
    weight_bytes: float = 2.0,
) -> Numeric:
    """Return the same where reading weights is what the chips share: batches below the critical one.

    Notes
    -----
    ``w D F / (n W)`` to read against ``v o B F / W_link`` to send: ``D = n v o B W / (w W_link)``.

    Examples
    --------
    >>> round(critical_width_decode(16, 820e9, 45e9), 1)
    583.1
    """
    volume = float(VOLUMES[algorithm](1.0, chips))
    return chips * volume * output_bytes * batch * memory_bytes_per_s / (weight_bytes * link_bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class CutMatmul:
    """The three times of a matmul cut along its contracted axis [s]."""

    compute_s: Numeric
    memory_s: Numeric
    network_s: Numeric

    @property
    def lower_s(self) -> Numeric:
        """With perfect overlap [s]."""
        return maximum(maximum(self.compute_s, self.memory_s), self.network_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates of one chip.

    Attributes
    ----------
    flops_per_s : float
        Peak [FLOP/s].
    memory_bytes_per_s, link_bytes_per_s : float
        Bandwidth of memory, and of the link in one direction [B/s]; infinite to leave it out.
    """

    flops_per_s: float
    memory_bytes_per_s: float = math.inf
    link_bytes_per_s: float = math.inf


def cut_matmul(
    shape: tuple[Numeric, Numeric, Numeric],
    rates: Rates,
    chips: int = 2,
    *,
    algorithm: str = "ring",
    element: float = 2.0,
) -> CutMatmul:
    """Return the times of a matmul ``[B, D] x [D, F]`` whose contracted axis D is cut over chips.

    Parameters
    ----------
    shape : tuple
        B, D and F.
    rates : Rates
        Of one chip.
    chips : int
        n; with 1 nothing is sent.
    algorithm : str
        How partial sums are added up.
    element : float
        Bytes of an element of inputs, weights and sums.

    Notes
    -----
    ``2 B D F / (n C)``, ``b (B D / n + D F / n + B F) / W`` and ``v b B F / W_link``: the traffic to memory does not go away.

    Examples
    --------
    >>> times = cut_matmul((512, 8192, 28672), Rates(flops_per_s=197e12, memory_bytes_per_s=820e9, link_bytes_per_s=45e9))
    >>> [round(t * 1e6) for t in (times.compute_s, times.memory_s, times.network_s)]
    [610, 327, 652]
    """
    b, d, f = shape
    sent = VOLUMES[algorithm](element * b * f, chips) if chips > 1 else 0
    return CutMatmul(
        compute_s=2 * b * d * f / (chips * rates.flops_per_s),
        memory_s=element * (b * d / chips + d * f / chips + b * f) / rates.memory_bytes_per_s,
        network_s=transfer_seconds(sent, rates.link_bytes_per_s),
    )


def most_tensor_parallel(width: float, ratio: float, axes: int = 1) -> float:
    """Return how many chips can share an FFN of a width before its collectives take longer than its work.

    Parameters
    ----------
    width : float
        FFN width, F.
    ratio : float
        Peak over link bandwidth, C / W_link, where compute-bound; batch times memory over link bandwidth where memory-bound [FLOP/B].
    axes : int
        Axes of a torus that the collectives use at once.

    Notes
    -----
    ``Y < axes F / ratio`` (Austin et al., How to Scale Your Model, chapters 5 and 7): work falls with Y, what is sent does not.

    Examples
    --------
    >>> most_tensor_parallel(16384, 32 * 8)
    64.0
    """
    return axes * width / ratio


def two_dimensional_break_even(width_ratio: float, axes_1d: float = 1, axes_2d: tuple[float, float] = (1, 1)) -> float:
    """Return the number of chips from which on an FFN cut along both its axes sends less than one cut along F alone.

    Parameters
    ----------
    width_ratio : float
        F / D.
    axes_1d : float
        Axes of a torus that the collectives of the one-axis cut use.
    axes_2d : tuple of float
        Axes used along D and along F by the two-axis cut.

    Notes
    -----
    Derived here: cut along F alone, ``4 B D / (a W)`` for the gather and the scatter of ``[B, D]``. Cut X-fold along D and Y-fold along
    F, ``4 B (D / X a_y + F / Y a_x) / W``; with X Y = N least at ``8 B sqrt(D F / (N a_x a_y)) / W``. Equal at
    ``N = 4 (F / D) a^2 / (a_x a_y)``. With F = 4 D and one axis each it is the (F / D)^2 = 16 of Pope et al. (arXiv 2211.05102).

    Examples
    --------
    >>> two_dimensional_break_even(4), two_dimensional_break_even(4, axes_1d=3, axes_2d=(1, 2))
    (16.0, 72.0)
    """
    along_d, along_f = axes_2d
    return 4.0 * width_ratio * axes_1d**2 / (along_d * along_f)
