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


def test_recalled_figures_are_marked_in_the_list_and_in_csv() -> None:
    line = next(line for line in run().splitlines() if line.strip().startswith("epyc-9654"))
    assert "14.7 TFLOP/s ?" in line
    assert "[unverified]" in run()
    rows = {row["id"]: row for row in csv.DictReader(io.StringIO(run("--format", "csv")))}
    assert rows["epyc-9654"]["unverified"] == "peak.bf16"
    assert rows["h100-sxm"]["unverified"] == ""
    compared = list(csv.DictReader(io.StringIO(run("--compare", "h100-sxm", "epyc-9654", "--format", "csv"))))
    assert {row["figure"]: row["unverified"] for row in compared}["peak.bf16"] == "epyc-9654"


@pytest.mark.parametrize("verb", [("ops",), ("solve", "--max-chips", "1")])
def test_answers_name_the_recalled_figures_that_they_rest_on(verb: tuple[str, ...]) -> None:
    command, *options = verb
    asked = [command, "llama-3.2-1b", "--precision", "bf16", "--format", "json", *options, "--hardware"]
    recalled, read = (CliRunner().invoke(cli, [*asked, chip]) for chip in ("epyc-9654", "h100-sxm"))
    assert json.loads(recalled.stdout)["unverified"] == ["peak.bf16"]
    assert "peak.bf16 recalled from the document and not read again [unverified]" in recalled.stderr
    assert json.loads(read.stdout)["unverified"] == []
    assert "[unverified]" not in read.stderr


@pytest.mark.parametrize("columns", [40, 80, 100, 160])
def test_no_figure_is_cut_however_narrow(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    chips = ("h100-sxm", "h200-sxm", "b200-sxm", "m4-max", "epyc-9654", "tpu-v5e")
    text = run("--compare", *chips)
    tables = [line for line in text.splitlines() if not line.startswith("•")]
    assert max(map(len, tables)) <= max(columns, 80)
    assert "…" not in text
    headings = [word for line in tables if "figure" in line for word in line.split() if word != "figure"]
    assert headings == list(chips)
    prices = [line.split() for line in tables if "price.hourly" in line]
    assert ["14.2416", "USD/h"] in [line[i : i + 2] for line in prices for i in range(len(line))]


@pytest.mark.parametrize("columns", [80, 120])
def test_operations_are_not_cut(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    arguments = ["ops", "deepseek-v3", "--hardware", "h200-sxm", "--batch", "64", "--tp", "8", "--ep", "8"]
    result = CliRunner().invoke(cli, arguments)
    assert "…" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= columns


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
