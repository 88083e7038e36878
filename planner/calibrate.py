"""Measurements to coefficients: so far, of collectives.

Covered: the form of a collective's measured time and its fit. Left out: every other kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.errors import InputError
from planner.numeric import Numeric

COEFFICIENTS = 5
"""Of `CollectiveFit`: no fewer measurements can be fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveFit:
    """Measured time of a collective on one kind of link with one library.

    Attributes
    ----------
    call_s : float
        Of a call, however small [s].
    chip_s : float
        For each further chip [s].
    link_share : float
        Part of the datasheet's bandwidth that large messages reach.
    ramp_s : float
        How slowly messages reach it: a message of ``ramp_s`` times the bandwidth takes as long again [s].
    crowding : float
        How much chips are in each other's way: near 0 behind a switch, above 1 where they share a host's bridges.

    Notes
    -----
    ``call + chip (n - 1) + (n - 1)^crowding w / (share W) + sqrt(ramp w / W)`` for w bytes that a chip sends over a link of W bytes/s:
    the alpha-beta model, and a term between the two for messages that are cut into too few chunks to keep the link filled.
    """

    call_s: float
    chip_s: float
    link_share: float
    ramp_s: float
    crowding: float = 0.0

    def seconds(self, chips: Numeric, sent_bytes: Numeric, link_bytes_per_s: float) -> Numeric:
        """Return the time of a collective [s].

        >>> CollectiveFit(call_s=5e-6, chip_s=1e-6, link_share=0.8, ramp_s=0.0).seconds(2, 0.8e6, 1e9)
        0.001006
        """
        wire_s = sent_bytes / link_bytes_per_s
        crowd = (chips - 1) ** self.crowding
        return (
            self.call_s + self.chip_s * (chips - 1) + crowd * wire_s / self.link_share + (self.ramp_s * wire_s) ** 0.5
        )


def fit_collective(
    chips: ArrayLike, sent_bytes: ArrayLike, seconds: ArrayLike, link_bytes_per_s: float
) -> CollectiveFit:
    """Fit `CollectiveFit` to measurements.

    Parameters
    ----------
    chips, sent_bytes, seconds : array
        For each measurement: chips that took part, bytes that one sent [B], time [s].
    link_bytes_per_s : float
        Datasheet bandwidth, one direction [B/s].

    Raises
    ------
    InputError
        If there are fewer measurements than coefficients, or times that are not positive.

    Notes
    -----
    Robust least squares (soft L1) on the logarithm of the time, so that microseconds and milliseconds count alike.
    """
    from scipy.optimize import least_squares  # slow to import

    n, sent, measured = (np.asarray(column, dtype=float) for column in (chips, sent_bytes, seconds))
    if len(measured) < COEFFICIENTS:
        raise InputError(f"measurements: {len(measured)} are too few, at least {COEFFICIENTS} are needed")
    if np.any(measured <= 0):
        raise InputError(f"seconds: {measured.min()} is no time, measurements are above 0")
    least = float(measured.min())

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log(_from_logs(logs, least).seconds(n, sent, link_bytes_per_s) / measured)

    # From a call that takes half of the shortest time, chips that add little and are hardly in each other's way, three quarters of the
    # link, and a short ramp.
    start = np.log([0.5, 0.1, 0.75, 0.1, 0.1])
    found = least_squares(residuals, start, loss="soft_l1", f_scale=0.1)
    return _from_logs(found.x, least)


def _from_logs(logs: NDArray[np.float64], scale_s: float) -> CollectiveFit:
    """Return coefficients from their logarithms, which keeps them positive; times are in units of `scale_s`."""
    call, chip, share, ramp, crowding = np.exp(np.clip(logs, -50, 50)).tolist()
    return CollectiveFit(
        call_s=call * scale_s, chip_s=chip * scale_s, link_share=share, ramp_s=ramp * scale_s, crowding=crowding
    )
