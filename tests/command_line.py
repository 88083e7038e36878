"""Runs of the command line, in this process or in one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.cli.main import run

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Outcome:
    """What a run of the command line did."""

    code: int
    stdout: str
    stderr: str


def run_planner(*arguments: str) -> Outcome:
    """Run the command line in this process, as a shell would see it."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    return Outcome(code, out.getvalue(), err.getvalue())


def run_process(
    arguments: Sequence[str], *, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a process of its own."""
    code = "from planner.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], check=False, cwd=cwd, env=environment, capture_output=True
    )
