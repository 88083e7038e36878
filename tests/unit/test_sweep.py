"""Sweeps: ranges, equality with single steps, files that are whole and resumed."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from planner.catalogue import load_engine, load_hardware, load_model
from planner.cli.main import run
from planner.errors import InputError
from planner.parallel import Layout
from planner.precision import policy
from planner.step import rate_step
from planner.sweep import Case, Sweep, parse_numbers
from planner.sweep.files import write_sweep
from planner.workload import Phase, Step


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,2,4", (1, 2, 4)),
        ("7", (7,)),
        ("1:5", (1, 2, 3, 4, 5)),
        ("1:17:8", (1, 9, 17)),
        ("1:20:8", (1, 9, 17)),
        ("1:16:x2", (1, 2, 4, 8, 16)),
        ("3:50:x4", (3, 12, 48)),
        ("1,8:10", (1, 8, 9, 10)),
    ],
)
def test_ranges_include_their_stop_when_it_is_on_the_grid(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_numbers(text, "batch") == numbers


@pytest.mark.parametrize(
    "text",
    ["", "a", "1:", ":5", "5:1", "1:5:0", "1:5:x1", "1:2:3:4", "1,1", "-1", "1.5", "0", "1:9999999999", "1:100000000"],
)
def test_ranges_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--batch"):
        parse_numbers(text, "batch")


def sweep(name: str, layout: Layout, phase: Phase = Phase.DECODE, new_tokens: int = 1) -> Sweep:
    case = Case(
        model_name=name,
        hardware_name="h100-sxm",
        model=load_model(name),
        hardware=load_hardware("h100-sxm"),
        precision=policy("bf16"),
        layout=layout,
    )
    return Sweep(
        cases=(case,),
        phase=phase,
        batches=(1, 3, 64),
        contexts=(0, 100, 5000),
        new_tokens=new_tokens,
        engine=load_engine(),
    )


@pytest.mark.parametrize(
    ("name", "layout", "phase", "new_tokens"),
    [
        ("llama-3.1-8b", Layout(), Phase.DECODE, 1),
        ("llama-3.1-8b", Layout(tp=4, pp=2), Phase.DECODE, 1),
        ("qwen3-30b-a3b", Layout(tp=2, attention_dp=2, ep=4), Phase.DECODE, 1),
        ("deepseek-v3", Layout(tp=8, ep=8), Phase.DECODE, 1),
        ("gemma-3-27b-it", Layout(), Phase.PREFILL, 300),
    ],
)
def test_every_point_equals_the_step_on_its_own(name: str, layout: Layout, phase: Phase, new_tokens: int) -> None:
    asked = sweep(name, layout, phase, new_tokens)
    (block,) = asked.blocks()
    frame = block.frame()
    assert len(frame) == 9
    for row in frame.to_dict("records"):
        step = Step(phase=phase, batch=row["batch"], new_tokens=new_tokens, context=row["context"])
        result = rate_step(block.case.model, block.case.hardware, step, block.case.precision, layout)
        for column in ("lower_s", "upper_s", "overlap_floor_s", "tokens_per_s", "compute_s", "memory_s", "network_s"):
            assert row[column] == pytest.approx(getattr(result, column), rel=1e-12), column
        assert row["flops"] == pytest.approx(result.flops(), rel=1e-12)
        assert row["bytes"] == pytest.approx(result.memory_bytes, rel=1e-12)
        assert row["bound"] == result.bound


def test_blocks_cover_the_grid_in_order() -> None:
    asked = sweep("llama-3.1-8b", Layout())
    pieces = [block.frame() for block in asked.blocks(points=2)]
    assert [len(piece) for piece in pieces] == [2, 1] * 3
    whole = next(asked.blocks()).frame()
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), whole)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_stopped_sweep_goes_on_and_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr("planner.sweep.files.PART_POINTS", 3)
    asked = sweep("llama-3.1-8b", Layout())
    whole, stopped = tmp_path / f"whole.{suffix}", tmp_path / f"stopped.{suffix}"
    assert list(write_sweep(asked, whole, "request")) == [3, 6, 9]
    progress = write_sweep(asked, stopped, "request")
    next(progress)
    progress.close()
    assert not stopped.exists()
    first = tmp_path / f"stopped.{suffix}.parts" / f"000000.{suffix}"
    stamp = first.stat().st_mtime_ns
    assert list(write_sweep(asked, stopped, "request"))[-1] == 9
    assert stopped.read_bytes() == whole.read_bytes()
    assert stamp, "the first part was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"stopped.{suffix}", f"whole.{suffix}"]


def test_parts_of_another_request_are_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.sweep.files.PART_POINTS", 3)
    path = tmp_path / "x.csv"
    progress = write_sweep(sweep("llama-3.1-8b", Layout()), path, "one request")
    next(progress)
    progress.close()
    list(write_sweep(sweep("llama-3.1-8b", Layout(tp=2)), path, "another request"))
    with path.open() as file:
        assert {row["tp"] for row in csv.DictReader(file)} == {"2"}


def test_the_command_writes_what_it_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.csv"
    arguments = [
        "sweep",
        "llama-3.1-8b",
        "--hardware",
        "h100-sxm,tpu-v5e",
        "--precision",
        "bf16,int8",
        "--batch",
        "1:4:x2",
    ]
    assert run([*arguments, "--context", "0,10", "--tp", "1,3", "-o", str(path)]) == 0
    assert "left out: tp:" in capsys.readouterr().err
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 3 * 2
    assert {row["hardware"] for row in rows} == {"h100-sxm", "tpu-v5e"}


@pytest.mark.parametrize("output", ["x.txt", "x", "."])
def test_outputs_that_cannot_be_written_are_refused_first(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "llama-3.1-8b", "--hardware", "h100-sxm", "-o", output]) == 2
    assert capsys.readouterr().err.startswith("error: --output: ")


def test_too_many_points_to_print_ask_for_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sweep", "llama-3.1-8b", "--hardware", "h100-sxm", "--batch", "1:200", "--context", "1:200"]) == 2
    assert "40,000 points" in capsys.readouterr().err
