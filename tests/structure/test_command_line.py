"""The commands, their help and the documents that speak of them, held together; and how soon they answer."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from subprocess import DEVNULL

import click
import pytest
from command_line import run_planner

from planner.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_itself(name: str) -> None:
    assert command(name).get_short_help_str(limit=1000) == COMMANDS[name]
    assert command(name).name == name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    unexplained = [
        option.name
        for option in command(name).params
        if isinstance(option, click.Option) and not option.help and f"| `{option.name}` |" not in glossary
    ]
    assert not unexplained


def test_every_command_module_is_in_the_list() -> None:
    files = (ROOT / "planner" / "cli").glob("*_command.py")
    assert {path.stem.removesuffix("_command").replace("_", "-") for path in files} == set(COMMANDS)


def calls(text: str) -> list[list[str]]:
    """Return the `planner` command lines that stand at the start of a line, a prompt before them or not."""
    joined = text.replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in re.findall(r"^(?:\$ )?(planner [^|>\n]+)", joined, flags=re.MULTILINE)]


def test_calls_are_found_with_their_continuation_lines() -> None:
    text = "$ planner ops a --batch 2\nplanner model \\\n  b\nuse planner often\n"
    assert calls(text) == [["ops", "a", "--batch", "2"], ["model", "b"]]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_use_commands_and_options_that_exist(document: Path) -> None:
    for name, *arguments in calls(document.read_text(encoding="utf-8")):
        if name.startswith("-"):
            continue
        assert name in COMMANDS, f"{document.name} uses `planner {name}`"
        known = {spelling for option in command(name).params for spelling in (*option.opts, *option.secondary_opts)}
        used = {argument.split("=")[0] for argument in arguments if argument.startswith("-")}
        assert used <= known | {"-h", "--help"}, f"`planner {name}` has no {sorted(used - known)}"


def test_example_in_the_help_runs() -> None:
    for name, *arguments in calls(re.sub(r"^ +", "", cli.help or "", flags=re.MULTILINE)):
        assert name in COMMANDS
        if "-o" not in arguments:
            assert run_planner(name, *arguments).code == 0


# ---- how soon it answers ---------------------------------------------------------------------------------------------


def cpu_seconds(code: str) -> float:
    """Return the time that a process computes for, which neighbours on the machine change little [s]."""
    # Bytecode is kept, as an installed package keeps it, whatever this test run was told.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=DEVNULL, stderr=DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


LOOKS = (7, 15, 31)
"""Pairs of runs after which the ratio is looked at; a busy machine gets more than one look."""


def within(factor: float, reference: str, code: str, *, looks: tuple[int, ...] = LOOKS) -> bool:
    """Whether a code takes at most `factor` times as long as the reference: the median over runs taken in pairs.

    What else runs on the machine slows both runs of a pair alike, so that the ratio changes less than the times.
    """
    ratios: list[float] = []
    for wanted in looks:
        while len(ratios) < wanted:
            ratios.append(cpu_seconds(code) / cpu_seconds(reference))
        if statistics.median(ratios) <= factor:
            return True
    return False


SHARED = 1.15
"""Other tests run on the same processor meanwhile: runs that read many files suffer more from that than what they are compared with."""


def test_the_comparison_of_times_can_fail() -> None:
    assert not within(2.0, "pass", "sum(range(20_000_000))", looks=(3,))
    assert within(2.0, "sum(range(20_000_000))", "pass", looks=(3,))


def run_code(arguments: list[str]) -> str:
    return f"from planner.cli import main; main({arguments!r})"


@pytest.mark.slow
def test_help_answers_at_once() -> None:
    assert within(1.5 * SHARED, "import click", run_code(["--help"]))


@pytest.mark.slow
@pytest.mark.parametrize("output_format", ["table", "json"])
def test_ops_answers_at_once(output_format: str) -> None:
    arguments = ["ops", "llama-3.1-70b", "--hardware", "h100-sxm", "--format", output_format]
    assert within(2.0 * SHARED, "import numpy, pydantic, click", run_code(arguments))


def test_help_imports_nothing_heavy() -> None:
    heavy = {"numpy", "pydantic", "rich", "yaml", "pandas", "scipy", "altair", "jinja2", "quantiphy"}
    code = (
        f"import sys\ntry:\n  {run_code(['--help'])}\nfinally:\n  assert not {heavy!r} & set(sys.modules), sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, cwd=ROOT).returncode == 0


@pytest.mark.parametrize("output_format", ["table", "json", "csv", "md"])
def test_ops_imports_no_library_of_other_commands(output_format: str) -> None:
    heavy = {"numpy", "pandas", "scipy", "altair", "jinja2", "vl_convert", "planner.importers", "planner.solve"}
    arguments = ["ops", "llama-3.1-70b", "--hardware", "h100-sxm", "--format", output_format]
    code = (
        f"import sys\ntry:\n  {run_code(arguments)}\nfinally:\n  assert not {heavy!r} & set(sys.modules), sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr[-300:]


def test_importing_the_command_line_is_enough_for_main() -> None:
    assert callable(importlib.import_module("planner.cli").main)
