"""`planner sweep`: every combination, into a file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner import catalogue
from planner.cli.options import engine_option, positive
from planner.cli.output import FORMATS, Result, emit
from planner.cli.progress import advancing
from planner.cli.tables import new_table
from planner.errors import InputError
from planner.parallel import Layout
from planner.precision import KV_FORMATS
from planner.report import words
from planner.scenario import choose_precision, default_lengths
from planner.workload import Phase

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.sweep import Case, Sweep

MOST_PRINTED = 10_000
"""Points that are printed; more go to a file."""


@click.command("sweep")
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--hardware", metavar="HW,HW,...", required=True, help="Chips.")
@click.option("--precision", metavar="P,P,...", help="Precisions; as the checkpoint stores it by default.")
@click.option("--moe-precision", metavar="P", help="Precision of routed experts, where it differs.")
@click.option("--kv-precision", type=click.Choice(KV_FORMATS), default="bf16", show_default=True)
@click.option("--phase", type=click.Choice(["decode", "prefill"]), default="decode", show_default=True)
@click.option(
    "--batch", default="1", show_default=True, metavar="RANGE", help="1,2,4 or 1:1000 or 1:1000:8 or 1:1024:x2"
)
@click.option("--context", metavar="RANGE", help="Likewise.  [default: 4096 in decode, 0 in prefill]")
@click.option(
    "--new-tokens", type=positive, help="Tokens that each sequence adds.  [default: 1 in decode, 4096 in prefill]"
)
@click.option("--tp", default="1", show_default=True, metavar="RANGE")
@click.option("--pp", default="1", show_default=True, metavar="RANGE")
@click.option("--ep", default="1", show_default=True, metavar="RANGE")
@click.option("--attention-dp", default="1", show_default=True, metavar="RANGE")
@click.option("--cp", default="1", show_default=True, metavar="RANGE")
@engine_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="How to print the result.",
)
@click.option(
    "--output", "-o", metavar="FILE", help="x.csv or x.parquet: written in blocks, resumed when it was stopped."
)
def command(**options: Any) -> None:
    """Rate a step for every combination of models, chips, precisions, layouts, batches and contexts.

    Layouts that engines do not run are left out, and said. Without --output up to 10,000 points are printed.
    """
    from planner.sweep.files import check_output, write_sweep  # pandas is not needed for --help

    output = options["output"]
    if output is not None:
        check_output(Path(output))
    sweep, reasons = _sweep(options)
    if not sweep.cases:
        raise InputError(f"sweep: no combination is left that engines run: {'; '.join(reasons) or 'none was named'}")
    for reason in reasons:
        click.echo(f"note: left out: {reason}", err=True)
    if output is None:
        _print(sweep, options["output_format"])
        return
    request = repr(sorted((key, value) for key, value in options.items() if key not in ("output", "output_format")))
    for _ in advancing(write_sweep(sweep, Path(output), request + repr(sweep)), sweep.points, "sweeping"):
        pass
    click.echo(f"{output}: {sweep.points:,} points", err=True)


def _sweep(options: dict[str, Any]) -> tuple[Sweep, tuple[str, ...]]:
    from planner.sweep import Sweep, parse_numbers
    from planner.sweep.points import legal_cases

    phase = Phase(options["phase"])
    context, new_tokens = default_lengths(phase, None, options["new_tokens"])
    contexts = (context,) if options["context"] is None else parse_numbers(options["context"], "context", least=0)
    cases, reasons = legal_cases(_cases(options), phase)
    sweep = Sweep(
        cases=cases,
        phase=phase,
        batches=parse_numbers(options["batch"], "batch"),
        contexts=contexts,
        new_tokens=new_tokens,
        engine=catalogue.load_engine(options["engine"]),
    )
    return sweep, reasons


def _cases(options: dict[str, Any]) -> Iterator[Case]:
    from planner.sweep import Case, parse_numbers

    models = [(name, catalogue.load_model(name)) for name in options["models"]]
    chips = [(name.strip(), catalogue.load_hardware(name.strip())) for name in options["hardware"].split(",")]
    names = [None] if options["precision"] is None else [p.strip() for p in options["precision"].split(",")]
    degrees = [
        parse_numbers(options[name], name.replace("_", "-")) for name in ("tp", "pp", "ep", "attention_dp", "cp")
    ]
    combinations = itertools.product(models, chips, names, *degrees)
    for (model_name, model), (chip_name, chip), precision, tp, pp, ep, attention_dp, cp in combinations:
        if (tp * attention_dp * cp) % ep:
            continue
        policy = choose_precision(model, precision, experts=options["moe_precision"], kv=options["kv_precision"])
        yield Case(
            model_name=model_name,
            hardware_name=chip_name,
            model=model,
            hardware=chip,
            precision=policy,
            layout=Layout(tp=tp, pp=pp, ep=ep, attention_dp=attention_dp, cp=cp),
        )


def _print(sweep: Sweep, output_format: str) -> None:
    if sweep.points > MOST_PRINTED:
        raise InputError(f"--output: {sweep.points:,} points are too many to print, name a .csv or .parquet file")
    rows: list[dict[str, Any]] = [
        {str(name): value for name, value in row.items()}
        for block in sweep.blocks()
        for row in block.frame().astype(object).to_dict("records")
    ]
    emit(Result(record=rows, rows=rows, tables=lambda: _tables(rows)), output_format, None)


def _tables(rows: list[dict[str, Any]]) -> Iterable[RenderableType]:
    right = ("chips", "batch", "context", "lower", "tokens/s ≤")
    table = new_table("model", "hardware", "precision", *right, "bound", "fits", right=right)
    for row in rows:
        table.add_row(
            row["model"],
            row["hardware"],
            row["precision"],
            str(row["chips"]),
            f"{row['batch']:,}",
            f"{row['context']:,}",
            words.duration(row["lower_s"]),
            words.number(row["tokens_per_s"]),
            str(row["bound"]),
            "yes" if row["fits"] else "no",
        )
    yield table
