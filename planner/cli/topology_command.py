"""`planner topology`: the links between chips, and what collectives cost on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from planner import catalogue, records
from planner.cli.options import output_options, positive
from planner.cli.output import Result, emit
from planner.cli.tables import new_table
from planner.report import words

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command("topology")
@click.argument("hardware")
@click.option("--chips", type=positive, help="Chips that take part.  [default: a whole domain, 8 of a large one]")
@output_options
def command(**options: Any) -> None:
    """Explain the links between chips, and what each collective costs on them.

    HARDWARE is a chip of the catalogue, or a YAML file. Times are floors at datasheet rates; the cheapest algorithm is planned with.
    """
    from planner.collectives.survey import default_chips, survey  # not needed for --help

    hardware = catalogue.load_hardware(options["hardware"])
    found = survey(hardware, options["chips"] or default_chips(hardware))
    record = records.survey_record(found)
    emit(
        Result(record=record, rows=record["collectives"], tables=lambda: _tables(record)),
        options["output_format"],
        options["output"],
    )


def _tables(record: dict[str, Any]) -> Iterable[RenderableType]:
    from rich.text import Text  # only for people

    yield Text(f"{record['chips']} chips of {record['hardware']}")
    for line in record["explanation"]:
        yield Text(f"• {line}")
    right = ("message", "steps", "sent", "time", "message/time")
    table = new_table("collective", "algorithm", *right, right=right)
    last = ""
    for row in record["collectives"]:
        mark = " *" if row["default"] else ""
        table.add_row(
            row["operation"] if row["operation"] != last else "",
            row["algorithm"] + mark,
            words.scaled(row["message_bytes"], "B"),
            str(row["steps"]),
            words.scaled(row["sent_bytes"], "B"),
            words.duration(row["seconds"]),
            words.scaled(row["message_bytes_per_s"], "B/s"),
        )
        last = row["operation"]
    yield table
    yield Text("* the cheapest, which is planned with")
