"""Numbers as people read them, for tables in the terminal."""

from __future__ import annotations

import math
from typing import Any

NOTHING = "–"
_SCALES = (
    (1e24, "Y"),
    (1e21, "Z"),
    (1e18, "E"),
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
)
_SMALL = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (0.0, "ns"))


def _digits(value: float) -> str:
    """Return three significant digits, never in exponent form."""
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def scaled(value: Any, unit: str = "") -> str:
    """Return a number with a decimal prefix.

    >>> scaled(3.35e12, "B/s")
    '3.35 TB/s'
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    factor, prefix = next(((f, p) for f, p in _SCALES if abs(value) >= f * 0.9995), (1.0, ""))
    return f"{_digits(value / factor)} {prefix}{unit}".rstrip()


def duration(seconds: Any) -> str:
    """Return a time with a fitting unit.

    >>> duration(0.0234)
    '23.4 ms'
    """
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds == 0:
        return "0 s"
    factor, unit = next((f, u) for f, u in _SMALL if seconds >= f * 0.9995)
    return f"{_digits(seconds / (factor or 1e-9))} {unit}"


def number(value: Any) -> str:
    """Return a plain number to three digits, or a dash."""
    return NOTHING if value is None or not math.isfinite(value) else _digits(float(value))


def percent(part: Any, whole: Any) -> str:
    """Return a share of a whole."""
    if part is None or whole is None or not whole:
        return NOTHING
    return f"{100 * float(part) / float(whole):.1f} %"
