"""`planner import`: a description of a model from its published files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from planner import catalogue
from planner.cli.options import assume_option
from planner.cli.output import deliver
from planner.errors import InputError
from planner.scenario import model_warnings

HUB_NAME = re.compile(r"^[\w.-]+/[\w.-]+$")
"""How models are called on the hub."""


@click.command("import")
@click.argument("source")
@click.option("--name", help="What to call the model, instead of what its files call it.")
@click.option("--source", "origin", metavar="TEXT", help="Where the figures come from, as it shall stand in the file.")
@click.option("--revision", help="Branch, tag or commit on the hub.")
@assume_option
@click.option("--output", "-o", metavar="FILE", help="Write to a file instead of the terminal.")
def command(**options: Any) -> None:
    """Write a model's YAML description from its published files.

    SOURCE is a Hugging Face config.json, Mistral's params.json, or the folder of either, a GGUF file, or a name on the Hugging Face hub (organisation/model).
    With safetensors files or their index beside the config, stored bytes are exact.
    """
    source: str = options["source"]
    path, label = _locate(source, options["revision"])
    model = catalogue.load_model(str(path), assume=options["assume"], label=label)
    name = options["name"] or (source if label else model.name)
    origin = options["origin"] or (f"{label} config.json" if label else _short(model.source))
    fields = {field: getattr(model, field) for field in type(model).model_fields}
    model = catalogue.validate(type(model), {**fields, "name": name, "source": origin}, source)
    output: str | None = options["output"]
    header = () if output is None else _schema_line(Path(output))
    deliver(catalogue.model_yaml(model, header=header), output, model_warnings(model))


def _short(source: str) -> str:
    """Return where figures come from, with no more of a path than the folder and the file."""
    place, comma, kind = source.partition(", a ")
    return f"{'/'.join(Path(place).parts[-2:]).lstrip('/')}{comma}{kind}"


SCHEMA = Path("docs/schema/model.schema.json")
"""Where a repository of descriptions publishes the format, beside its folder of models."""


def _schema_line(output: Path) -> tuple[str, ...]:
    """Return the comment that tells an editor the format, if the schema stands beside the folder that is written to."""
    beside = output.absolute().parent.parent / SCHEMA
    return (f"yaml-language-server: $schema=../{SCHEMA.as_posix()}",) if beside.is_file() else ()


def _locate(source: str, revision: str | None) -> tuple[Path, str]:
    """Return where the files of a model are, and its name on the hub, empty for local files."""
    path = Path(source)
    try:
        is_here = path.exists()
    except (OSError, ValueError):
        raise InputError(f"{source[:80]!r}: is no name of a file") from None
    if is_here:
        return path, ""
    if not HUB_NAME.match(source) or path.suffix in (".json", ".yaml", ".yml", ".gguf"):
        raise InputError(f"{source}: no such file, and no name of a model on the hub (organisation/model)")
    from planner.importers.hub import fetch  # only for the hub

    folder = fetch(source, revision=revision)
    return folder, source if revision is None else f"{source}@{revision}"
