"""Quantities, and the functions that treat numbers and arrays alike."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import UnitError
from planner.numeric import anywhere, everywhere, is_array, is_finite, largest_of, maximum, minimum, summed
from planner.units import parse_quantity


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("3.35 TB/s", "B/s", 3.35e12),
        ("3350GB/s", "B/s", 3.35e12),
        ("400 Gbit/s", "B/s", 50e9),
        ("80 GiB", "B", 80 * 2**30),
        ("80 GB", "B", 80e9),
        ("50 MiB", "B", 50 * 2**20),
        ("1979 TFLOP/s", "FLOP/s", 1.979e15),
        ("1979 TOP/s", "FLOP/s", 1.979e15),
        ("1.5 PFLOPS", "FLOP/s", 1.5e15),
        ("0.47 us", "s", 0.47e-6),
        ("700 W", "W", 700.0),
        ("2.50 USD/h", "USD/h", 2.5),
        (12, "B", 12.0),
        (1.5e9, "B/s", 1.5e9),
    ],
)
def test_quantities(text: object, dimension: str, value: float) -> None:
    assert parse_quantity(text, dimension) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("value", "dimension"),
    [
        ("80 GiB", "B/s"),  # another dimension
        ("3.35 TB", "B/s"),
        ("400 Gb/s", "B/s"),  # bits or bytes?
        ("fast", "B/s"),
        ("", "B"),
        ("-1 GB", "B"),
        ("inf B", "B"),
        ("nan B", "B"),
        (float("nan"), "B"),
        (float("inf"), "B"),
        (-1, "B"),
        (True, "B"),
        (None, "B"),
        ([80], "B"),
    ],
)
def test_what_is_no_quantity_says_what_would_be(value: object, dimension: str) -> None:
    with pytest.raises(UnitError, match="write for example"):
        parse_quantity(value, dimension)


@given(st.floats(min_value=1e-3, max_value=1e6), st.sampled_from(["k", "M", "G", "T", "P"]))
def test_prefixes_round_trip(number: float, prefix: str) -> None:
    factor = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[prefix]
    assert parse_quantity(f"{number!r} {prefix}B", "B") == pytest.approx(number * factor, rel=1e-12)


@given(st.integers(-(10**20), 10**20), st.integers(-(10**20), 10**20))
def test_plain_numbers_stay_plain_and_exact(a: int, b: int) -> None:
    assert (minimum(a, b), maximum(a, b)) == (min(a, b), max(a, b))
    assert type(minimum(a, b)) is type(maximum(a, b)) is int


def test_arrays_broadcast() -> None:
    rows, columns = np.array([[1.0], [5.0]]), np.array([2.0, 3.0])
    np.testing.assert_array_equal(minimum(rows, columns), [[1, 1], [2, 3]])
    np.testing.assert_array_equal(maximum(rows, columns), [[2, 3], [5, 5]])
    np.testing.assert_array_equal(minimum(rows, 3), [[1], [3]])


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0, (False, False, 0.0, 0.0)),
        (2.5, (True, True, 2.5, 2.5)),
        (np.array([0.0, 3.0]), (True, False, 3.0, 3.0)),
        (np.array([[1.0, 3.0]]), (True, True, 4.0, 3.0)),
        (np.array([0.0, 0.0]), (False, False, 0.0, 0.0)),
    ],
)
def test_helpers_treat_numbers_and_arrays_alike(value: Any, found: tuple[bool, bool, float, float]) -> None:
    assert (anywhere(value), everywhere(value), summed(value), largest_of(value)) == found
    assert is_array(value) == isinstance(value, np.ndarray)
    assert is_array(1, value) == is_array(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.array([1.0, np.nan]), np.array([-np.inf])])
def test_what_is_not_finite(value: Any) -> None:
    assert not is_finite(value)
    assert is_finite(np.array([1.0, 2.0]))
    assert is_finite(10**300)


def test_a_single_point_is_rated_without_numpy() -> None:
    code = """
import sys
from planner import catalogue
from planner.precision import policy
from planner.step import rate_step
from planner.workload import Phase, Step
model, chip = catalogue.load_model("deepseek-v3"), catalogue.load_hardware("h200-sxm")
assert rate_step(model, chip, Step(phase=Phase.DECODE, batch=8, context=100), policy("fp8")).bound
assert "numpy" not in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
