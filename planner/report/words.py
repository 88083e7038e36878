"""Numbers as people read them, for tables in the terminal and for reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from planner.units import DECIMAL_PREFIXES

NOTHING = "–"
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
    factor, prefix = next(((f, p) for f, p in DECIMAL_PREFIXES if abs(value) >= f * 0.9995), (1.0, ""))
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


def number_or_dash(value: int | None) -> str:
    """Return a whole number in full, or a dash."""
    return NOTHING if value is None else f"{value:,}"


def percent(part: Any, whole: Any) -> str:
    """Return a share of a whole."""
    if part is None or whole is None or not whole:
        return NOTHING
    return f"{100 * float(part) / float(whole):.1f} %"


_FIGURE_UNITS = {
    "peak": "FLOP/s",
    "capacity": "B",
    "usable": "B",
    "bandwidth": "B/s",
    "one_way": "B/s",
    "one_way_pair": "B/s",
    "latency": "s",
    "tdp": "W",
    "hourly": "USD/h",
    "list": "USD",
}


def figure(path: str, value: Any) -> str:
    """Return a figure of a chip with its unit, which the first or the last part of its path decides.

    >>> figure("memory.bandwidth", 3.35e12)
    '3.35 TB/s'
    >>> figure("power.tdp", 700.0)
    '700 W'
    """
    parts = path.split(".")
    unit = _FIGURE_UNITS.get(parts[0]) or _FIGURE_UNITS[parts[-1]]
    if unit in ("W", "USD/h", "USD") and value is not None:
        return f"{value:,.10g} {unit}"
    return duration(value) if unit == "s" else scaled(value, unit)


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return names as a phrase, cut off where there are many; what is cut off is never a single name.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    >>> listed(["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "new token"), counted(4096, "token")
    ('1 new token', '4,096 tokens')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
