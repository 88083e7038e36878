"""`planner hardware`: the catalogue of chips."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from planner import catalogue, records
from planner.cli.comparison import LEGEND, UNVERIFIED, comparison_rows, comparison_tables
from planner.cli.options import output_options
from planner.cli.output import Result, emit
from planner.cli.progress import tracked
from planner.cli.tables import new_table
from planner.report import words
from planner.roofline import critical_intensity

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.hardware import Hardware


@click.command("hardware")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--compare", is_flag=True, help="Show several chips side by side.")
@output_options
def command(**options: Any) -> None:
    """List the chips of the catalogue, or show one with its sources.

    NAME is a chip of the catalogue, or a YAML file; several are shown side by side with --compare.
    """
    names: tuple[str, ...] = options["names"]
    if options["compare"]:
        if len(names) < 2:  # what can be compared
            raise click.UsageError("--compare needs two chips or more, such as: planner hardware --compare A B")
        chips = [records.hardware_record(name, catalogue.load_hardware(name)) for name in names]
        result = Result(
            record=chips, rows=comparison_rows(chips), tables=lambda: comparison_tables(chips, words.figure)
        )
    elif len(names) > 1:
        raise click.UsageError(f"{len(names)} chips are named, show them side by side with --compare")
    elif not names:
        every = tracked(catalogue.all_hardware(), len(catalogue.names("hardware")), "reading chips")
        rows = [_row(identity, chip) for identity, chip in every]
        result = Result(record=rows, rows=rows, tables=lambda: _list(rows))
    else:
        record = records.hardware_record(names[0], catalogue.load_hardware(names[0]))
        flat = [{"figure": path, **figure} for path, figure in record["figures"].items()]
        keys = ("figure", "value", "source", "verified", "date")
        rows = [{key: figure.get(key) for key in keys} for figure in flat]
        result = Result(record=record, rows=rows, tables=lambda: _one(record))
    emit(result, options["output_format"], options["output"])


def _row(identity: str, chip: Hardware) -> dict[str, Any]:
    sixteen_bit, bandwidth = chip.rate("bf16"), chip.memory.bandwidth.value
    rate = sixteen_bit.flops_per_s
    return {
        "id": identity,
        "name": chip.name,
        "vendor": chip.vendor,
        "kind": chip.kind,
        "year": chip.year,
        "bf16_flops_per_s": rate,
        "bf16_runs_in": sixteen_bit.used or None,
        "memory_bytes": chip.memory.plannable_bytes,
        "memory_bytes_per_s": bandwidth,
        "critical_intensity": critical_intensity(rate, bandwidth) if rate and bandwidth else None,
        "unverified": " ".join(chip.recalled({sixteen_bit.used}, linked=False)),
    }


def _list(rows: Sequence[dict[str, Any]]) -> Iterable[RenderableType]:
    from rich.text import Text  # only for people

    right = ("year", "16-bit peak", "memory", "bandwidth", "ridge")
    table = new_table("name", "vendor", *right, right=right)
    for row in rows:
        recalled = row["unverified"]
        table.add_row(
            row["id"],
            row["vendor"],
            str(row["year"] or words.NOTHING),
            words.scaled(row["bf16_flops_per_s"], "FLOP/s") + (UNVERIFIED if "peak." in recalled else ""),
            words.scaled(row["memory_bytes"], "B") + (UNVERIFIED if "memory.capacity" in recalled else ""),
            words.scaled(row["memory_bytes_per_s"], "B/s") + (UNVERIFIED if "memory.bandwidth" in recalled else ""),
            words.number(row["critical_intensity"]),
        )
    yield table
    if any(row["unverified"] for row in rows):
        yield Text(LEGEND)


def _one(record: dict[str, Any]) -> Iterable[RenderableType]:
    from rich.text import Text  # only for people

    table = new_table("figure", "value", "source", right=("value",), title=record["name"])
    table.columns[-1].no_wrap = False
    for path, figure in record["figures"].items():
        source = figure["source"] + ("" if figure["verified"] else " [unverified]")
        date = f", {figure['date']}" if figure.get("date") else ""
        table.add_row(path, words.figure(path, figure["value"]), Text(source + date))
    yield table
    for note in record["notes"]:
        yield Text(f"• {note}")
    for gap in record["gaps"]:
        yield Text(f"• {gap}")
