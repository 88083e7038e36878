"""`planner report`: a model on a chip, as a page that people read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner import __version__, catalogue
from planner.cli.command_line import command_line
from planner.cli.options import (
    LAYOUT_OPTIONS,
    assume_option,
    engine_option,
    hardware_option,
    layout_options,
    precision_options,
    step_of,
    step_options,
)
from planner.cli.output import deliver, write_whole
from planner.errors import InputError
from planner.parallel import Layout
from planner.scenario import choose_precision, warnings

if TYPE_CHECKING:
    from planner.report.study import Study

SIDE_BY_SIDE = ("int8", "bf16", "fp32")
"""The precisions that every report compares."""

SUFFIXES = (".html", ".svg", ".png")
"""The kinds of file that can be written."""


@click.command("report")
@click.argument("model")
@hardware_option
@step_options
@layout_options
@assume_option
@precision_options
@engine_option
@click.option("--date", type=click.DateTime(["%Y-%m-%d"]), help="The date on the report.  [default: today]")
@click.option("--output", "-o", metavar="FILE", help="Where to write: .html, or .svg or .png for the roofline alone.")
def command(**options: Any) -> None:
    """Write an HTML report of a model on a chip.

    MODEL is a name of the catalogue, a YAML file, or a Hugging Face config.json or its folder. The report is one file that works
    offline. It compares int8, bf16 and fp32 with the precision asked for; --precision takes several, separated by commas.
    """
    from planner.report.study import study  # heavy

    path = _path(options)
    model = catalogue.load_model(options["model"], assume=options["assume"])
    hardware = catalogue.load_hardware(options["hardware_name"])
    step = step_of(options)
    first, *others = (options["precision"] or "").split(",")
    kv = options["kv_precision"]
    asked = choose_precision(model, first.strip() or None, experts=options["moe_precision"], kv=kv)
    compared = [choose_precision(model, name.strip(), kv=kv) for name in (*others, *SIDE_BY_SIDE)]
    layout = Layout(**{name: options[name] for name in LAYOUT_OPTIONS})
    engine = catalogue.load_engine(options["engine"])
    found = study(model, hardware, step, (asked, *compared), engine=engine, layout=layout)
    notes = warnings(model, hardware, step, found.asked.memory)
    write_whole(path, _content(path, found, options, notes))
    deliver(f"{path}\n", None, (*notes, *found.asked.point.notes))


def _path(options: dict[str, Any]) -> Path:
    """Return the file to write; beside the reader, named after model and chip, where none is given."""
    names = (_short(options[name]) for name in ("model", "hardware_name"))
    path = Path(options["output"] or f"{'-'.join(names)}.html")
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"--output: {path} is no name for a report, end it in {', '.join(SUFFIXES)}")
    return path


def _short(name: str) -> str:
    """Return the last part of a name or path, without the suffix of a description."""
    path = Path(name).resolve()
    return path.stem if path.suffix in (".yaml", ".yml", ".json") else path.name


def _content(path: Path, found: Study, options: dict[str, Any], notes: tuple[str, ...]) -> str | bytes:
    """Return what the file holds, by its suffix."""
    from planner.report import page  # heavy

    suffix = path.suffix.lower()
    if suffix != ".html":
        return page.image(found, as_png=suffix == ".png")
    date = (options["date"] or datetime.now(UTC).astimezone()).strftime("%Y-%m-%d")
    given = {"date": date, "output": str(path)}
    origin = page.Origin(command=command_line(given), version=__version__, date=date, warnings=notes)
    return page.render(found, origin)
