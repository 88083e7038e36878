"""Quantities with units, and bytes of number formats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import UnitError, nearest, shown
from planner.units import FORMATS, Format, gigabytes, maximum, minimum, parse_quantity

PREFIXES = {
    "": 1,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
UNITS = [("B", "B"), ("B/s", "B/s"), ("FLOP/s", "FLOP/s"), ("OP/s", "FLOP/s"), ("s", "s"), ("W", "W")]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("unit", "dimension"), UNITS)
def test_prefixes(prefix: str, unit: str, dimension: str) -> None:
    assert parse_quantity(f"3.5 {prefix}{unit}", dimension) == pytest.approx(3.5 * PREFIXES[prefix], rel=1e-15)


@given(value=st.floats(0, 1e15), prefix=st.sampled_from(sorted(PREFIXES)))
def test_any_number(value: float, prefix: str) -> None:
    assert parse_quantity(f"{value!r} {prefix}B", "B") == pytest.approx(value * PREFIXES[prefix], rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("80 GiB", "B", 80 * 2**30),
        ("80 GB", "B", 80e9),
        ("80GB", "B", 80e9),
        ("3.35 TB/s", "B/s", 3.35e12),
        ("989 TFLOPS", "FLOP/s", 989e12),
        ("400 Gbit/s", "B/s", 50e9),  # bits are written out
        ("5 us", "s", 5e-6),
        ("5 µs", "s", 5e-6),
        ("5 ns", "s", 5e-9),
        ("2.50 USD/h", "USD/h", 2.5),
        ("30000 USD", "USD", 30000),
        ("1e3 GB", "B", 1e12),
        (700, "W", 700),
        (0.5, "W", 0.5),
        ("700", "W", 700),
    ],
)
def test_quantities(text: Any, dimension: str, value: float) -> None:
    assert parse_quantity(text, dimension) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("value", "dimension"),
    [
        ("80 GiB", "B/s"),
        ("80 GB/s", "B"),
        ("400 Gb/s", "B/s"),  # bits or bytes? neither is guessed
        ("989 TFLOP", "FLOP/s"),
        ("fast", "B/s"),
        ("", "B"),
        ("TB", "B"),
        ("-1 GB", "B"),
        (-1, "B"),
        (math.nan, "B"),
        (math.inf, "B"),
        ("inf B", "B"),
        ("nan B", "B"),
        (10**400, "B"),
        (True, "B"),
        (None, "B"),
        ([1], "B"),
        ("1 2 GB", "B"),
        ("1,000 GB/h", "B"),
        ("5 EUR/h", "USD/h"),
        ("1 kW h", "W"),
    ],
)
def test_what_is_no_quantity(value: Any, dimension: str) -> None:
    with pytest.raises(UnitError, match="is not"):
        parse_quantity(value, dimension)


@given(value=st.one_of(st.text(max_size=12), st.integers(), st.floats(), st.none(), st.binary(max_size=3)))
def test_any_value_is_read_or_refused(value: Any) -> None:
    try:
        assert 0 <= parse_quantity(value, "B") < math.inf
    except UnitError as error:
        assert "write for example '80 GiB'" in str(error)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("fp32", 4),
        ("bf16", 2),
        ("fp16", 2),
        ("fp8", 1),
        ("int8", 1),
        ("fp8_block", 1 + 4 / (128 * 128)),
        ("fp8_run", 1 + 4 / 128),
        ("int4", 0.5 + 2.5 / 128),
        ("mxfp4", 0.5 + 1 / 32),
        ("nvfp4", 0.5 + 1 / 16),
    ],
)
def test_bytes_of_an_element(name: str, size: float) -> None:
    assert FORMATS[name].bytes_per_element == pytest.approx(size, rel=1e-15)


def test_without_a_block_scales_are_too_few_to_count() -> None:
    assert Format("x", 3, 0, 16).bytes_per_element == 3 / 8


def test_gigabytes_are_decimal() -> None:
    assert gigabytes(80 * 2**30) == "85.90 GB"


def test_plain_numbers_stay_plain() -> None:
    assert minimum(10**30, 10**30 + 1) == 10**30
    assert maximum(2, 3) == 3
    assert isinstance(minimum(2, 3), int)
    assert maximum(np.array([1.0, 5.0]), 3).tolist() == [3, 5]
    assert minimum(3, np.array([1.0, 5.0])).tolist() == [1, 3]


# ---- words of errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "first"), [("h100", "h100-sxm"), ("H100-SMX", "h100-sxm"), ("v5e", "tpu-v5e"), ("tpu-v5", "tpu-v5e")]
)
def test_nearest_names(name: str, first: str) -> None:
    assert nearest(name, ["tpu-v5e", "h100-sxm", "h100-pcie"]).startswith(f"did you mean {first}")


@pytest.mark.parametrize("name", ["", "zzzzzz"])
def test_nothing_near(name: str) -> None:
    assert nearest(name, ["tpu-v5e", "h100-sxm"]) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        ("a\nb", r"'a\nb'"),
        (None, "None"),
        ({"a": 1}, "a dict"),
        (10**5000, "a number of too many digits"),
        (-(10**5000), "a number of too many digits"),
        ("x" * 61, "'" + "x" * 56 + "..."),
    ],
    ids=range(7),
)
def test_values_are_shown_on_one_short_line(value: Any, text: str) -> None:
    assert shown(value) == text
