"""Asks the planner and pip-installable peers the same question, and prints how many points a second each answers, and two answers.

The question: the time of a decode step of Llama-3.1-8B in bf16 on one H100 SXM, over a grid of batches and contexts. Peers live in
an environment of their own, named by ``--peers-python``::

    python -m venv peers
    peers/bin/pip install aiconfigurator==0.12.0 genz-llm==0.0.16 llm-analysis==0.2.2 servcalc==0.1.0 ridgepoint==0.1.2
    python benchmarks/peers.py --peers-python peers/bin/python

How each is asked stands in `peer.py`; a peer that is not installed is left out, and said. Each runs alone in one process, after its
preparation, and points/s are of processor time, which other work on the machine disturbs less than it does the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from peer import BATCHES, CONTEXTS, PEERS, SHOWN

from planner import __version__, catalogue
from planner.parallel import Layout
from planner.precision import policy
from planner.sweep import Block, Case, Sweep, evaluate
from planner.workload import Phase

POINTS = 1_000_000
ROWS = POINTS // len(BATCHES)


def ours() -> dict[str, Any]:
    """Evaluate a million points with all columns of a sweep, and the points that are shown."""
    case = Case(
        model_name="llama-3.1-8b",
        hardware_name="h100-sxm",
        model=catalogue.load_model("llama-3.1-8b"),
        hardware=catalogue.load_hardware("h100-sxm"),
        precision=policy("bf16"),
        layout=Layout(),
    )
    sweep = Sweep(
        cases=(case,),
        phase=Phase.DECODE,
        batches=BATCHES,
        contexts=tuple(CONTEXTS[:ROWS]),
        new_tokens=1,
        engine=catalogue.load_engine(),
    )
    answers = [
        float(evaluate(Block(sweep=sweep, case=case, batches=(batch,), contexts=(context,)))["lower_s"][0])
        for batch, context in SHOWN
    ]
    wall, cpu = time.perf_counter(), time.process_time()
    points = sum(int(np.size(evaluate(block)["lower_s"])) for block in sweep.blocks())
    taken = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return {"version": __version__, "points": points, "answers_s": answers, **taken}


def theirs(python: Path, name: str, seconds: float) -> dict[str, Any]:
    """Run a peer in its own Python, and return what it printed last."""
    script = Path(__file__).with_name("peer.py")
    done = subprocess.run(
        [str(python), str(script), name, str(seconds)], capture_output=True, text=True, check=False, cwd=Path.home()
    )
    if done.returncode:
        sys.exit(f"{name}: {done.stderr.strip().splitlines()[-1]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def _row(name: str, result: dict[str, Any]) -> str:
    """Return a row of the table."""
    answers = ["–" if answer is None else f"{answer * 1e3:.2f}" for answer in result["answers_s"]]
    speed = f"{result['points'] / result['cpu_s']:,.0f} | {result['points'] / result['wall_s']:,.0f}"
    times = f"{result['points']:,} | {result['cpu_s']:.2f} | {result['wall_s']:.2f} | {speed}"
    return f"| {name} {result['version']} | {times} | {' | '.join(answers)} |"


def main() -> None:
    """Time each, and print a table."""
    parser = argparse.ArgumentParser(description="Times the planner and pip-installable peers on the same question.")
    parser.add_argument("--peers-python", type=Path, required=True, help="the Python that the peers are installed in")
    parser.add_argument("--seconds", type=float, default=5, help="how long each peer is asked (default: 5)")
    parser.add_argument("--only", nargs="+", choices=list(PEERS), default=list(PEERS), help="peers; all by default")
    options = parser.parse_args()
    # Not resolved: a virtual environment's Python is a link, and where it is called from says which environment it is.
    python = options.peers_python.absolute()
    if not python.is_file():
        parser.error(f"--peers-python: {python} is not there")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    shown = [f"batch {batch}, context {context}: ms" for batch, context in SHOWN]
    heads = ["tool", "points", "processor s", "wall s", "points/s of processor", "points/s of wall", *shown]
    print(f"| {' | '.join(heads)} |\n|---{'|---:' * (len(heads) - 1)}|")
    print(_row("planner", ours()), flush=True)
    for name in options.only:
        result = theirs(python, name, options.seconds)
        if "missing" in result:
            print(f"{name}: left out, it is not installed: pip install {result['missing']}", file=sys.stderr)
        else:
            print(_row(name, result), flush=True)


if __name__ == "__main__":
    main()
