"""Collectives against measurements (data/README.md): bounds are floors, and the form of the model fits what it has not seen."""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from planner import catalogue
from planner.calibrate import CollectiveFit, fit_collective
from planner.collectives import collective_cost
from planner.errors import InputError
from planner.op import Group, Operation

Series = tuple[str, str, str]
FOLDS = 3
MEDIAN_ERROR = 0.15
WORST_SERIES = 0.25


def read() -> dict[Series, NDArray[np.float64]]:
    """Return chips, message, bytes sent and time of each chip, library and collective, ordered by chips and size."""
    found = defaultdict(list)
    with (Path(__file__).parent / "data" / "collectives.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            numbers = [float(row[k]) for k in ("num_gpus", "message_bytes", "wire_bytes_per_gpu", "latency_s")]
            found[row["chip"], row["library"], row["op"]].append(numbers)
    return {series: np.array(sorted(rows)) for series, rows in found.items()}


MEASURED = read()


def link_of(chip: str) -> float:
    scale_up = catalogue.load_hardware(chip).links.scale_up
    assert scale_up is not None
    assert scale_up.one_way.value is not None
    return scale_up.one_way.value


def errors_on_unseen_rows(series: Series) -> NDArray[np.float64]:
    """Fit on two thirds of the rows and look at the other third, in turn."""
    rows, link = MEASURED[series], link_of(series[0])
    fold = np.arange(len(rows)) % FOLDS
    errors = []
    for unseen in range(FOLDS):
        seen, held = rows[fold != unseen], rows[fold == unseen]
        fit = fit_collective(seen[:, 0], seen[:, 2], seen[:, 3], link)
        errors.append(np.abs(fit.seconds(held[:, 0], held[:, 2], link) / held[:, 3] - 1))
    return np.concatenate(errors)


@pytest.mark.parametrize("series", MEASURED, ids="-".join)
def test_datasheet_bound_is_a_floor(series: Series) -> None:
    chip, _, op = series
    hardware = catalogue.load_hardware(chip)
    for chips, message, _, seconds in MEASURED[series]:
        cost = collective_cost(hardware, Operation(op), Group(int(chips)), float(message))
        assert cost.seconds <= seconds, (chips, message, cost.algorithm)


def test_no_ring_explains_eight_h200() -> None:
    """The largest all-reduce is faster than any ring could be: the switch adds up, as the chip's file says."""
    rows = MEASURED["h200-sxm", "nccl", "all_reduce"]
    chips, _, wire, seconds = rows[rows[:, 0] == 8][-1]
    assert chips == 8
    assert wire / link_of("h200-sxm") > seconds


def test_form_fits_rows_that_it_has_not_seen() -> None:
    errors = {series: errors_on_unseen_rows(series) for series in MEASURED}
    assert np.median(np.concatenate(list(errors.values()))) < MEDIAN_ERROR
    worst = {series: float(np.median(error)) for series, error in errors.items()}
    assert max(worst.values()) < WORST_SERIES, worst


def test_coefficients_are_plausible() -> None:
    rows = MEASURED["h100-sxm", "nccl", "all_reduce"]
    fit = fit_collective(rows[:, 0], rows[:, 2], rows[:, 3], link_of("h100-sxm"))
    assert 1e-6 < fit.call_s < 10e-6
    assert 0.5e-6 < fit.chip_s < 5e-6
    assert 0.5 < fit.link_share < 1.1


def test_known_coefficients_are_found_again() -> None:
    truth = CollectiveFit(call_s=5e-6, chip_s=2e-6, link_share=0.8, ramp_s=2e-6, crowding=0.5)
    chips, sent = (grid.ravel() for grid in np.meshgrid([2.0, 4.0, 8.0], np.geomspace(1e3, 1e9, 12)))
    fit = fit_collective(chips, sent, truth.seconds(chips, sent, 450e9), 450e9)
    assert fit.seconds(chips, sent, 450e9) == pytest.approx(truth.seconds(chips, sent, 450e9), rel=1e-3)


@pytest.mark.parametrize(
    ("seconds", "message"), [([1e-6] * 4, "4 are too few"), ([1e-6] * 5 + [0.0], "measurements are above 0")]
)
def test_what_cannot_be_fitted_is_refused(seconds: list[float], message: str) -> None:
    count = len(seconds)
    with pytest.raises(InputError, match=message):
        fit_collective([2] * count, [1e6] * count, seconds, 450e9)
