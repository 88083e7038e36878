"""Shared test set-up."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from planner.cli.main import run

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))

# Bounds are arithmetic: no example takes long, and a slow machine must not fail a test.
settings.register_profile("planner", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("planner")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Write the golden tables anew.")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


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


@pytest.fixture
def planner() -> Callable[..., Outcome]:
    return run_planner


@pytest.fixture
def process() -> Callable[..., subprocess.CompletedProcess[bytes]]:
    return run_process
