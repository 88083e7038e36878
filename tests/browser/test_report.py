"""Reports in a real browser: they draw, follow the reader's choices, fit a phone, and fetch nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from planner.cli.main import run

HOSTILE = "</script><script>alert(1)</script>"

MODEL = f"""
name: '{HOSTILE}'
source: '<img src=x onerror=alert(2)>\u2028"quoted"'
hidden_size: 2048
vocab_size: 32000
tie_word_embeddings: false
layers:
  - repeat: 4
    attention: {{kind: gqa, num_attention_heads: 16, num_key_value_heads: 4, head_dim: 128}}
    ffn: {{kind: gated, intermediate_size: 8192}}
notes: ['<b>bold</b> & {{{{ 7 * 7 }}}}']
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    path = folder / "moe.html"
    layout = ["--tp", "4", "--ep", "4"]
    assert run(["report", "qwen3-30b-a3b", "--hardware", "tpu-v5p", *layout, "--batch", "64", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    model, path = folder / "model.yaml", folder / "report.html"
    model.write_text(MODEL, encoding="utf-8")
    assert run(["report", str(model), "--hardware", "h100-sxm", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dense") / "dense.html"
    assert (
        run(["report", "llama-3.1-70b", "--hardware", "h100-sxm", "--tp", "8", "--batch", "64", "-o", str(path)]) == 0
    )
    return path


@dataclass
class Visit:
    """A page, and everything that it complained about or asked for."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def open(self, path: Path) -> None:
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.shown !== undefined")

    def points(self) -> list[str]:
        """Where the operations stand in the roofline chart."""
        marks = self.page.locator("#roofline .operations_marks path, #roofline [class*=operations] path")
        return [mark.get_attribute("transform") for mark in marks.all()]


@pytest.fixture
def visit(chromium: Any) -> Iterator[Visit]:
    context = chromium.new_context()
    page = context.new_page()
    seen = Visit(page)
    page.on(
        "console", lambda message: seen.errors.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))

    def dismiss(dialog: Any) -> None:
        seen.dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    yield seen
    context.close()


def test_it_draws_without_an_error_and_fetches_nothing(visit: Visit, report: Path) -> None:
    visit.open(report)
    assert visit.points()
    assert visit.page.locator("#times svg").count() == 1
    assert visit.errors == []
    assert visit.requests == [report.as_uri()]


def test_a_report_of_eight_chips_draws_its_links_and_its_collectives(visit: Visit, dense: Path) -> None:
    visit.open(dense)
    assert visit.errors == []
    assert visit.requests == [dense.as_uri()]
    assert "450 GB/s link" in visit.page.locator("#roofline text").all_text_contents()
    assert visit.page.locator("table.compare th", has_text="all_reduce").count() >= 2
    assert "one of 8 chips: tp 8" in visit.page.inner_text("section[aria-label=Answer]")


def test_the_picture_of_the_solver_follows_the_precision(visit: Visit, dense: Path) -> None:
    visit.open(dense)
    names = visit.page.locator("#intensity text, #share text")
    assert "ridge of bf16: 295" in names.all_text_contents()
    visit.page.get_by_role("radio", name="int8").check(force=True)
    visit.page.wait_for_function("document.documentElement.dataset.shown === '64 int8'")
    texts = names.all_text_contents()
    assert "ridge of int8: 591" in texts
    assert [text for text in texts if text.startswith("1 chip holds ")]
    # Both panels have the batch axis in one place.
    left = [visit.page.locator(f"#{name} .role-axis-grid").first.bounding_box()["x"] for name in ("intensity", "share")]
    assert left[0] == pytest.approx(left[1], abs=1.5)


@pytest.mark.parametrize("name", ["roofline", "times", "intensity", "share"])
def test_no_text_of_a_chart_leaves_a_phone(visit: Visit, dense: Path, name: str) -> None:
    visit.page.set_viewport_size({"width": 360, "height": 800})
    visit.open(dense)
    for text in visit.page.locator(f"#{name} .mark-text.role-legend-label text, #{name} .role-axis-label text").all():
        box = text.bounding_box()
        assert box is None or box["x"] + box["width"] <= 362, text.text_content()


def test_the_slider_moves_the_points(visit: Visit, report: Path) -> None:
    visit.open(report)
    before, text = visit.points(), visit.page.inner_text(".readout")
    assert text.startswith("Batch 64, bf16: memory-bound")
    slider = visit.page.locator("#batch")
    slider.focus()
    slider.press("ArrowRight")
    visit.page.wait_for_function("document.documentElement.dataset.shown === '96 bf16'")
    after = visit.points()
    assert len(after) == len(before)
    assert after != before
    assert visit.page.inner_text(".readout").startswith("Batch 96, bf16:")
    slider.press("ArrowLeft")
    visit.page.wait_for_function("document.documentElement.dataset.shown === '64 bf16'")
    assert visit.points() == before


def test_a_precision_can_be_chosen_and_one_without_a_rate_says_why(visit: Visit, report: Path) -> None:
    visit.open(report)
    before = visit.points()
    visit.page.get_by_role("radio", name="int8").check(force=True)
    visit.page.wait_for_function("document.documentElement.dataset.shown === '64 int8'")
    assert visit.points() != before
    visit.page.get_by_role("radio", name="fp32").check(force=True)
    visit.page.wait_for_function("document.documentElement.dataset.shown === '64 fp32'")
    assert visit.points() == []
    assert "has no rate for fp32" in visit.page.inner_text(".readout")
    assert visit.errors == []


def test_a_point_tells_what_it_is(visit: Visit, report: Path) -> None:
    visit.open(report)
    # Of points on top of each other the last drawn one answers.
    visit.page.locator("#roofline .operations_marks path").last.hover(force=True)
    tooltip = visit.page.locator("#vg-tooltip-element")
    tooltip.wait_for(state="visible")
    text = tooltip.inner_text()
    assert "operation" in text
    assert "arithmetic intensity [FLOP/B]" in text


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_never_scrolls_sideways(visit: Visit, report: Path, width: int) -> None:
    visit.page.set_viewport_size({"width": width, "height": 800})
    visit.open(report)
    measured = visit.page.evaluate(
        "() => { for (const d of document.querySelectorAll('details')) d.open = true;"
        " return [document.documentElement.scrollWidth, document.documentElement.clientWidth]; }"
    )
    assert measured == [width, width]


def test_the_charts_follow_the_colours_of_the_page(visit: Visit, report: Path) -> None:
    ink = "() => getComputedStyle(document.querySelector('#roofline .role-axis-label text')).fill"
    surface = "() => getComputedStyle(document.body).backgroundColor"
    seen = []
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme=scheme)
        visit.open(report)
        seen.append((visit.page.evaluate(ink), visit.page.evaluate(surface)))
    (light_ink, light_surface), (dark_ink, dark_surface) = seen
    assert _brightness(light_surface) - _brightness(light_ink) > 0.7
    assert _brightness(dark_ink) - _brightness(dark_surface) > 0.7
    # On paper it is light whatever the screen is.
    visit.page.emulate_media(media="print", color_scheme="dark")
    assert _brightness(visit.page.evaluate(surface)) > 0.95
    assert _brightness(visit.page.evaluate(ink)) < 0.2


def _brightness(colour: str) -> float:
    parts = colour[colour.index("(") + 1 : colour.index(")")].split(",")[:3]
    return sum(float(part) for part in parts) / (3 * 255)


def test_print_hides_the_controls_and_opens_every_table(visit: Visit, report: Path) -> None:
    visit.open(report)
    visit.page.emulate_media(media="print")
    visit.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert not visit.page.locator("#controls").is_visible()
    assert visit.page.locator("#roofline svg").is_visible()
    details = visit.page.locator("details")
    assert all(details.nth(i).get_attribute("open") is not None for i in range(details.count()))
    visit.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert [details.nth(i).get_attribute("open") is not None for i in range(3)] == [True, False, False]


def test_text_of_a_description_is_never_markup(visit: Visit, hostile: Path) -> None:
    visit.open(hostile)
    assert HOSTILE in visit.page.title()
    assert visit.page.inner_text("h1") == f"{HOSTILE} on NVIDIA H100 SXM 80GB"
    assert "{{ 7 * 7 }}" in visit.page.inner_text("body")
    assert visit.page.locator("img, body b:text('bold')").count() == 0
    assert visit.dialogs == []
    assert visit.errors == []


def test_charts_are_there_without_scripts(chromium: Any, report: Path) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.locator("noscript svg:visible").count() == 4
    assert not page.locator("#controls").is_visible()
    context.close()
