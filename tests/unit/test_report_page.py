"""The page as a file: escaping, what it may run and fetch, what it states, and how it is written."""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import planner.op
from planner import __version__, catalogue
from planner.cli.main import run
from planner.report.page import embedded

HOSTILE = "</script><script>alert(1)</script>"

MODEL = f"""
name: '{HOSTILE}'
source: '<img src=x onerror=alert(2)>'
hidden_size: 1024
vocab_size: 32000
tie_word_embeddings: false
layers:
  - repeat: 4
    attention: {{kind: mha, num_attention_heads: 8, head_dim: 128}}
    ffn: {{kind: gated, intermediate_size: 4096}}
notes: ['<b>bold</b> & {{{{ 7 * 7 }}}} {{% raw %}}']
"""

CHIP = """
name: "Chip <i>x</i> & 'y'"
vendor: V
kind: asic
peak:
  bf16: {value: 100 TFLOP/s, source: "<u>sheet</u>", verified: false}
memory:
  capacity: {value: 80 GiB, source: sheet}
  bandwidth: {value: 1 TB/s, source: sheet}
"""


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, scripts, and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.text = ""
        self._script: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._script = str(dict(attrs)["id"])
            self.scripts[self._script] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is None:
            self.text += data
        else:
            self.scripts[self._script] += data

    def meta(self, key: str, name: str) -> str:
        return next(str(a["content"]) for tag, a in self.elements if tag == "meta" and a.get(key) == name)


def report(*arguments: str, output: Path) -> Page:
    assert run(["report", *arguments, "--output", str(output)]) == 0
    return Page(output.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Page:
    folder = tmp_path_factory.mktemp("hostile")
    model, chip = folder / "model.yaml", folder / "chip.yaml"
    model.write_text(MODEL, encoding="utf-8")
    chip.write_text(CHIP, encoding="utf-8")
    return report(str(model), "--hardware", str(chip), output=folder / "r.html")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    arguments = ("qwen3-30b-a3b", "--hardware", "tpu-v5p", "--batch", "64", "--date", "2026-01-15")
    return report(*arguments, output=tmp_path_factory.mktemp("page") / "r.html")


# ---- text is data ----------------------------------------------------------------------------------------------------


def test_text_of_a_description_opens_no_element(hostile: Page) -> None:
    assert list(hostile.scripts) == ["chart-specs", "chart-control", "library", "own"]
    assert not any("alert(" in script for script in (hostile.scripts["own"], hostile.scripts["chart-control"]))
    assert not {"img", "u", "i"} & {tag for tag, _ in hostile.elements}
    assert not any(name.startswith("on") for _, attributes in hostile.elements for name in attributes)
    for text in (HOSTILE, "<img src=x onerror=alert(2)>", "<b>bold</b> & {{ 7 * 7 }} {% raw %}", "<u>sheet</u>"):
        assert text in hostile.text


def test_embedded_data_can_end_no_script_and_survives() -> None:
    data = {"name": HOSTILE, "lines": "\u2028\u2029", "comment": "<!-- ]]> &amp;", "number": 1.5}
    text = str(embedded(data))
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == data


def test_data_that_is_no_number_is_not_embedded() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embedded({"value": float("nan")})


def test_the_policy_runs_the_scripts_of_the_page_and_fetches_nothing(page: Page) -> None:
    policy = page.meta("http-equiv", "Content-Security-Policy")
    assert "default-src 'none'" in policy
    for name in ("library", "own"):
        checksum = base64.b64encode(hashlib.sha256(page.scripts[name].encode()).digest()).decode()
        assert f"'sha256-{checksum}'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def test_nothing_in_the_page_points_outside(page: Page) -> None:
    for tag, attributes in page.elements:
        assert not {"src", "href", "action", "data", "srcset"} & set(attributes), tag
    assert "@import" not in page.text
    assert "url(" not in page.text


# ---- what it states --------------------------------------------------------------------------------------------------


def test_it_says_what_was_asked_of_whom_and_when(page: Page) -> None:
    command = "planner report qwen3-30b-a3b --hardware tpu-v5p --batch 64 --date 2026-01-15 --output "
    assert page.meta("name", "planner-command").startswith(command)
    assert f"2026-01-15 · planner {__version__} · " in page.text
    assert re.search(r"sha256 [0-9a-f]{12}\b", page.text)


def test_every_source_and_every_omission_is_there(page: Page) -> None:
    chip = catalogue.load_hardware("tpu-v5p")
    figures = dict(chip.figures())
    for path in ("peak.bf16", "peak.int8", "memory.usable", "memory.bandwidth"):
        assert figures[path].source in page.text
    for note in chip.notes:
        assert note in page.text
    left_out = [p for p in inspect.cleandoc(planner.op.__doc__ or "").split("\n\n") if "Left out" in p]
    assert len(left_out) == 1
    assert " ".join(left_out[0].split()) in page.text


def test_a_missing_rate_says_why(page: Page) -> None:
    assert page.text.count("Google TPU v5p has no rate for fp32: nothing can be said") >= 3


def test_an_unverified_figure_is_marked(hostile: Page, page: Page) -> None:
    assert "sheet</u> unverified" in " ".join(hostile.text.split())
    # Of the TPU's figures none is unverified, of the engine's rules one is.
    assert page.text.count(" unverified\n") == 1


def test_the_chart_data_holds_every_batch_and_precision_that_can_be_chosen(page: Page) -> None:
    control, specs = (json.loads(page.scripts[name]) for name in ("chart-control", "chart-specs"))
    assert list(control["readouts"]) == ["bf16", "int8", "fp32"]
    points = specs["roofline"]["datasets"]["points"]
    assert {row["batch"] for row in points} == set(control["batches"])
    assert {row["precision"] for row in points} == {"bf16", "int8"}
    assert all(set(map(int, readouts)) == set(control["batches"]) for readouts in control["readouts"].values())


# ---- writing ---------------------------------------------------------------------------------------------------------


def test_two_runs_write_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = []
    for _ in range(2):
        report("llama-3.1-70b", "--hardware", "mi300x", "--date", "2026-01-15", output=Path("r.html"))
        written.append(Path("r.html").read_bytes())
    assert written[0] == written[1]
    assert b"\r" not in written[0].split(b'<script id="library">')[0]


def test_the_path_is_printed_and_the_date_is_today_where_none_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = datetime.now(UTC).astimezone().date()
    assert run(["report", "llama-3.1-70b", "--hardware", "h100-sxm"]) == 0
    after = datetime.now(UTC).astimezone().date()
    assert capsys.readouterr().out == "llama-3.1-70b-h100-sxm.html\n"
    page = Page(Path("llama-3.1-70b-h100-sxm.html").read_text(encoding="utf-8"))
    assert any(f"--date {day}" in page.meta("name", "planner-command") for day in (before, after))


def test_further_precisions_stand_beside_the_usual_ones(tmp_path: Path) -> None:
    page = report("llama-3.1-70b", "--hardware", "b200-sxm", "--precision", "fp8,nvfp4", output=tmp_path / "r.html")
    assert list(json.loads(page.scripts["chart-control"])["readouts"]) == ["fp8", "nvfp4", "int8", "bf16", "fp32"]


def test_a_chip_of_unknown_bandwidth_has_a_page_without_charts(tmp_path: Path) -> None:
    chip = tmp_path / "chip.yaml"
    chip.write_text(CHIP.replace("value: 1 TB/s", "value: null"), encoding="utf-8")
    page = report("llama-3.1-70b", "--hardware", str(chip), output=tmp_path / "r.html")
    assert "There is nothing to draw" in page.text
    assert json.loads(page.scripts["chart-specs"]) == {}
    assert len(page.scripts["library"]) == 0


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<svg "), (".png", b"\x89PNG\r\n\x1a\n")])
def test_the_roofline_alone_is_drawn_without_a_browser(tmp_path: Path, suffix: str, start: bytes) -> None:
    path = tmp_path / f"r{suffix}"
    assert run(["report", "llama-3.1-70b", "--hardware", "h100-sxm", "--precision", "fp8", "-o", str(path)]) == 0
    content = path.read_bytes()
    assert content.startswith(start)
    if suffix == ".svg":
        for text in (
            b"attainable rate [FLOP/s]",
            b"3.35 TB/s",
            b"bf16 989 TFLOP/s",
            b"whole step",
            b"Llama-3.1-70B on NVIDIA",
        ):
            assert text in content


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<svg "), (".PNG", b"\x89PNG\r\n\x1a\n")])
def test_solve_draws_its_picture(tmp_path: Path, suffix: str, start: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"s{suffix}"
    arguments = ["solve", "llama-3.1-8b", "--hardware", "h100-sxm", "--max-chips", "2", "-o", str(path)]
    assert run(arguments) == 0
    assert capsys.readouterr().out == f"{path}\n"
    content = path.read_bytes()
    assert content.startswith(start)
    if suffix == ".svg":
        for text in (b"share of peak attained", b"ridge of bf16: 295", b">fp32<", b"1 chip holds", b"whole step"):
            assert text in content


def test_solve_writes_other_files_in_the_format_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    arguments = [
        "solve",
        "llama-3.1-8b",
        "--hardware",
        "h100-sxm",
        "--max-chips",
        "1",
        "--format",
        "json",
        "-o",
        str(path),
    ]
    assert run(arguments) == 0
    assert len(json.loads(path.read_text(encoding="utf-8"))["records"]) == 3


def test_solve_on_a_chip_without_rates_draws_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.svg"
    arguments = ["solve", "qwen3-30b-a3b", "--hardware", "tpu-v5p", "--precision", "fp32", "--max-chips", "2"]
    assert run([*arguments, "-o", str(path)]) == 2
    assert "no rate for any of the precisions" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert run(arguments) == 0
    assert "has no rate for fp32" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize("columns", ["80", "120"])
def test_answers_fit_the_terminal_and_name_what_limits(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run(["solve", "llama-3.1-70b", "--hardware", "h100-sxm", "--max-chips", "2"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= int(columns)
    assert re.search(r"limited by +bandwidth +bandwidth +weights", printed)
    assert printed.count("attention reads") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["llama-3.1-70b", "--hardware", "h100-sxm", "--tp", "3", "-o", "x.html"], "tp: the 64 query_heads of"),
        (["llama-3.1-70b", "--hardware", "h100-sxm", "--ep", "2", "-o", "x.html"], "ep: 2 groups do not divide"),
        (["llama-3.1-70b", "--hardware", "h100-sxm", "-o", "x.pdf"], "x.pdf is no name for a report, end it in .html"),
        (["llama-3.1-70b", "--hardware", "h100-sxm", "-o", "x"], "end it in .html, .svg, .png"),
        (["llama-3.1-70b", "--hardware", "h100-sxm", "--date", "tomorrow", "-o", "x.html"], "tomorrow"),
        (["llama-3.1-70b", "--hardware", "h100-sxm", "--precision", "fp9", "-o", "x.html"], "unknown name 'fp9'"),
        (["llama-3.1-70b", "--hardware", "h100-sxm", "--precision", "fp8,,", "-o", "x.html"], "unknown name ''"),
        (["llama-9", "--hardware", "h100-sxm", "-o", "x.html"], "unknown model"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["report", *arguments]) == 2
    errors: Any = capsys.readouterr().err
    assert errors.startswith("error: ")
    assert errors.count("\n") == 1
    assert said in errors
    assert list(tmp_path.iterdir()) == []


def test_a_chart_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chip, path = tmp_path / "chip.yaml", tmp_path / "r.svg"
    chip.write_text(CHIP.replace("value: 1 TB/s", "value: null"), encoding="utf-8")
    assert run(["report", "llama-3.1-70b", "--hardware", str(chip), "-o", str(path)]) == 2
    assert "no roofline can be drawn" in capsys.readouterr().err
    assert not path.exists()
