"""A matmul cut along its contracted axis over 2, 4 and 8 chips, under each algorithm: the tables of the roofline chapter, section 5.

Rates of a TPU v5e as the chapter has them: 197e12 FLOP/s, 820e9 B/s of memory, 45e9 B/s of link in one direction.
"""

import math

import pytest

from planner.collectives import Rates, critical_width, critical_width_decode, cut_matmul

C, W, LINK = 197e12, 820e9, 45e9

# algorithm, links used in both directions, widths for 2, 4 and 8 chips (section 5.2)
TABLE = [
    ("one_shot", 1, (8756, 52533, 245156)),
    ("ring", 1, (8756, 26267, 61289)),
    ("ring", 2, (None, 13133, 30644)),
    ("reduce_scatter", 1, (4378, 13133, 30644)),
    ("reduce_scatter", 2, (None, 6567, 15322)),
    ("in_switch", 1, (8756, 17511, 35022)),
]


@pytest.mark.parametrize(("algorithm", "ways", "widths"), TABLE)
def test_critical_width_of_each_algorithm(algorithm: str, ways: int, widths: tuple[int | None, ...]) -> None:
    for chips, width in zip((2, 4, 8), widths, strict=True):
        if width is not None:
            assert critical_width(C, ways * LINK, chips, algorithm=algorithm) == pytest.approx(width, abs=0.5)


# chip: C, link, widths for 2, 4, 8 chips with a ring; share of time that D = 1024 computes, and its speed-up (section 5.3)
CHIPS = [
    (459e12, 90e9, (10200, 30600, 71400), 0.100, 0.201),
    (275e12, 45e9, (12222, 36667, 85556), 0.084, 0.168),
    (910e12, 90e9, (20222, 60667, 141556), 0.051, 0.101),
    (312e12, 300e9, (2080, 6240, 14560), 0.492, 0.985),
    (989.4e12, 450e9, (4397, 13192, 30781), 0.233, 0.466),
    (989.4e12, 50e9, (39576, 118728, 277032), 0.026, 0.052),
    (2250e12, 900e9, (5000, 15000, 35000), 0.205, 0.410),
]


@pytest.mark.parametrize(("peak", "link", "widths", "share", "speed_up"), CHIPS)
def test_widths_and_speed_up_of_chips(
    peak: float, link: float, widths: tuple[int, ...], share: float, speed_up: float
) -> None:
    for chips, width in zip((2, 4, 8), widths, strict=True):
        assert critical_width(peak, link, chips) == pytest.approx(width, abs=0.5)
    one = cut_matmul((4096, 1024, 4096), Rates(flops_per_s=peak), 1)
    two = cut_matmul((4096, 1024, 4096), Rates(flops_per_s=peak, link_bytes_per_s=link), 2)
    assert two.compute_s / two.network_s == pytest.approx(share, abs=6e-4)
    assert one.lower_s / two.lower_s == pytest.approx(speed_up, abs=6e-4)


def test_two_chips_have_three_roofs() -> None:
    times = cut_matmul((512, 8192, 28672), Rates(flops_per_s=C, memory_bytes_per_s=W, link_bytes_per_s=LINK))
    assert [round(t * 1e6) for t in (times.compute_s, times.memory_s, times.network_s)] == [610, 327, 652]
    assert times.lower_s == times.network_s


@pytest.mark.parametrize(("chips", "speed_up"), [(2, 0.234), (4, 0.156), (8, 0.134)])
def test_narrow_model_gets_slower_on_more_chips(chips: int, speed_up: float) -> None:
    one = cut_matmul((4096, 1024, 4096), Rates(flops_per_s=C), 1)
    many = cut_matmul((4096, 1024, 4096), Rates(flops_per_s=C, link_bytes_per_s=LINK), chips)
    assert one.lower_s / many.lower_s == pytest.approx(speed_up, abs=5e-4)


@pytest.mark.parametrize(("memory", "link", "batch"), [(820e9, 45e9, 28), (3.35e12, 450e9, 68)])
def test_decode_scales_at_a_width_of_1024_up_to_a_batch(memory: float, link: float, batch: int) -> None:
    """Section 5.4: 28 on a TPU v5e, 68 on an H100."""
    assert critical_width_decode(batch, memory, link) <= 1024 < critical_width_decode(batch + 1, memory, link)


def test_width_where_the_two_regimes_meet() -> None:
    """At the critical batch C / W both rules ask for the same width."""
    assert critical_width_decode(C / W, W, LINK, 4) == pytest.approx(critical_width(C, LINK, 4))
    assert math.isclose(critical_width_decode(2 * C / W, W, LINK, 4), 2 * critical_width(C, LINK, 4))
