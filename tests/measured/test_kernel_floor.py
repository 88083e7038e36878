"""The roofline is a floor: measured kernels do not beat it, but for rows with a physical reason that is stated and checked."""

from __future__ import annotations

import csv
from collections import Counter

import pytest
from measured.kernel_floor import DATA, HBM_CHIPS, LARGE_CACHE_CHIPS, OPS, REASONS, Case, floor_of, read_cases

from planner.hardware import Hardware

LARGEST_SHARE = 0.005
"""Of all measured rows on chips with HBM that may beat the floor."""

SMALLEST_RATIO = 0.7
"""No measurement on chips with HBM may take less than this share of the floor."""

CASES = {kernel: read_cases(kernel) for kernel in OPS}
BEATEN = [case for cases in CASES.values() for case in cases if case.row["beats_floor"]]


def population() -> list[dict[str, str]]:
    with (DATA / "population.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def toy_chip() -> Hardware:
    """1 GFLOP/s in bf16, 1 MB/s, a cache of 100 kB."""
    return Hardware.model_validate(
        {
            "name": "toy",
            "vendor": "none",
            "kind": "gpu",
            "peak": {"bf16": {"value": "1 GFLOP/s", "source": "toy"}},
            "memory": {
                "capacity": {"value": "1 GB", "source": "toy"},
                "bandwidth": {"value": "1 MB/s", "source": "toy"},
            },
            "cache": {"capacity": {"value": "100 kB", "source": "toy"}},
        }
    )


def gemm(latency_s: float, m: int, n: int, k: int, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setattr("measured.kernel_floor.chip", lambda _: toy_chip())
    row = {"chip": "toy", "dtype": "bfloat16", "m": str(m), "n": str(n), "k": str(k), "latency_s": str(latency_s)}
    return Case("gemm", row)


def test_helper_ratio_is_measured_time_over_the_larger_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # 2 * 100 * 100 * 100 = 2e6 FLOP take 2 ms; 3 * 2 * 100 * 100 = 60 kB take 60 ms.
    case = gemm(0.03, 100, 100, 100, monkeypatch)
    assert floor_of(case.ops, toy_chip()) == pytest.approx(0.06)
    assert case.ratio == pytest.approx(0.5)
    assert case.working_set == 60_000


@pytest.mark.parametrize(
    ("m", "n", "latency_s", "fits", "in_part"),
    [
        # With k = 100 the working set is 2 * (100 m + 100 n + m n) B; the toy's cache has 100 kB, and 1 kB takes a millisecond.
        (100, 100, 0.001, True, True),  # 60 kB
        (100, 200, 0.001, True, True),  # 100 kB, exactly
        (150, 200, 0.029, False, False),  # 130 kB, 30 ms beyond the cache
        (150, 200, 0.031, False, True),
        (100, 1000, 9.0, False, False),  # 420 kB, however slow
    ],
)
def test_helper_cache_reasons(
    m: int, n: int, latency_s: float, fits: bool, in_part: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = gemm(latency_s, m, n, 100, monkeypatch)
    assert REASONS["cache"](case) is fits
    assert REASONS["cache_in_part"](case) is in_part


def test_every_chip_and_kernel_is_in_the_sample() -> None:
    found = {(case.row["chip"], kernel) for kernel, cases in CASES.items() for case in cases}
    assert found == {(chip, kernel) for chip in (*HBM_CHIPS, *LARGE_CACHE_CHIPS) for kernel in OPS}


@pytest.mark.parametrize("kernel", OPS)
def test_only_rows_with_a_reason_beat_the_floor(kernel: str) -> None:
    wrong = [(case.ratio, case.row) for case in CASES[kernel] if (case.ratio < 1) != bool(case.row["beats_floor"])]
    assert not wrong


@pytest.mark.parametrize("reason", REASONS)
def test_reason_holds_for_each_row_that_states_it(reason: str) -> None:
    stating = [case for case in BEATEN if case.row["beats_floor"] == reason]
    assert stating, "a reason that no row states is to be taken out"
    assert not [case.row for case in stating if not REASONS[reason](case)]


def test_every_stated_reason_is_known() -> None:
    assert {case.row["beats_floor"] for case in BEATEN} == set(REASONS)


def test_floor_holds_on_chips_with_hbm() -> None:
    rows = sum(int(row["rows"]) for row in population() if row["chip"] in HBM_CHIPS)
    beaten = [case for case in BEATEN if case.row["chip"] in HBM_CHIPS]
    assert 0 < len(beaten) <= LARGEST_SHARE * rows
    assert min(case.ratio for case in beaten) >= SMALLEST_RATIO


def test_large_caches_explain_dense_kernels_that_beat_the_floor() -> None:
    """On chips with GDDR and a large cache a dense kernel beats the floor only from the cache, or where values are narrower."""
    dense = [case for case in BEATEN if case.row["chip"] in LARGE_CACHE_CHIPS and case.kernel != "moe"]
    assert {case.row["beats_floor"] for case in dense} == {"cache", "cache_in_part", "fewer_values"}


def test_sample_keeps_every_row_that_beats_the_floor() -> None:
    kept = Counter((case.row["chip"], case.kernel) for case in BEATEN)
    assert kept == {(r["chip"], r["kernel"]): int(r["beat_floor"]) for r in population() if int(r["beat_floor"])}


@pytest.mark.parametrize("row", population(), ids=lambda row: f"{row['chip']}-{row['kernel']}")
def test_row_nearest_to_the_floor_is_as_near_as_written_down(row: dict[str, str]) -> None:
    """A floor that sank would be beaten by no row, and still be wrong: the nearest row moves with it."""
    ratios = [case.ratio for case in CASES[row["kernel"]] if case.row["chip"] == row["chip"]]
    assert min(ratios) == pytest.approx(float(row["smallest_ratio"]), abs=6e-4)
