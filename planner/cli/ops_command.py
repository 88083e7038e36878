"""`planner ops`: every operation of a step against the roofline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from planner import catalogue, records
from planner.cli import words
from planner.cli.options import (
    LAYOUT_OPTIONS,
    hardware_option,
    layout_options,
    output_options,
    precision_options,
    step_options,
)
from planner.cli.output import Result, emit
from planner.cli.tables import new_table
from planner.parallel import Layout
from planner.scenario import choose_precision, default_lengths, warnings
from planner.step import StepRating, rate_step
from planner.workload import Phase, Step

if TYPE_CHECKING:
    from rich.console import RenderableType

SIDE_BY_SIDE = ("int8", "bf16", "fp32")
"""The precisions that a table compares."""


@click.command("ops")
@click.argument("model")
@hardware_option
@step_options
@layout_options
@precision_options
@output_options
def command(**options: Any) -> None:
    """Rate every operation of a step against the roofline of a chip.

    MODEL is a name of the catalogue, a YAML file, or a Hugging Face config.json or its folder. Times are bounds at datasheet rates.
    """
    model = catalogue.load_model(options["model"])
    hardware = catalogue.load_hardware(options["hardware_name"])
    phase = Phase(options["phase"])
    context, new_tokens = default_lengths(phase, options["context"], options["new_tokens"])
    step = Step(
        phase=phase,
        batch=options["batch"],
        new_tokens=new_tokens,
        context=context,
        mask=options["mask"],
        logits=options["logits"],
        mla=options["mla"],
    )
    kv = options["kv_precision"]
    precision = choose_precision(model, options["precision"], experts=options["moe_precision"], kv=kv)
    layout = Layout(**{name: options[name] for name in LAYOUT_OPTIONS})
    result = rate_step(model, hardware, step, precision, layout)
    record = records.step_record(result)

    def tables() -> Iterable[RenderableType]:
        side_by_side = [choose_precision(model, name, kv=kv) for name in SIDE_BY_SIDE]
        others = [rate_step(model, hardware, step, precision, layout) for precision in side_by_side]
        return _tables(result, others)

    notes = (*warnings(model, hardware, step, precision), *result.notes)
    emit(
        Result(record=record, rows=record["ops"], tables=tables, notes=notes),
        options["output_format"],
        options["output"],
    )


def _tables(result: StepRating, others: Sequence[StepRating]) -> Iterable[RenderableType]:
    from rich.text import Text  # noqa: PLC0415 - only for people

    step = result.step
    yield Text(
        f"{result.model.name} on {result.hardware.name}, {result.precision.name}\n"
        f"{step.phase}: batch {step.batch}, {step.new_tokens} new tokens, context {step.context}"
    )
    right = ("runs", "FLOP", "bytes", "FLOP/B", "lower", "share")
    table = new_table("operation", *right, "bound", right=right, first_width=20)
    group = ""
    for rating in result.ops:
        if rating.op.group != group:
            group = rating.op.group
            table.add_row(Text(group, style="bold"))
        table.add_row(
            f"  {rating.op.name}",
            str(rating.op.count),
            words.scaled(rating.flops),
            words.scaled(rating.memory_bytes),
            words.number(rating.intensity),
            words.duration(rating.lower_s),
            words.percent(rating.lower_s, result.lower_s),
            rating.bound or words.NOTHING,
        )
    yield table
    yield _summary([result, *(other for other in others if other.precision.name != result.precision.name)])


def _summary(results: Sequence[StepRating]) -> RenderableType:
    right = ("ridge", "bytes", "lower", "upper", "floor", "tokens/s ≤")
    table = new_table("precision", *right, "bound", right=right)
    for result in results:
        table.add_row(
            result.precision.name,
            words.number(max(result.ops, key=lambda rating: rating.flops).critical_intensity),
            words.scaled(result.memory_bytes),
            words.duration(result.lower_s),
            words.duration(result.upper_s),
            words.duration(result.overlap_floor_s),
            words.number(result.tokens_per_s),
            result.bound or words.NOTHING,
        )
    return table
