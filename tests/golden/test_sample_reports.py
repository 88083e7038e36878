"""The reports in reports/ are what the planner writes today, by the commands of `make reports`.

With the chart libraries that a report was written with they are compared byte for byte. Other versions bundle another library, draw
the same charts a little differently and word their specification differently: then all of that is left out, and everything else,
the data of the charts included, must still be the same.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from planner import charts
from planner.cli.main import run

ROOT = Path(__file__).parents[2]


def commands() -> list[list[str]]:
    """The report commands of the target `reports` in the Makefile, without the program."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    recipe = re.search(r"^reports:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    return [shlex.split(line)[1:] for line in recipe[1].splitlines()]


def output(arguments: list[str]) -> str:
    return arguments[arguments.index("--output") + 1]


def content(html: str) -> tuple[str, Any]:
    """A report without what its chart libraries decide, and the data of its charts."""
    found = re.search(r'<script type="application/json" id="chart-specs">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    data = {name: spec["datasets"] for name, spec in json.loads(found[1]).items()}
    html = html.replace(found[0], "")
    for pattern in (
        r'<script id="library">.*?</script>',
        r"<noscript>.*?</noscript>",
        r'<meta name="planner-charts"[^>]*>',
        r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>",
    ):
        html, count = re.subn(pattern, "", html, flags=re.DOTALL)
        assert count, pattern
    return html, data


@pytest.mark.parametrize("arguments", commands(), ids=output)
def test_sample_report_is_current(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = (ROOT / output(arguments)).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 0
    written = Path(output(arguments)).read_text(encoding="utf-8")
    # Compared as flags: pytest would take minutes to show where two megabytes differ.
    is_same = written == kept
    if f'<meta name="planner-charts" content="{charts.versions()}">' not in kept:
        (text, data), (kept_text, kept_data) = content(written), content(kept)
        is_same = text == kept_text and data == kept_data
    assert is_same, f"{output(arguments)} is not what the planner writes: run `make reports` and look at the difference"


def test_what_libraries_decide_is_all_that_is_left_out() -> None:
    html = (ROOT / output(commands()[0])).read_text(encoding="utf-8")
    text, data = content(html)
    assert len(text) > 30_000
    assert '<script id="own">' in text
    assert len(data["roofline"]["points"]) > 100
    changed = html.replace('"share":', '"Share":', 1)
    assert changed != html
    assert content(changed)[1] != data


def test_every_sample_has_a_command_and_names_it() -> None:
    named = {output(arguments): arguments for arguments in commands()}
    assert len(named) >= 2
    for path, arguments in named.items():
        html = (ROOT / path).read_text(encoding="utf-8")
        assert f'<meta name="planner-command" content="planner {shlex.join(arguments)}">' in html
        assert "--date" in arguments
