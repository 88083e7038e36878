"""Fixtures of tests that run the command line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from refusals import (
    SLOWEST_S,
    Refused,
    assert_one_line,
    listing,
)

from planner.cli.main import run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Return a function that runs a command which has to fail, and gives its one line."""

    def check(*arguments: str) -> str:
        before, started = listing(folder), time.process_time()
        code = run(arguments)
        took = time.process_time() - started
        captured = capsys.readouterr()
        assert_one_line(code, captured.out, captured.err)
        assert listing(folder) == before
        assert took < SLOWEST_S
        return captured.err

    return check
