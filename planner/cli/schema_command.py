"""`planner schema`: the JSON Schema of the YAML formats."""

from __future__ import annotations

import json
from typing import Any

import click

from planner import catalogue
from planner.cli.output import deliver


@click.command("schema")
@click.argument("kind", type=click.Choice(sorted(catalogue.DESCRIPTIONS)))
@click.option("--output", "-o", metavar="FILE", help="Write to a file instead of the terminal.")
def command(**options: Any) -> None:
    """Print the JSON Schema of a YAML format, for editors.

    KIND is model or hardware.
    """
    text = json.dumps(catalogue.json_schema(options["kind"]), indent=2, ensure_ascii=False) + "\n"
    deliver(text, options["output"])
