"""`planner model`: what a model counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from planner import catalogue, records
from planner.cli.options import assume_option, count_or_zero, output_options, precision_options
from planner.cli.output import Result, emit
from planner.cli.tables import new_table
from planner.report import words
from planner.scenario import choose_precision, model_warnings

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command("model")
@click.argument("model")
@click.option("--context", type=count_or_zero, help="Also give the KV cache of one sequence of this many tokens.")
@assume_option
@precision_options
@output_options
def command(**options: Any) -> None:
    """Count a model's parameters, KV cache and weight bytes.

    MODEL is a name of the catalogue, a YAML file, a Hugging Face config.json or its folder, or a GGUF file. Counts are exact.
    """
    model = catalogue.load_model(options["model"], assume=options["assume"])
    precision = choose_precision(
        model, options["precision"], experts=options["moe_precision"], kv=options["kv_precision"]
    )
    record = records.model_record(model, precision, options["context"])
    flat = {key: value for key, value in record.items() if not isinstance(value, dict | list)}
    result = Result(record=record, rows=[flat], tables=lambda: _tables(record), notes=model_warnings(model))
    emit(result, options["output_format"], options["output"])


_UNITS = {
    "parameters": "",
    "active_parameters": "",
    "embedding_parameters": "",
    "mtp_parameters": "",
    "vision_parameters": "",
    "kv_bytes_per_token": "B",
    "kv_window_bytes": "B",
    "state_bytes": "B",
    "indexer_bytes_per_token": "B",
    "weight_bytes": "B",
    "served_weight_bytes": "B",
    "kv_bytes": "B",
}


def _tables(record: dict[str, Any]) -> Iterable[RenderableType]:
    title = f"{record['name']} ({record['precision']['name']})"
    table = new_table("counted", "exact", "rounded", right=("exact", "rounded"), title=title)
    for key, unit in _UNITS.items():
        if record.get(key):
            table.add_row(key.replace("_", " "), f"{record[key]:,.0f}", words.scaled(record[key], unit))
    if record["stored_format_from"]:
        table.caption, table.caption_justify = f"stored format: {record['stored_format_from']}", "left"
    yield table
    kinds = new_table("kind of layer", "layers", "parameters each", right=("layers", "parameters each"))
    for kind in record["layer_kinds"]:
        kinds.add_row(kind["label"], str(kind["layers"]), f"{kind['parameters_per_layer']:,}")
    yield kinds
