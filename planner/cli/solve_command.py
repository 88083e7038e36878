"""`planner solve`: the smallest batch and the fewest chips, or why there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from planner import catalogue
from planner.cli.options import count_or_zero, engine_option, hardware_option, output_options, positive
from planner.cli.output import Result, emit
from planner.cli.tables import new_table
from planner.precision import KV_FORMATS
from planner.report import words
from planner.scenario import choose_precision, default_lengths, model_warnings
from planner.workload import Phase

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.solve import ChipsAnswer, PrecisionAnswer, Solution

DEFAULT_PRECISIONS = "int8,bf16,fp32"
EXIT_INFEASIBLE = 3


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
    so is "any batch". Exits with 3 when the model does not fit on the chips allowed.
    """
    from planner.solve import DEFAULT_MAX_CHIPS, Ask, parse_target, solve  # noqa: PLC0415 - scipy is not needed for --help
    from planner.solve.record import solution_record  # noqa: PLC0415

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
    record = solution_record(solution)
    result = Result(
        record=record, rows=_rows(record), tables=lambda: _tables(solution), notes=tuple(model_warnings(model))
    )
    emit(result, options["output_format"], options["output"])
    if not solution.is_feasible:
        click.get_current_context().exit(EXIT_INFEASIBLE)


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


def _tables(solution: Solution) -> Iterable[RenderableType]:
    from rich.text import Text  # noqa: PLC0415 - only for people

    what = f"{solution.context:,} tokens of context" + (
        f", {solution.new_tokens:,} new tokens" if solution.phase is Phase.PREFILL else ""
    )
    yield Text(f"{solution.model.name} on {solution.hardware.name}, {solution.phase}, {what}, {solution.target.text}")
    names = [answer.precision.name for answer in solution.answers]
    table = new_table("critical batch", *names, right=tuple(names), first_width=20)
    table.add_row("ridge, FLOP/byte", *(words.number(answer.critical_intensity) for answer in solution.answers))
    for ops in zip(*(answer.ops for answer in solution.answers), strict=True):
        if any(op.critical_batch is not None for op in ops) or ops[0].name == "attention":
            table.add_row(f"  {ops[0].name}", *(_batch(op.critical_batch) for op in ops))
    table.add_row("whole step", *(_batch(answer.step.critical_batch) for answer in solution.answers), style="bold")
    table.add_row("  up to context", *(_context(answer) for answer in solution.answers))
    table.add_row("chips to fit", *(words.number_or_dash(a.chips.minimum_to_fit) for a in solution.answers))
    table.add_row("chips for target", *(words.number_or_dash(a.chips.minimum_compute_bound) for a in solution.answers))
    table.add_row("  laid out as", *(_layout(a.chips) for a in solution.answers))
    table.add_row("  batch there", *(words.number_or_dash(a.chips.batch) for a in solution.answers))
    yield table
    for line in _reasons(solution.answers):
        yield Text(line)


def _batch(batch: int | None) -> str:
    return "never" if batch is None else "any" if batch == 1 else f"{batch:,}"


def _context(answer: PrecisionAnswer) -> str:
    longest = answer.step.max_context_compute_bound
    if longest is not None:
        return f"{longest:,}"
    return "any" if answer.step.context_reason.startswith("compute-bound") else "none"


def _layout(chips: ChipsAnswer) -> str:
    if chips.layout is None or chips.minimum_compute_bound is None:
        return words.NOTHING
    layout = chips.layout
    degrees = {"tp": layout.tp, "pp": layout.pp, "ep": layout.ep, "dp": layout.attention_dp, "cp": layout.cp}
    return " ".join(f"{name}{degree}" for name, degree in degrees.items() if degree > 1) or "one chip"


def _reasons(answers: Sequence[PrecisionAnswer]) -> Iterable[str]:
    for answer in answers:
        name = answer.precision.name
        attention = next((op.reason for op in answer.ops if op.name == "attention" and op.critical_batch is None), "")
        if attention:
            yield f"{name}: {attention}"
        if answer.step.critical_batch is None:
            yield f"{name}: {answer.step.reason}"
        if answer.chips.reason and answer.chips.reason != answer.step.reason:
            yield f"{name}, chips: {answer.chips.reason}"
        if answer.levers and answer.step.critical_batch != 1:
            best = answer.levers[0]
            then = "never yet" if best.critical_batch is None else f"from a batch of {best.critical_batch:,}"
            yield f"{name}, what would help most: {best.name}, {then} ({best.share:.2f} of compute over memory or network)"
