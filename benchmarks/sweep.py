"""Times sweeps of a million points: their evaluation in this process, and `planner sweep` as a command that writes Parquet.

Run it where the package is installed::

    python benchmarks/sweep.py
    python benchmarks/sweep.py --only evaluation --repeat 5

Each case is run several times and the fastest counts: other work on the machine can only slow a run down. Processor time stands
beside it; where the two differ much, the machine was busy with other things.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from planner import catalogue
from planner.parallel import Layout
from planner.precision import policy
from planner.sweep import Case, Sweep, evaluate
from planner.workload import Phase

MIB = 2**20
START = "from planner.cli import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A model on chips, to be swept over batches and contexts in decode."""

    model: str
    hardware: str = "h100-sxm"
    precision: str
    layout: Layout

    @property
    def words(self) -> str:
        """The question in a few words."""
        degrees = [f"{name}={getattr(self.layout, name)}" for name in ("tp", "ep") if getattr(self.layout, name) > 1]
        return " ".join([self.model, self.precision, *(degrees or ["one chip"])])

    @property
    def arguments(self) -> list[str]:
        """Arguments of `planner sweep` that ask it, without the grid."""
        degrees = ["--tp", str(self.layout.tp), "--ep", str(self.layout.ep)]
        return [self.model, "--hardware", self.hardware, "--precision", self.precision, *degrees]


QUESTIONS = (
    Question(model="llama-3.1-8b", precision="bf16", layout=Layout()),
    Question(model="llama-3.1-70b", precision="bf16", layout=Layout(tp=8)),
    Question(model="qwen3-30b-a3b", precision="bf16", layout=Layout(tp=4, ep=4)),
    Question(model="deepseek-v3", precision="fp8", layout=Layout(tp=8, ep=8)),
)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a run took: time by the clock and of the processors [s], and the most memory it held at once [B]."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def fastest(run: Callable[[], Taken], repeat: int) -> Taken:
    """Return the run that was fastest by the clock."""
    return min((run() for _ in range(repeat)), key=lambda taken: taken.wall_s)


def evaluation(question: Question, side: int) -> Taken:
    """Evaluate side x side points in a child process of this one, in which nothing else ran, with one thread."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            pipe.write(" ".join(map(repr, _evaluate(question, side))))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        wall, cpu = map(float, pipe.read().split())
    _, _, used = os.wait4(child, 0)
    return Taken(wall, cpu, _peak_bytes(used.ru_maxrss))


def _evaluate(question: Question, side: int) -> tuple[float, float]:
    case = Case(
        model_name=question.model,
        hardware_name=question.hardware,
        model=catalogue.load_model(question.model),
        hardware=catalogue.load_hardware(question.hardware),
        precision=policy(question.precision),
        layout=question.layout,
    )
    numbers = tuple(range(1, side + 1))
    sweep = Sweep(
        cases=(case,),
        phase=Phase.DECODE,
        batches=numbers,
        contexts=numbers,
        new_tokens=1,
        engine=catalogue.load_engine(),
    )
    wall, cpu = time.perf_counter(), time.process_time()
    for block in sweep.blocks():
        evaluate(block)
    return time.perf_counter() - wall, time.process_time() - cpu


def command(question: Question, side: int, folder: Path) -> Taken:
    """Run `planner sweep` of side x side points into a Parquet file."""
    target = folder / "sweep.parquet"
    grid = ["--batch", f"1:{side}", "--context", f"1:{side}", "--output", str(target)]
    arguments = [sys.executable, "-c", START, "sweep", *question.arguments, *grid]
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(arguments, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(said.read().decode())
    target.unlink()
    return Taken(wall, used.ru_utime + used.ru_stime, _peak_bytes(used.ru_maxrss))


def _peak_bytes(maxrss: int) -> int:
    """Linux counts in KiB, macOS in bytes."""
    return maxrss if sys.platform == "darwin" else maxrss * 1024


def report_evaluation(side: int, repeat: int) -> None:
    """Print a table of evaluations."""
    print(f"\nEvaluation of {side**2:,} points, one process, one thread\n")
    print(f"| {'case':34} | wall s | processor s | points/s | points/s of processor | peak MiB |")
    print("|---|---:|---:|---:|---:|---:|")
    for question in QUESTIONS:
        taken = fastest(lambda question=question: evaluation(question, side), repeat)  # type: ignore[misc]
        rates = f"{side**2 / taken.wall_s:,.0f} | {side**2 / taken.cpu_s:,.0f}"
        print(
            f"| {question.words:34} | {taken.wall_s:.3f} | {taken.cpu_s:.3f} | {rates} | {taken.peak_bytes / MIB:.0f} |"
        )


def report_command(side: int, repeat: int) -> None:
    """Print a table of commands that write Parquet."""
    print(f"\n`planner sweep ... --batch 1:{side} --context 1:{side} -o x.parquet`\n")
    print(f"| {'case':34} | wall s | one point s | beyond start-up s | processor s beyond | peak MiB |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for question in QUESTIONS:
            one = fastest(lambda question=question: command(question, 1, folder), repeat)  # type: ignore[misc]
            all_ = fastest(lambda question=question: command(question, side, folder), repeat)  # type: ignore[misc]
            beyond = f"{all_.wall_s - one.wall_s:.2f} | {all_.cpu_s - one.cpu_s:.2f}"
            print(
                f"| {question.words:34} | {all_.wall_s:.2f} | {one.wall_s:.2f} | {beyond} | {all_.peak_bytes / MIB:.0f} |"
            )


def main() -> None:
    """Time what was asked for, and print tables."""
    parser = argparse.ArgumentParser(description="Times sweeps of a million points.")
    parser.add_argument("--side", type=int, default=1000, help="batches and contexts: 1 to this (default: 1000)")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, of which the fastest counts (default: 3)")
    parser.add_argument("--only", choices=["evaluation", "command"], help="time one of the two")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    if options.only != "command":
        report_evaluation(options.side, options.repeat)
    if options.only != "evaluation":
        report_command(options.side, options.repeat)


if __name__ == "__main__":
    main()
