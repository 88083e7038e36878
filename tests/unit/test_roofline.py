"""One operation on one chip: times, bounds and their order, and the closed form of the critical batch."""

from __future__ import annotations

import math

import numpy as np
import pytest
from descriptions import chip
from hypothesis import given
from hypothesis import strategies as st

from planner.op import Axis, Elementwise, Matmul
from planner.precision import SCHEMES
from planner.roofline import (
    attainable,
    bound_name,
    bound_of,
    critical_batch,
    critical_intensity,
    intensity,
    rate_op,
    total,
)

CHIP = chip()  # 100 TFLOP/s in bf16, 1 TB/s: ridge 100 FLOP/B
RIDGE = 100


def matmul(rows: float, inner: int = 1000, outer: int = 1000, count: int = 1) -> Matmul:
    return Matmul(
        name="m",
        group="g",
        count=count,
        rows=rows,
        inner=Axis("inner", inner),
        outer=(Axis("outer", outer),),
        scheme=SCHEMES["bf16"],
    )


def test_times_of_a_matmul() -> None:
    rating = rate_op(matmul(50), CHIP)
    flops, moved = 2 * 50 * 1000 * 1000, 2 * (50 * 1000 + 1000 * 1000 + 50 * 1000)
    assert rating.flops == flops
    assert rating.memory_bytes == moved
    assert rating.compute_s == flops / 100e12
    assert rating.memory_s == moved / 1e12
    assert rating.network_s == 0
    assert rating.lower_s == moved / 1e12  # 1 us of arithmetic, 2.2 us of bytes
    assert rating.upper_s == pytest.approx(flops / 100e12 + moved / 1e12)
    assert rating.bound == "memory"
    assert rating.intensity == pytest.approx(flops / moved)
    assert rating.critical_intensity == RIDGE
    assert rating.attainable_flops == pytest.approx(flops / moved * 1e12)


def test_all_runs_of_an_operation_together() -> None:
    one, seven = rate_op(matmul(50), CHIP), rate_op(matmul(50, count=7), CHIP)
    assert seven.flops == 7 * one.flops
    assert seven.lower_s == pytest.approx(7 * one.lower_s)
    assert seven.intensity == pytest.approx(one.intensity)


def test_at_the_ridge_an_operation_is_compute_bound() -> None:
    """[125, D] x [D, D] with D = 1000: 2 * 125e6 FLOPs over 2 (125e3 + 1e6 + 125e3) bytes are 100 FLOP/B, the ridge."""
    rating = rate_op(matmul(125), CHIP)
    assert rating.compute_s == rating.memory_s
    assert rating.intensity == RIDGE
    assert rating.bound == "compute"
    assert rating.attainable_flops == 100e12
    assert rate_op(matmul(124), CHIP).bound == "memory"
    assert rate_op(matmul(126), CHIP).bound == "compute"


@pytest.mark.parametrize(
    ("times", "bound"),
    [
        ((1, 1, 1), "compute"),
        ((1, 1, 0), "compute"),
        ((1, 0, 1), "compute"),
        ((0, 1, 1), "memory"),
        ((2, 1, 3), "network"),
        ((1, 2, 1), "memory"),
        ((0, 0, 0), "compute"),
    ],
)
def test_of_equal_times_the_earlier_is_named(times: tuple[float, float, float], bound: str) -> None:
    assert bound_name(*times) == bound


def test_bounds_of_arrays() -> None:
    assert bound_name(np.array([1.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0])).tolist() == [
        "compute",
        "memory",
        "network",
    ]


def test_what_is_not_known_gives_no_bound_and_no_sum() -> None:
    assert bound_of([1, None, 2]) is None
    assert total([1, None, 2]) is None
    assert total([1, 0.5, 2]) == 3.5


def test_an_operation_without_arithmetic_takes_no_time_to_compute_even_where_the_chip_has_no_rate() -> None:
    norm = Elementwise(name="n", group="g", rows=10, read=4, written=4, scheme=SCHEMES["fp32"])
    rating = rate_op(norm, chip())
    assert (rating.compute_s, rating.bound) == (0, "memory")
    assert rating.lower_s == 10 * 8 * 4 / 1e12


def test_without_a_rate_there_are_no_times_and_a_reason() -> None:
    fp32 = Matmul(name="m", group="g", rows=1, inner=Axis("i", 4), outer=(Axis("o", 4),), scheme=SCHEMES["fp32"])
    rating = rate_op(fp32, CHIP)
    assert (rating.compute_s, rating.lower_s, rating.upper_s, rating.bound) == (None, None, None, None)
    assert "no rate for fp32" in rating.missing
    assert rating.flops == 2 * 4 * 4


def test_intensity_of_nothing_moved_is_not_a_number() -> None:
    assert math.isnan(intensity(0, 0))
    assert np.isnan(intensity(np.array([0.0, 1.0]), np.array([0.0, 2.0]))).tolist() == [True, False]


def test_the_roofline_is_the_lower_of_slope_and_roof() -> None:
    assert attainable(np.array([1.0, 100.0, 1000.0]), 100e12, 1e12).tolist() == [1e12, 100e12, 100e12]
    assert critical_intensity(100e12, 1e12) == RIDGE


widths = st.integers(1, 20_000)


@given(inner=widths, outer=widths, ridge=st.floats(1, 2000))
def test_critical_batch_at_equal_formats(inner: int, outer: int, ridge: float) -> None:
    """B* = I* / (1 - I* (1/D + 1/F)), where the denominator is positive; there the intensity is the ridge's."""
    denominator = 1 - ridge * (1 / inner + 1 / outer)
    found = critical_batch(ridge, inner, outer)
    if denominator < 1e-9:
        assert found is None or denominator > -1e-9
        return
    assert found == pytest.approx(ridge / denominator, rel=1e-6)
    op = matmul(found, inner, outer)
    assert op.flops / op.memory_bytes == pytest.approx(ridge, rel=1e-6)


def test_where_no_batch_is_enough_none_is_said() -> None:
    """With D = F = 2 I* the intensity approaches the ridge and never reaches it."""
    assert critical_batch(100, 200, 200) is None
    assert critical_batch(100, 201, 201) == pytest.approx(100 / (1 - 200 / 201))
    assert matmul(10**12, 200, 200).flops / matmul(10**12, 200, 200).memory_bytes < 100


def test_weights_of_half_the_size_halve_the_critical_batch_of_wide_matrices() -> None:
    """w8a16 against bf16 (rule of thumb B* = I* w / 2)."""
    assert critical_batch(240, math.inf, math.inf) == 240
    assert critical_batch(240, math.inf, math.inf, weight_bytes=1) == 120
