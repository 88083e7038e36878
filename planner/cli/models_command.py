"""`planner models`: the catalogue of models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from planner import catalogue, records
from planner.cli.options import output_options
from planner.cli.output import Result, emit
from planner.cli.progress import tracked
from planner.cli.tables import new_table
from planner.report import words
from planner.scenario import choose_precision

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command("models")
@output_options
def command(**options: Any) -> None:
    """List the models of the catalogue."""
    rows = [
        {"id": name, **_row(records.model_record(model, choose_precision(model)))}
        for name, model in tracked(catalogue.all_models(), len(catalogue.names("models")), "reading models")
    ]
    emit(Result(record=rows, rows=rows, tables=lambda: _tables(rows)), options["output_format"], options["output"])


def _row(record: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "parameters", "active_parameters", "layers", "kv_bytes_per_token", "weight_bytes")
    return {key: record[key] for key in keys} | {"precision": record["precision"]["name"]}


def _tables(rows: Sequence[dict[str, Any]]) -> Iterable[RenderableType]:
    right = ("params", "active", "KV/token", "weights")
    table = new_table("name", *right, "stored as", right=right)
    table.columns[-1].max_width = 16
    for row in rows:
        table.add_row(
            row["id"],
            words.scaled(row["parameters"]),
            words.scaled(row["active_parameters"]),
            words.scaled(row["kv_bytes_per_token"], "B"),
            words.scaled(row["weight_bytes"], "B"),
            row["precision"],
        )
    yield table
