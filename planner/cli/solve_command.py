"""`planner solve`: the smallest batch and the fewest chips, or why there are none."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner import catalogue
from planner.cli.options import count_or_zero, engine_option, hardware_option, output_options, positive
from planner.cli.output import Result, deliver, emit, write_whole
from planner.cli.tables import new_table
from planner.errors import InputError
from planner.precision import KV_FORMATS
from planner.report import words
from planner.scenario import choose_precision, default_lengths, model_warnings, recalled_warning
from planner.workload import Phase

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.solve import Ask, Solution

DEFAULT_PRECISIONS = "int8,bf16,fp32"
EXIT_INFEASIBLE = 3

PICTURES = (".svg", ".png")
"""Files with these suffixes get the picture."""

WIDE, COLUMN = 760, 400
"""Width of a picture of one precision, and of a column for each of several [pixels]."""


@click.command("solve")
@click.argument("model")
@hardware_option
@click.option("--phase", type=click.Choice(["decode", "prefill"]), default="decode", show_default=True)
@click.option("--context", type=count_or_zero, help="Tokens in each KV cache.  [default: 4096 in decode, 0 in prefill]")
@click.option(
    "--new-tokens", type=positive, help="Tokens that each sequence adds.  [default: 1 in decode, 4096 in prefill]"
)
@click.option("--precision", "precisions", metavar="P,P,...", default=DEFAULT_PRECISIONS, show_default=True)
@click.option("--moe-precision", metavar="P", help="Precision of routed experts, where it differs.")
@click.option("--kv-precision", type=click.Choice(KV_FORMATS), default="bf16", show_default=True)
@click.option(
    "--target",
    default="compute-bound",
    show_default=True,
    help="What to reach: compute-bound, mfu=0.4, tpot=30ms or tokens_per_s=1e5.",
)
@click.option("--max-chips", type=click.IntRange(1, 4096), help="Chips at most.  [default: 64]")
@engine_option
@output_options
def command(**options: Any) -> None:
    """Find the smallest batch and the fewest chips that are compute-bound.

    MODEL is a name of the catalogue, a YAML file, or a Hugging Face config.json or its folder. "Never" is an answer, with its reason;
    so is "any batch". An --output that ends in .svg or .png gets a picture: intensity and share of peak over the batch. Exits with 3 when the model does not fit on the chips allowed.
    """
    from planner.solve import DEFAULT_MAX_CHIPS, Ask, parse_target, solve  # scipy is not needed for --help

    model = catalogue.load_model(options["model"])
    phase = Phase(options["phase"])
    context, new_tokens = default_lengths(phase, options["context"], options["new_tokens"])
    names = [name.strip() for name in options["precisions"].split(",")]
    policies = [
        choose_precision(model, name, experts=options["moe_precision"], kv=options["kv_precision"])
        for name in dict.fromkeys(names)
    ]
    ask = Ask(
        model=model,
        hardware=catalogue.load_hardware(options["hardware_name"]),
        engine=catalogue.load_engine(options["engine"]),
        phase=phase,
        context=context,
        new_tokens=new_tokens,
        target=parse_target(options["target"]),
        max_chips=options["max_chips"] or DEFAULT_MAX_CHIPS,
    )
    solution = solve(ask, policies)
    picture = _picture_path(options["output"])
    if picture is None:
        _print(solution, options)
    else:
        write_whole(picture, _picture(ask, solution, as_png=picture.suffix.lower() == ".png"))
        deliver(f"{picture}\n", None, model_warnings(model))
    if not solution.is_feasible:
        click.get_current_context().exit(EXIT_INFEASIBLE)


def _print(solution: Solution, options: dict[str, Any]) -> None:
    from planner.solve.record import solution_record

    record = solution_record(solution)
    notes = (*model_warnings(solution.model), *recalled_warning(solution.hardware, solution.recalled))
    result = Result(record=record, rows=_rows(record), tables=lambda: _tables(solution), notes=notes)
    emit(result, options["output_format"], options["output"])


def _picture_path(output: str | None) -> Path | None:
    """Return the file for the picture, where one is asked for."""
    path = Path(output) if output else None
    return path if path and path.suffix.lower() in PICTURES else None


def _picture(ask: Ask, solution: Solution, *, as_png: bool) -> str | bytes:
    """Return intensity and share of peak over the batch, a column for each precision, as SVG text or as a PNG file."""
    from planner import charts  # heavy
    from planner.report import crossing

    rated = [answer for answer in solution.answers if answer.step.saturated_intensity is not None]
    if not rated:
        raise InputError(f"{ask.hardware.name}: peak: has no rate for any of the precisions, nothing can be drawn")
    found = crossing.tables([ask.question(answer.precision) for answer in rated], rated)
    title = f"{_heading(solution)}, one chip"
    look = charts.Look(title=title, width=WIDE if len(rated) == 1 else COLUMN)
    spec = charts.crossing_picture(found.named, look)
    return charts.png(spec) if as_png else charts.svg(spec)


def _rows(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one flat row for each precision and operation, and one for the step."""
    rows = []
    for answer in record["records"]:
        step = {"name": "step", "group": "", **{key: answer["step"][key] for key in ("critical_batch", "reason")}}
        rows += [
            {
                "precision": answer["precision"],
                "critical_intensity": answer["critical_intensity"],
                "operation": op["name"],
                "group": op["group"],
                "critical_batch": op["critical_batch"],
                "critical_tokens": op.get("critical_tokens"),
                "minimum_to_fit": answer["chips"]["minimum_to_fit"],
                "minimum_compute_bound": answer["chips"]["minimum_compute_bound"],
                "reason": op["reason"],
            }
            for op in (*answer["ops"], step)
        ]
    return rows


def _heading(solution: Solution) -> str:
    what = f"{solution.context:,} tokens of context" + (
        f", {solution.new_tokens:,} new tokens" if solution.phase is Phase.PREFILL else ""
    )
    return f"{solution.model.name} on {solution.hardware.name}, {solution.phase}, {what}"


def _tables(solution: Solution) -> Iterable[RenderableType]:
    from rich.text import Text  # only for people

    from planner.report import solved  # scipy is not needed for --help

    yield Text(f"{_heading(solution)}, {solution.target.text}")
    names = [answer.precision.name for answer in solution.answers]
    known = [solved.is_known(answer.step) for answer in solution.answers]
    table = new_table("critical batch", *names, right=tuple(names), first_width=20)
    table.add_row("ridge, FLOP/byte", *(words.number(answer.critical_intensity) for answer in solution.answers))
    for ops in zip(*(answer.ops for answer in solution.answers), strict=True):
        if any(op.critical_batch is not None for op in ops) or ops[0].name == "attention":
            pairs = zip(ops, known, strict=True)
            table.add_row(f"  {ops[0].name}", *(solved.batch(op.critical_batch, is_known=is_) for op, is_ in pairs))
    steps = [answer.step for answer in solution.answers]
    whole = (solved.batch(step.critical_batch, is_known=is_) for step, is_ in zip(steps, known, strict=True))
    table.add_row("whole step", *whole, style="bold")
    table.add_row("  up to context", *map(solved.context, steps))
    table.add_row("chips to fit", *(words.number_or_dash(a.chips.minimum_to_fit) for a in solution.answers))
    table.add_row("chips for target", *(words.number_or_dash(a.chips.minimum_compute_bound) for a in solution.answers))
    table.add_row("  laid out as", *(solved.layout(a.chips) for a in solution.answers))
    table.add_row("  batch there", *(words.number_or_dash(a.chips.batch) for a in solution.answers))
    table.add_row("  limited by", *(solved.limited_by(a.chips) for a in solution.answers))
    yield table
    for line in (*solved.reasons(solution.answers), *solved.helps(solution.answers)):
        yield Text(line)
