"""Quantities with units, and the bytes that an element of a number format takes.

Inside the planner everything is in SI base units: bytes, FLOP/s, bytes per second, seconds, watts, US dollars.
Prefixes are read here and nowhere else, by the QuantiPhy library: decimal (k, M, G, T, P) and binary (Ki, Mi, Gi, Ti).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from planner.errors import UnitError, shown

MEBI = 2**20
GIGA = 10**9
TRILLION = 10**12

LARGEST_COUNT = 10**9
"""No batch, context, or number of heads, elements, experts or tokens is larger."""

DECIMAL_PREFIXES: tuple[tuple[float, str], ...] = (
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
"""For writing numbers, the largest first."""


def gigabytes_per_s(rate_bytes_per_s: float | None) -> str:
    """Return a bandwidth in words.

    >>> gigabytes_per_s(31.508e9)
    '31.508 GB/s'
    """
    return "an unpublished rate" if rate_bytes_per_s is None else f"{rate_bytes_per_s / 1e9:,.6g} GB/s"


def microseconds(time_s: float) -> str:
    """Return a short time in words.

    >>> microseconds(4.7e-7)
    '0.47 µs'
    """
    return f"{time_s * 1e6:.3g} µs"


# For each dimension its base unit, and the spellings of a unit with the factor to the base unit.
# Bits are written out ("Gbit/s"): "Gb/s" and "GB/s" are too easily mistaken for each other.
_SPELLINGS: dict[str, dict[str, float]] = {
    "FLOP/s": {"FLOP/s": 1.0, "FLOPS": 1.0, "OP/s": 1.0, "OPS": 1.0},
    "B/s": {"B/s": 1.0, "bit/s": 0.125},
    "B": {"B": 1.0},
    "s": {"s": 1.0},
    "W": {"W": 1.0},
    "USD/h": {"USD/h": 1.0},
    "USD": {"USD": 1.0},
}

_EXAMPLES = {
    "FLOP/s": "989 TFLOP/s",
    "B/s": "3.35 TB/s",
    "B": "80 GiB",
    "s": "5 us",
    "W": "700 W",
    "USD/h": "2.50 USD/h",
    "USD": "30000 USD",
}


def parse_quantity(value: object, dimension: str) -> float:
    """Return `value` in the base unit of `dimension`.

    Parameters
    ----------
    value : str, int or float
        Text with a unit (``"3.35 TB/s"``), or a plain number, which is in the base unit already.
    dimension : {"FLOP/s", "B/s", "B", "s", "W", "USD/h", "USD"}
        The base unit that names the dimension.

    Returns
    -------
    float
        The quantity [dimension], finite and not negative.

    Raises
    ------
    UnitError
        If the value is no quantity, has a unit of another dimension, or is negative, infinite or not a number.

    Examples
    --------
    >>> parse_quantity("3.35 TB/s", "B/s")
    3350000000000.0
    >>> parse_quantity("80 GiB", "B")
    85899345920.0
    """
    example = f"write for example {_EXAMPLES[dimension]!r}"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UnitError(f"{shown(value)} is not a quantity, {example}")
    number, unit = _split(value, example)
    if not math.isfinite(number) or number < 0:
        raise UnitError(f"{shown(value)} is not a finite, non-negative quantity, {example}")
    spellings = _SPELLINGS[dimension]
    if unit and unit not in spellings:
        raise UnitError(f"{shown(value)} is not in {dimension}, {example}")
    if isinstance(value, str) and not re.fullmatch(quantity_pattern(dimension), value):
        raise UnitError(f"{shown(value)} is not a quantity, {example}")
    return number * spellings.get(unit, 1.0)


_NUMBER = r"\+?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?"
_PREFIX = "([kKMGTPEZY]i?|[mun\u00b5\u03bc])?"


def quantity_pattern(dimension: str) -> str:
    """Return a regular expression for the text of a quantity, in the syntax that Python and JSON Schema (ECMA-262) share.

    Parameters
    ----------
    dimension : str
        As for `parse_quantity`, which takes no text that it does not match.

    Examples
    --------
    >>> re.fullmatch(quantity_pattern("B"), "80 GiB") is None
    False
    """
    units = "|".join(_SPELLINGS[dimension])
    return rf"^ *{_NUMBER} *({_PREFIX}({units}))? *$"


def _split(value: str | float, example: str) -> tuple[float, str]:
    """Split a quantity into its number, prefix applied, and its bare unit."""
    if not isinstance(value, str):
        try:
            return float(value), ""
        except OverflowError:
            return math.inf, ""
    from quantiphy import InvalidNumber, Quantity  # only where text is read

    # The library takes no prefix beside an exponent: "1e3 GB" is read as a number and "1 GB".
    written = _EXPONENT.fullmatch(value.strip())
    number, text = (float(written[1]), f"1 {written[2]}") if written else (1.0, value)
    try:
        quantity = Quantity(text, binary=True)
    except InvalidNumber:
        raise UnitError(f"{shown(value)} is not a quantity, {example}") from None
    return number * float(quantity), quantity.units


_EXPONENT = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+)\s*([^\W\d].*)")
"""A number with an exponent, and its unit."""


def gigabytes(size: float) -> str:
    """Return a size in words, for messages: in GB, and what is less in a unit that shows it.

    >>> gigabytes(16_060_522_496)
    '16.06 GB'
    >>> gigabytes(1_234_567)
    '1.23 MB'
    >>> gigabytes(5)
    '5 B'
    """
    unit, prefix = next(
        ((unit, scale) for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if size >= scale), ("B", 1)
    )
    return f"{size:.0f} B" if unit == "B" else f"{size / prefix:.2f} {unit}"


@dataclass(frozen=True, slots=True)
class Format:
    """How a tensor is stored: bits of an element, and scales shared by a block of elements.

    Attributes
    ----------
    name : str
        Name in YAML, JSON and reports.
    bits : float
        Bits of one element; a fraction where a tensor mixes formats.
    block : int
        Elements that share one scale; 0 where scales are per tensor or channel, and too small to count.
    scale_bits : float
        Bits of the scale (and zero-point) of one block.
    """

    name: str
    bits: float
    block: int = 0
    scale_bits: float = 0

    @property
    def bytes_per_element(self) -> float:
        """Bytes that one element takes, its share of the block's scale included [B].

        >>> FORMATS["nvfp4"].bytes_per_element
        0.5625
        """
        scale = self.scale_bits / self.block if self.block else 0.0
        return (self.bits + scale) / 8


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("fp32", 32),
        Format("bf16", 16),
        Format("fp16", 16),
        Format("fp8", 8),
        # DeepSeek-V3 technical report (arXiv 2412.19437) section 3.3.2: one fp32 scale for a tile of 128 x 128 weights.
        Format("fp8_block", 8, block=128 * 128, scale_bits=32),
        # The same section: one fp32 scale for each 1 x 128 run of activations.
        Format("fp8_run", 8, block=128, scale_bits=32),
        Format("int8", 8),
        # AWQ and GPTQ checkpoints: groups of 128 along the input, a 16-bit scale and a 4-bit zero-point.
        Format("int4", 4, block=128, scale_bits=20),
        # OCP Microscaling Formats specification 1.0, section 5: 32 elements share an 8-bit exponent.
        Format("mxfp4", 4, block=32, scale_bits=8),
        # NVIDIA's NVFP4: 16 elements share an e4m3 scale (and a tensor one fp32 scale, not counted).
        Format("nvfp4", 4, block=16, scale_bits=8),
        Format("fp4", 4, block=16, scale_bits=8),
    )
}
