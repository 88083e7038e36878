"""`planner hardware --compare`: chips as columns."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from planner.catalogue import load_hardware
from planner.cli.main import cli
from planner.scenario import hardware_gaps

CHIPS = ("h100-sxm", "b200-sxm", "m4-max")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["hardware", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_columns_are_chips_and_fit() -> None:
    lines = run("--compare", *CHIPS).splitlines()
    assert max(map(len, lines)) <= 120
    heading = next(line for line in lines if "figure" in line)
    assert heading.split() == ["figure", *CHIPS]
    bf16 = next(line for line in lines if line.strip().startswith("peak.bf16"))
    assert bf16.split()[1:] == ["989", "TFLOP/s", "2.25", "PFLOP/s", "–"]


def test_what_cannot_be_computed_is_said() -> None:
    text = " ".join(run("--compare", *CHIPS).split())
    assert "Apple M4 Max (40-core GPU) has no known peak for bf16, fp8, int8" in text
    assert "H100 SXM 80GB has no known" not in text
    assert "has no known peak" in " ".join(run("m4-max").split())


def test_recalled_figures_are_marked() -> None:
    text = run("--compare", *CHIPS)
    capacity = next(line for line in text.splitlines() if "memory.capacity" in line)
    assert capacity.rstrip().endswith("?")
    assert "[unverified]" in text


def test_json_and_csv() -> None:
    chips = json.loads(run("--compare", *CHIPS, "--format", "json"))
    assert [chip["id"] for chip in chips] == list(CHIPS)
    rows = list(csv.DictReader(io.StringIO(run("--compare", *CHIPS, "--format", "csv"))))
    by_figure = {row["figure"]: row for row in rows}
    assert by_figure["memory.bandwidth"]["h100-sxm"] == "3350000000000"
    assert by_figure["peak.bf16"]["m4-max"] == ""


@pytest.mark.parametrize("arguments", [("--compare", "h100-sxm"), ("--compare",), ("h100-sxm", "b200-sxm")])
def test_it_takes_two_chips_or_more(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, ["hardware", *arguments])
    assert result.exit_code == 2
    assert "--compare" in result.output


def test_a_chip_that_is_fully_known_has_no_gaps() -> None:
    assert hardware_gaps(load_hardware("h100-sxm")) == ()
