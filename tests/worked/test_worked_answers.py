"""Published worked problems, answered by the planner."""

from __future__ import annotations

import pytest
from worked.worked_answers import PROBLEMS, TOPICS, agrees, answer, read_rows

ROWS = read_rows("answers.csv")
OUT_OF_SCOPE = read_rows("out_of_scope.csv")


@pytest.mark.parametrize(
    ("computed", "own", "unit", "tolerance", "expected"),
    [
        (3, "3", "B", "0", True),
        (3.0000001, "3", "B", "0", False),
        (101, "100", "s", "0.02", True),
        (99, "100", "s", "0.02", True),
        (103, "100", "s", "0.02", False),
        (200, "100", "s", "0.02", False),  # whole multiples are no agreement
        (-100, "100", "s", "0.02", False),
        (0, "100", "s", "0.02", False),
        (1e-13, "2e-13", "s", "0.02", False),  # nor are two numbers that are both small
        (float("nan"), "100", "s", "0.02", False),
        (2**30, "1", "GiB", "0", True),
        (1e9, "1", "GiB", "0.02", False),
        (3 * 2**20, "3", "MiB", "0", True),
    ],
)
def test_helper_agrees(computed: float, own: str, unit: str, tolerance: str, expected: bool) -> None:
    assert agrees(computed, {"own_value": own, "unit": unit, "tolerance": tolerance}) is expected


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_planner_answers_worked_problem(row: dict[str, str]) -> None:
    assert agrees(answer(row), row), f"{answer(row)} where {row['own_value']} {row['unit']} is right"


def test_rows_are_told_apart() -> None:
    ids = [row["id"] for row in (*ROWS, *OUT_OF_SCOPE)]
    assert len(set(ids)) == len(ids)


def test_every_function_answers_a_row() -> None:
    assert set(TOPICS) <= {row["topic"] for row in ROWS}
    assert set(PROBLEMS) <= {row["id"] for row in ROWS}


def test_tolerances_are_no_wider_than_rounding() -> None:
    """Own values are printed to seven digits; wider tolerances are the exception, and say why."""
    wide = [row for row in ROWS if float(row["tolerance"]) > 1e-6]
    assert all(float(row["tolerance"]) <= 1e-4 and row["note"] for row in wide)
    assert len(wide) <= 3


def test_rows_out_of_scope_say_why() -> None:
    assert OUT_OF_SCOPE
    assert all(row["reason"] for row in OUT_OF_SCOPE)
