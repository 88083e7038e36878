"""Where a quantity that grows with the batch becomes large enough: scipy's root finders, and exact whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.optimize.elementwise import find_root

Floats = NDArray[np.float64]

SMALLEST_BATCH = 1e-9
LARGEST_BATCH = float(2**50)
"""The range in which roots are looked for [sequences]. What is not reached at its end is never reached: see `smallest_batch`."""

RELATIVE_TOLERANCE = 1e-14


def smallest_batch(excess: Callable[[float], float], largest: float = LARGEST_BATCH) -> int | None:
    """Return the smallest whole batch at which `excess` is not negative, or None where there is none up to `largest`.

    Parameters
    ----------
    excess : callable
        What there is more than needed, as a function of the batch: times or rates, in any unit. It crosses zero upwards at most once:
        compute grows with the batch at a constant rate, weights are constant or (experts) grow ever slower, activations and KV cache
        grow at a constant rate, so that compute less memory is convex and starts below zero.
    largest : float
        Batches above this are not looked at.

    Notes
    -----
    The root comes from Brent's method; the whole number is then checked against its neighbours with `excess` itself, so that it equals
    the first one that a scan would find. Equality counts as enough.
    """
    if excess(1.0) >= 0:
        return 1
    if excess(largest) < 0:
        return None
    root = brentq(excess, 1.0, largest, xtol=1e-9, rtol=RELATIVE_TOLERANCE)
    return _nearest_whole(excess, math.ceil(root))


def largest_batch(shortfall: Callable[[float], float], largest: float = LARGEST_BATCH) -> int | None:
    """Return the largest whole batch at which a growing `shortfall` is not positive; None where even one sequence is too many."""
    if shortfall(1.0) > 0:
        return None
    first_bad = smallest_batch(lambda batch: _above_zero(shortfall(batch)), largest)
    return int(largest) if first_bad is None else first_bad - 1


def _above_zero(value: float) -> float:
    """Turn "greater than zero" into "not negative"."""
    return value if value > 0 else min(value, -math.ulp(0.0))


def _nearest_whole(excess: Callable[[float], float], guess: int) -> int:
    while guess > 1 and excess(float(guess - 1)) >= 0:
        guess -= 1
    while excess(float(guess)) < 0:
        guess += 1
    return guess


def roots(excess: Callable[[Floats, NDArray[np.int64]], Floats], count: int) -> Floats:
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
