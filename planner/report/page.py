"""The page: a study through the template, in one file that needs nothing else.

Text from a description is data and never markup: the template escapes it, data for the charts is JSON in which no tag can end, and a
content security policy lets no script run but the two that stand in the page, and lets nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import planner.collectives.cost
import planner.decompose
import planner.memory
import planner.op
import planner.parallel
import planner.roofline
import planner.step
from planner import catalogue, charts
from planner.errors import InputError
from planner.report import crossing, frames, tables
from planner.report.answer import answer
from planner.report.study import MOST_CHIPS, Study, digest

if TYPE_CHECKING:
    import jinja2
    from markupsafe import Markup

DRAWN_WIDTH = 860
"""Width of a chart that is drawn before it is known how wide it may be [pixels]."""

TEMPLATE = "report.html.j2"

EXPLAINED: tuple[ModuleType, ...] = (planner.roofline, planner.step, planner.decompose, planner.op, planner.memory)
"""Modules whose docstrings end in what is computed and what is left out."""

EXPLAINED_OF_SEVERAL: tuple[ModuleType, ...] = (planner.parallel, planner.collectives.cost)
"""The same, of what matters where there are several chips."""

_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a report comes from.

    Attributes
    ----------
    command : str
        The command line that writes it again.
    version : str
        The planner's.
    date : str
        The day it was asked for.
    warnings : tuple of str
        What is unusual about the request.
    """

    command: str
    version: str
    date: str
    warnings: tuple[str, ...] = ()


def render(study: Study, origin: Origin) -> str:
    """Return the report as one HTML document."""
    from markupsafe import Markup  # not needed where a chart alone is drawn

    found = _charts(study, charts.Look(palette=charts.PAGE, width="container", font=charts.PAGE_FONT))
    scripts = {"library": charts.library() if found else "", "own": _text("report.js")}
    readouts = tables.readouts(study)
    content = {
        "digest": digest(study.asked.question),
        "answer": answer(study),
        "selection": _selection(study),
        "precisions": tables.precisions(study),
        "side_by_side": tables.side_by_side(study),
        "details": tables.details(study),
        "critical": tables.critical(study),
        "chips": tables.chips(study),
        "most_chips": MOST_CHIPS,
        "levers": tables.levers(study),
        "reasons": tables.reasons(study),
        "memory": tables.memory(study),
        "advice": tables.advice(study),
        "laid_out": tables.laid_out(study),
        "layout_points": tables.layout_points(study),
        "figures": tables.figures(study),
        "settings": tables.settings(study),
        "explained": _explained(EXPLAINED if study.layout.is_single else EXPLAINED + EXPLAINED_OF_SEVERAL),
        "readouts": readouts,
    }
    return _template().render(
        study=study,
        origin=origin,
        versions=charts.versions(),
        **content,
        drawn={name: Markup(text) for name, text in _drawn(found).items()},  # noqa: S704 - drawn here, from escaped text
        specs=embedded(found),
        control=embedded({"batches": study.batches, "readouts": readouts}),
        style=Markup(_text("report.css")),  # noqa: S704 - our own file
        scripts={name: Markup(text) for name, text in scripts.items()},  # noqa: S704 - our own file and the library
        policy=_policy(scripts.values()),
    )


def image(study: Study, *, as_png: bool) -> str | bytes:
    """Return the roofline alone, as SVG text or as a PNG file.

    Raises
    ------
    InputError
        If the chip has no rates to draw.
    """
    title = f"{study.model.name} on {study.hardware.name}: {study.step.phase}, batch {study.step.batch:,}, {study.asked.name}"
    found = _charts(study, charts.Look(title=title))
    if not found:
        raise InputError(f"{study.hardware.name}: no roofline can be drawn: {tables.why_unknown(study.asked)}")
    return charts.png(found["roofline"]) if as_png else charts.svg(found["roofline"])


def embedded(data: Any) -> Markup:
    """Return data as JSON that can stand in a script element: no tag can end in it, and it is ASCII.

    >>> str(embedded({"name": "</script>"}))
    '{"name":"\\\\u003c/script\\\\u003e"}'
    """
    from markupsafe import Markup

    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character, escape in _UNSAFE.items():
        text = text.replace(character, escape)
    return Markup(text)  # noqa: S704 - escaped above


def _selection(study: Study) -> charts.Selection:
    """Return what the charts show at first: the precision asked for, or the first one that the chip has rates for."""
    rated = [choice.name for choice in study.choices if choice.point.lower_s is not None]
    return charts.Selection(batch=int(study.step.batch), precision=rated[0] if rated else study.asked.name)


def _charts(study: Study, look: charts.Look) -> dict[str, charts.Spec]:
    """Return the charts by name; none where the chip has no rates."""
    points, times = frames.points(study), frames.times(study)
    if points.empty or times.empty:
        return {}
    selection = _selection(study)
    rated = [choice for choice in study.choices if choice.is_known]
    found = crossing.tables([choice.question for choice in rated], [choice.solved for choice in rated])
    return {
        "roofline": charts.roofline_chart(frames.roofs(study, points), points, selection, look),
        "times": charts.times_chart(times, frames.marks(study), selection, look),
        **charts.crossing_charts(found.named, selection, look),
    }


def _drawn(found: Mapping[str, charts.Spec]) -> dict[str, str]:
    """Return the charts as they stand at first, for readers whose browser runs no scripts."""
    font = {"font": charts.DRAWN_FONT}
    return {
        name: charts.svg({**spec, "width": DRAWN_WIDTH, "config": spec["config"] | font}, prefix=f"{name}-")
        for name, spec in found.items()
    }


def _template() -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(catalogue.data_folder("templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE)


def _text(name: str) -> str:
    """Return a file that stands in the page as it is. Its newlines are those of every machine, so that its checksum is too."""
    return (catalogue.data_folder("templates") / name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str]) -> str:
    """Return a content security policy that runs these scripts and no other, and fetches nothing.

    Vega compiles the expressions of a chart, which the policy calls "unsafe-eval"; the expressions are this program's own.
    """
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    sources = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {sources} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _explained(modules: Iterable[ModuleType]) -> list[str]:
    """Return what modules say at the end of their docstrings: definitions, assumptions, omissions."""
    paragraphs = [inspect.cleandoc(module.__doc__ or "").split("\n\n")[-1] for module in modules]
    return [" ".join(paragraph.split()).replace("``", "") for paragraph in paragraphs]
