"""`planner ops`: every operation of a step against the roofline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from planner import catalogue, records
from planner.cli.options import (
    LAYOUT_OPTIONS,
    assume_option,
    engine_option,
    hardware_option,
    layout_options,
    output_options,
    precision_options,
    step_of,
    step_options,
)
from planner.cli.output import Result, emit
from planner.cli.tables import new_table
from planner.memory import PARTS, MemoryPlan, memory_plan
from planner.parallel import DEGREES, Layout
from planner.report import words
from planner.scenario import choose_precision, recalled_warning, warnings
from planner.step import StepRating, rate_step

if TYPE_CHECKING:
    from rich.console import RenderableType

SIDE_BY_SIDE = ("int8", "bf16", "fp32")
"""The precisions that a table compares."""


@click.command("ops")
@click.argument("model")
@hardware_option
@step_options
@layout_options
@assume_option
@precision_options
@engine_option
@output_options
def command(**options: Any) -> None:
    """Rate every operation of a step against the roofline of a chip.

    MODEL is a name of the catalogue, a YAML file, a Hugging Face config.json or its folder, or a GGUF file. Times are bounds at datasheet rates.
    """
    model = catalogue.load_model(options["model"], assume=options["assume"])
    hardware = catalogue.load_hardware(options["hardware_name"])
    step = step_of(options)
    kv = options["kv_precision"]
    precision = choose_precision(model, options["precision"], experts=options["moe_precision"], kv=kv)
    layout = Layout(**{name: options[name] for name in LAYOUT_OPTIONS})
    result = rate_step(model, hardware, step, precision, layout)
    engine = catalogue.load_engine(options["engine"])
    memory = memory_plan(
        model, hardware, precision, layout, batch=step.batch, context=step.context + step.new_tokens, engine=engine
    )
    record = records.step_record(result, memory)

    def tables() -> Iterable[RenderableType]:
        side_by_side = [choose_precision(model, name, kv=kv) for name in SIDE_BY_SIDE]
        others = [rate_step(model, hardware, step, precision, layout) for precision in side_by_side]
        return _tables(result, others, memory)

    recalled = recalled_warning(hardware, record["unverified"])
    notes = (*warnings(model, hardware, step, memory), *result.notes, *recalled)
    emit(
        Result(record=record, rows=record["ops"], tables=tables, notes=notes),
        options["output_format"],
        options["output"],
    )


def _tables(result: StepRating, others: Sequence[StepRating], memory: MemoryPlan) -> Iterable[RenderableType]:
    from rich.text import Text  # only for people

    yield Text(_heading(result))
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
    yield _memory(memory)
    yield _summary([result, *(other for other in others if other.precision.name != result.precision.name)])


def _heading(result: StepRating) -> str:
    step, layout, stage = result.step, result.layout, result.stage
    lines = [
        f"{result.model.name} on {result.hardware.name}, {result.precision.name}",
        f"{step.phase}: batch {step.batch}, {step.new_tokens} new tokens, context {step.context}",
    ]
    if not layout.is_single:
        degrees = (f"{name} {getattr(layout, name)}" for name in DEGREES if getattr(layout, name) > 1)
        lines.append(f"one of {layout.chips} chips: {', '.join(degrees)}")
    if layout.pp > 1:
        lines.append(
            f"stage {stage.index + 1} of {layout.pp}, the slowest: {stage.layer_count} layers, "
            f"{result.flow.microbatches} microbatches, waits {words.percent(result.flow.bubble, 1)} of the time"
        )
    return "\n".join(lines)


def _memory(plan: MemoryPlan) -> RenderableType:
    table = new_table("memory of a chip", "bytes", right=("bytes",), first_width=20)
    for name in PARTS:
        table.add_row(f"  {name.removesuffix('_bytes').replace('_', ' ')}", words.scaled(getattr(plan, name), "B"))
    verdict = {True: "fits", False: "does not fit", None: "fits or not: unknown"}[plan.fits]
    table.add_row(
        verdict, f"{words.scaled(plan.total_bytes, 'B')} of {words.scaled(plan.capacity_bytes, 'B')}", style="bold"
    )
    if plan.max_batch is not None:
        table.caption = f"at most a batch of {plan.max_batch:,}, or a context of {plan.max_context:,} ({plan.engine})"
        table.caption_justify = "left"
    return table


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
