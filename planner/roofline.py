"""One operation on one chip: times, bound, intensity and attainable rate. Knows no model.

The bounds are those of the roofline model (Williams, Waterman and Patterson, CACM 52(4), 2009), with the network as a third roof:
the time of an operation lies between the largest of its three times (perfect overlap) and their sum (none).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from planner.collectives import Cost, cost_of
from planner.hardware import Hardware, Rate
from planner.numeric import Numeric, anywhere, is_array, maximum, minimum
from planner.op import Collective, Op

BOUNDS = ("compute", "memory", "network")
"""What can limit an operation; where times are equal the earlier one is named."""


def compute_time(flops: Numeric, flops_per_s: float) -> Numeric:
    """Return the time to compute [s].

    >>> round(compute_time(1e12, 989e12), 9)
    0.001011122
    """
    return flops / flops_per_s


def transfer_time(size_bytes: Numeric, bytes_per_s: float) -> Numeric:
    """Return the time to move bytes at a bandwidth [s]."""
    return size_bytes / bytes_per_s


def intensity(flops: Numeric, size_bytes: Numeric) -> Numeric:
    """Return the arithmetic intensity [FLOP/B]; nan where nothing is moved.

    >>> intensity(2 * 1024 - 1, 4 * 1024 + 2)  # a bf16 dot product of 1,024 elements
    0.49951195...
    """
    if is_array(flops, size_bytes):
        import numpy as np  # see is_array

        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(np.equal(size_bytes, 0), np.nan, np.divide(flops, size_bytes))
    return flops / size_bytes if size_bytes else math.nan


def critical_intensity(flops_per_s: float, bytes_per_s: float) -> float:
    """Return the intensity from which on a chip computes at its peak, the ridge of the roofline [FLOP/B].

    >>> round(critical_intensity(197e12, 820e9), 2)
    240.24
    """
    return flops_per_s / bytes_per_s


def attainable(intensity_: Numeric, flops_per_s: float, bytes_per_s: float) -> Numeric:
    """Return the rate that the roofline allows at an intensity [FLOP/s].

    >>> attainable(120.0, 197e12, 820e9)
    98400000000000.0
    """
    return minimum(flops_per_s, intensity_ * bytes_per_s)


def bound_name(compute_s: Numeric, memory_s: Numeric, network_s: Numeric) -> Any:
    """Return which of the three times is the largest: text, or an array of text. Equal: compute before memory before network."""
    if not is_array(compute_s, memory_s, network_s):
        plain = (float(compute_s), float(memory_s), float(network_s))
        return BOUNDS[plain.index(max(plain))]
    import numpy as np  # see is_array

    times = np.stack(np.broadcast_arrays(compute_s, memory_s, network_s))
    return np.asarray(BOUNDS)[np.argmax(times, axis=0)]


def critical_batch(
    critical_intensity_: float,
    inner: float,
    outer: float,
    *,
    weight_bytes: float = 2.0,
    activation_bytes: float = 2.0,
    output_bytes: float | None = None,
) -> float | None:
    """Return the number of rows from which on a matmul ``[B, D] x [D, F]`` is compute-bound.

    Parameters
    ----------
    critical_intensity_ : float
        Peak over bandwidth, C / W [FLOP/B].
    inner, outer : float
        D and F; infinite for the rule of thumb ``B = I* w / 2``.
    weight_bytes, activation_bytes, output_bytes : float
        Bytes of an element of weights, input and result; the result as the input where not given.

    Returns
    -------
    float or None
        The root, in tokens; None where no number of rows is enough.

    Notes
    -----
    Intensity is ``2 B D F / (a B D + w D F + o B F)``; set equal to I* and solved for B:
    ``B = I* w / (2 - I* (a / F + o / D))``, never where the denominator is not positive.

    Examples
    --------
    >>> round(critical_batch(197e12 / 820e9, 8192, 8192), 3)
    255.213
    >>> critical_batch(197e12 / 820e9, 480, 480) is None
    True
    """
    output = activation_bytes if output_bytes is None else output_bytes
    denominator = 2 - critical_intensity_ * (activation_bytes / outer + output / inner)
    return critical_intensity_ * weight_bytes / denominator if denominator > 0 else None


def critical_batch_experts(dense: float, experts: float, chosen: float) -> float:
    """Return the critical batch of routed experts from that of a dense layer [tokens].

    Parameters
    ----------
    dense : float
        Critical batch of a dense layer [tokens].
    experts, chosen : float
        Experts, and those of a token; or all weights and the active ones.

    Notes
    -----
    ``B E / k``: an expert sees k / E of the tokens (Austin et al., How to Scale Your Model, chapter 7).

    Examples
    --------
    >>> critical_batch_experts(240, 16, 2)
    1920.0
    """
    return dense * experts / chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """An operation against the roofline of a chip; all runs of the operation in a step together.

    Attributes
    ----------
    op : Op
        What was rated.
    rate : Rate
        The peak that its arithmetic runs at.
    flops, weight_bytes, activation_bytes, kv_bytes, network_bytes : Numeric
        Work of all runs [FLOP, B].
    intensity : Numeric
        FLOPs for each byte of the chip's memory [FLOP/B].
    critical_intensity : float or None
        The ridge for this arithmetic [FLOP/B].
    compute_s, memory_s, network_s : Numeric or None
        The three times [s]; None where the chip has no rate for the arithmetic, memory or link.
    cost : Cost, optional
        What one run of a collective costs, and by which algorithm; None where nothing is exchanged.
    """

    op: Op
    rate: Rate
    flops: Numeric
    weight_bytes: Numeric
    activation_bytes: Numeric
    kv_bytes: Numeric
    network_bytes: Numeric
    intensity: Numeric
    critical_intensity: float | None
    compute_s: Numeric | None
    memory_s: Numeric | None
    network_s: Numeric | None
    cost: Cost | None = None

    @property
    def memory_bytes(self) -> Numeric:
        """Bytes that go to or come from the chip's memory [B]."""
        return self.weight_bytes + self.activation_bytes + self.kv_bytes

    @property
    def is_rated(self) -> bool:
        """Whether the chip's datasheet says enough to give times."""
        return all(time is not None for time in self._times)

    @property
    def lower_s(self) -> Numeric | None:
        """Time with perfect overlap [s]."""
        return largest(self._times)

    @property
    def upper_s(self) -> Numeric | None:
        """Time with no overlap [s]."""
        return total(self._times)

    @property
    def bound(self) -> Any:
        """What limits it; None where it has no times."""
        return bound_of(self._times)

    @property
    def missing(self) -> str:
        """Why there are no times, in words; empty where there are."""
        if self.compute_s is None:
            return self.rate.note
        unknown = "memory bandwidth" if self.memory_s is None else "link bandwidth" if self.network_s is None else ""
        return f"the {unknown} is not published: nothing can be said" if unknown else ""

    @property
    def _times(self) -> list[Numeric | None]:
        return [self.compute_s, self.memory_s, self.network_s]

    @property
    def attainable_flops(self) -> Numeric | None:
        """The rate that the roofline allows at this intensity [FLOP/s]; None for what is no arithmetic and moves nothing."""
        if self.critical_intensity is None or self.rate.flops_per_s is None or self.cost is not None:
            return None
        bandwidth = self.rate.flops_per_s / self.critical_intensity
        return attainable(self.intensity, self.rate.flops_per_s, bandwidth)


def rate_op(op: Op, chip: Hardware) -> Rating:
    """Rate one operation on one chip.

    An operation without arithmetic that counts (a norm, a look-up, a collective) takes no compute time, whatever the chip lacks.
    """
    rate, bandwidth = chip.rate(op.arithmetic), chip.memory.bandwidth.value
    flops = op.count * op.flops
    weight, activation, kv = op.count * op.weight_bytes, op.count * op.activation_bytes, op.count * op.kv_bytes
    moved = weight + activation + kv
    idle = not anywhere(flops)
    compute_s: Numeric | None = 0.0 if idle else None
    if not idle and rate.flops_per_s is not None:
        compute_s = compute_time(flops, rate.flops_per_s)
    ridge = critical_intensity(rate.flops_per_s, bandwidth) if rate.flops_per_s and bandwidth else None
    cost = cost_of(op, chip) if isinstance(op, Collective) else None
    seconds = cost.seconds if cost else 0.0
    return Rating(
        op=op,
        rate=rate,
        flops=flops,
        weight_bytes=weight,
        activation_bytes=activation,
        kv_bytes=kv,
        network_bytes=op.count * cost.sent_bytes if cost else 0,
        intensity=intensity(flops, moved),
        critical_intensity=ridge,
        compute_s=compute_s,
        # A collective's own traffic to memory is not counted: it never takes longer than its link.
        memory_s=0.0 if cost else transfer_time(moved, bandwidth) if bandwidth else None,
        network_s=None if seconds is None else op.count * seconds,
        cost=cost,
    )


def largest(times: Sequence[Numeric | None]) -> Numeric | None:
    """Return the largest of some times; None where one is not known."""
    known = [time for time in times if time is not None]
    return reduce(maximum, known) if len(known) == len(times) else None


def bound_of(times: Sequence[Numeric | None]) -> Any:
    """Return which of the times to compute, on memory and on the network is the largest; None where one is not known."""
    known = [time for time in times if time is not None]
    return bound_name(*known) if len(known) == len(times) else None


def total(values: Sequence[Numeric | None]) -> Numeric | None:
    """Return the sum; None where a part of it is not known."""
    result: Numeric = 0
    for value in values:
        if value is None:
            return None
        result = result + value
    return result
