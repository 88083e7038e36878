"""Where a quantity that grows with the batch becomes large enough: scipy's root finders, and exact whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.optimize.elementwise import find_root

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]

SMALLEST_BATCH = 1e-9
LARGEST_BATCH = float(2**50)
"""The range in which roots are looked for [sequences]. What is not reached at its end is never reached: see `smallest_batch`."""

RELATIVE_TOLERANCE = 1e-14


def smallest_batch(
    excess: Callable[[float], float], quantum: int = 1, largest: float = LARGEST_BATCH, near: float | None = None
) -> int | None:
    """Return the smallest whole batch at which `excess` is not negative, or None where there is none up to `largest`.

    Parameters
    ----------
    excess : callable
        What there is more than needed, as a function of the batch, in any unit.
    quantum : int
        Sequences that are dealt out together: chips work on ``ceil(batch / quantum)`` of them.
    largest : float
        Batches above this are not looked at.
    near : float, optional
        Where the root is thought to be; a wrong guess costs time only.

    Notes
    -----
    Compute grows with the batch at a constant rate; weights are constant or (experts) are read ever more slowly; activations, KV cache
    and messages grow at a constant rate. Compute less memory, or less network, is then a convex function of the batch that starts
    below zero, and crosses it upwards at most once. The root comes from Brent's method; the whole number is checked against its
    neighbours with `excess` itself, so that it equals the first that a scan would find. Equality counts as enough.

    With a quantum q the function is a staircase: convex along the multiples ``m q``, along the first batches of each step
    ``(m - 1) q + 1``, and between the two. So the first batch lies in the first step, or is the first of a later one, or lies in the
    step whose last batch is the first that is enough.
    """
    if quantum == 1:
        return _smallest_whole(excess, 1, largest, near)
    for batch in range(1, quantum + 1):
        if excess(float(batch)) >= 0:
            return batch
    found = []
    step = None if near is None else near / quantum
    first = _smallest_whole(lambda n: excess((n - 1) * quantum + 1), 2, largest / quantum, step)
    if first is not None:
        found.append((first - 1) * quantum + 1)
    last = _smallest_whole(lambda n: excess(n * quantum), 2, largest / quantum, step)
    if last is not None:
        inside = range((last - 1) * quantum + 1, last * quantum + 1)
        found.append(next(batch for batch in inside if excess(float(batch)) >= 0))
    return min(found, default=None)


def _smallest_whole(
    excess: Callable[[float], float], least: int, largest: float, near: float | None = None
) -> int | None:
    """Return the smallest whole number from `least` on at which a function that crosses zero upwards once is not negative."""
    if excess(float(least)) >= 0:
        return least
    if largest <= least or not excess(largest) >= 0:  # nan, where a rate is not known, is not enough either
        return None
    # In logarithms, as the range spans fifteen powers of ten.
    bracket = _bracket(excess, least, largest, near)
    root = math.exp(brentq(lambda t: excess(math.exp(t)), *bracket, xtol=RELATIVE_TOLERANCE, rtol=RELATIVE_TOLERANCE))
    guess = max(least, math.ceil(root))
    while guess > least and excess(float(guess - 1)) >= 0:
        guess -= 1
    while excess(float(guess)) < 0:
        guess += 1
    return guess


def _bracket(excess: Callable[[float], float], least: int, largest: float, near: float | None) -> tuple[float, float]:
    """Return logarithms between which the crossing is: an octave each way of where it is thought to be, if it is there."""
    if near is not None and 2 * least < near < largest / 2 and excess(near / 2) < 0 <= excess(near * 2):
        return math.log(near / 2), math.log(near * 2)
    return math.log(least), math.log(largest)


def decisive_batches(most: int, quantum: int = 1) -> tuple[int, ...]:
    """Return batches of which at least one is enough if any batch up to `most` is, for a function as in `smallest_batch`.

    The first step in full, and of the others the first batch of the last one, the last batch of the last full one, and `most` itself.

    Examples
    --------
    >>> decisive_batches(10, quantum=4)
    (1, 2, 3, 4, 8, 9, 10)
    """
    first = range(1, min(quantum, most) + 1)
    last_step = -(-most // quantum)
    ends = (most // quantum * quantum, (last_step - 1) * quantum + 1, most)
    return tuple(sorted({*first, *(batch for batch in ends if batch >= 1)}))


def roots(excess: Callable[[Floats, Indices], Floats], count: int) -> Floats:
    """Return the real batch at which each of `count` quantities crosses zero upwards, found together.

    Parameters
    ----------
    excess : callable
        Takes batches and the indices of the quantities wanted, both of one shape, and returns the excess of each.
    count : int
        How many quantities there are.

    Returns
    -------
    array
        nan where a quantity never reaches zero; 0 where it is never below it.
    """
    indices = np.arange(count)
    low, high = np.full(count, SMALLEST_BATCH), np.full(count, LARGEST_BATCH)
    at_low, at_high = excess(low, indices), excess(high, indices)
    result = np.where(at_low >= 0, 0.0, np.nan)
    open_ = np.flatnonzero((at_low < 0) & (at_high >= 0))
    if open_.size:
        found = find_root(  # type: ignore[call-overload]  # the stubs know scalar brackets only
            lambda exponents, which: excess(np.exp(exponents), which),
            (np.log(low[open_]), np.log(high[open_])),
            args=(open_,),
            tolerances={"xatol": RELATIVE_TOLERANCE, "xrtol": RELATIVE_TOLERANCE},
        )
        result[open_] = np.exp(found.x)
    return result
