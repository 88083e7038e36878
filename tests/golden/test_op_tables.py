"""Op tables of one model for each kind of layer, as text to read: rewritten with `pytest --update-golden` only."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import catalogue
from planner.model import Model
from planner.roofline import Rating
from planner.scenario import choose_precision
from planner.step import StepRating, rate_step
from planner.workload import Phase, Step

HERE = Path(__file__).parent / "ops"
CHIP = "h100-sxm"
MODELS = {
    "llama-3.1-8b": "dense, grouped queries",
    "qwen3-30b-a3b": "mixture of experts",
    "deepseek-v3": "latent attention, shared experts, leading dense layers",
    "nemotron-h-56b": "hybrid of state space, attention and feed-forward layers",
}
STEPS = (
    Step(phase=Phase.DECODE, batch=64, new_tokens=1, context=4096),
    Step(phase=Phase.PREFILL, batch=1, new_tokens=4096, context=0),
)
HEADINGS = ("operation", "runs", "FLOP", "weights B", "activations B", "KV B", "runs in", "bound", "lower us")


def cells(rating: Rating) -> tuple[str, ...]:
    sizes = (rating.flops, rating.weight_bytes, rating.activation_bytes, rating.kv_bytes)
    lower = rating.lower_s
    assert lower is not None
    return (
        rating.op.name,
        f"{rating.op.count}",
        *(f"{size:.7g}" for size in sizes),
        rating.rate.used if rating.flops else "",
        rating.bound,
        f"{lower * 1e6:.2f}",
    )


def table(result: StepRating) -> list[str]:
    """Return the lines of a table, a group of layers after the other."""
    step, lines, group = result.step, [], ""
    rows = [(rating.op.group, cells(rating)) for rating in result.ops]
    widths = [max(len(row[i]) for row in (HEADINGS, *(cells for _, cells in rows))) for i in range(len(HEADINGS))]

    def line(row: tuple[str, ...]) -> str:
        return "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))

    lines.append(f"{step.phase}: batch {step.batch}, {step.new_tokens} new tokens, context {step.context}")
    lines.append(line(HEADINGS))
    for name, row in rows:
        if name != group:
            group = name
            lines.append(f"[{group}]")
        lines.append(line(row))
    lower, upper, floor = result.lower_s, result.upper_s, result.overlap_floor_s
    assert lower is not None
    assert upper is not None
    assert floor is not None
    sums = f"lower {lower * 1e3:.4f} ms, upper {upper * 1e3:.4f} ms, floor {floor * 1e3:.4f} ms"
    return [*lines, f"total: {result.flops():.9g} FLOP, {result.memory_bytes:.9g} B, {sums}, bound {result.bound}", ""]


def text_of(model: Model, what: str) -> str:
    chip, precision = catalogue.load_hardware(CHIP), choose_precision(model)
    head = [f"{model.name} on {chip.name}, {precision.name}: {what}", ""]
    return "\n".join([*head, *(line for step in STEPS for line in table(rate_step(model, chip, step, precision)))])


@pytest.mark.parametrize("name", MODELS)
def test_op_table(name: str, update_golden: bool) -> None:
    text = text_of(catalogue.load_model(name), MODELS[name])
    path = HERE / f"{name}.txt"
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text.splitlines() == path.read_text("utf-8").splitlines()


def test_no_table_is_left_over() -> None:
    assert {path.stem for path in HERE.iterdir()} == set(MODELS)
