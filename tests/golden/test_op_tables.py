"""The operations of one layer of every kind, as readable tables: what changes in them is seen in the review.

The numbers themselves are checked by hand elsewhere (tests/unit, tests/oracle). `make golden` writes the tables anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from planner import catalogue
from planner.decompose.lowering import REGISTRY
from planner.op import Collective, Kind
from planner.parallel import SINGLE_CHIP, Layout
from planner.precision import policy
from planner.step import StepRating, rate_step
from planner.workload import Phase, Step

FOLDER = Path(__file__).parent / "op_tables"
TESTS = Path(__file__).parents[1]

DECODE = Step(phase=Phase.DECODE, batch=64, context=10_000)
PREFILL = Step(phase=Phase.PREFILL, batch=2, new_tokens=10_000)
CHUNK = Step(phase=Phase.PREFILL, batch=2, new_tokens=1_000, context=10_000)


@dataclass(frozen=True)
class Case:
    """A table: a model, what is asked of it, and how it is laid out."""

    model: str
    step: Step
    precision: str = "bf16"
    layout: Layout = SINGLE_CHIP


CASES: dict[str, Case] = {
    "grouped-query": Case("llama-3.1-8b", DECODE),
    "grouped-query-fp8": Case("llama-3.1-8b", CHUNK, "fp8"),
    "sliding-window": Case("gemma-3-27b-it", PREFILL),
    "chunked": Case("llama-4-scout", DECODE),
    "latent-absorbed": Case("deepseek-v3", DECODE, "fp8_block"),
    "latent-expanded": Case("deepseek-v3", PREFILL, "fp8_block"),
    "latent-sparse": Case("deepseek-v3.2", DECODE),
    "compressed": Case("deepseek-v4-flash", DECODE),
    "cross": Case("llama-3.2-11b-vision", DECODE),
    "experts": Case("gpt-oss-120b", DECODE, "mxfp4_w4a16"),
    "lightning": Case("minimax-text-01", DECODE),
    "delta": Case("qwen3.5-35b-a3b", DECODE),
    "mamba": Case("mamba-2.8b", DECODE),
    "mamba2": Case("falcon-h1-0.5b", PREFILL),
    "convolution": Case("lfm2.5-vl-1.6b", DECODE),
    "matrix-lstm": Case("oracle/data/configs/NX-AI__xLSTM-7b.json", DECODE),
    "gated-recurrence": Case("golden/configs/recurrentgemma-2b.json", DECODE),
    "ngrams": Case("golden/configs/qwen-4-small.json", DECODE),
    "patches": Case("golden/configs/blt-1b.json", DECODE),
    "gated-memory": Case("golden/configs/phi-4-mini-flash.json", DECODE),
    "rwkv": Case("golden/configs/rwkv-4-169m.json", DECODE),
    "rwkv-matrix": Case("golden/configs/rwkv-6-1.6b.json", DECODE),
    "rwkv-delta": Case("golden/configs/rwkv-7-0.4b.json", DECODE),
    "tensor-parallel": Case("llama-3.1-70b", DECODE, layout=Layout(tp=8)),
    "expert-parallel": Case("deepseek-v3", DECODE, "fp8_block", Layout(tp=2, attention_dp=8, ep=16)),
    "pipeline-context": Case("llama-3.1-70b", PREFILL, layout=Layout(tp=2, pp=2, cp=2)),
}


def rated(case: Case) -> StepRating:
    model = catalogue.load_model(str(TESTS / case.model) if case.model.endswith(".json") else case.model)
    chip = catalogue.load_hardware("h200-sxm")
    return rate_step(model, chip, case.step, policy(case.precision), case.layout)


def number(value: object) -> str:
    """Return six significant digits: enough to see a change, and few enough not to see rounding."""
    return f"{float(value):.6g}" if value else "-"  # type: ignore[arg-type]


HEADINGS = ("operation", "kind", "runs", "FLOP", "weights", "activations", "cache", "network")


def table(result: StepRating) -> str:
    """Return the operations of a step, one a line, under their kind of layer; bytes and FLOPs are for all runs."""
    rows: list[tuple[str, ...]] = [HEADINGS]
    group = ""
    for rating in result.ops:
        if rating.op.group != group:
            group = rating.op.group
            rows.append((f"[{group}]",))
        figures = (rating.flops, rating.weight_bytes, rating.activation_bytes, rating.kv_bytes, rating.network_bytes)
        rows.append((rating.op.name, str(rating.op.kind), str(rating.op.count), *map(number, figures)))
    widths = [max(len(row[i]) for row in rows if len(row) > 1) for i in range(len(HEADINGS))]
    aligned = (
        [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        for row in rows
    )
    return "".join("  ".join(cells).rstrip() + "\n" for cells in aligned)


@pytest.mark.parametrize("name", CASES)
def test_table_is_as_it_was(name: str, *, update_golden: bool) -> None:
    path, found = FOLDER / f"{name}.txt", table(rated(CASES[name]))
    if update_golden:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found, "read the difference; if it is meant, `make golden`"


def test_every_kind_of_layer_and_of_operation_has_a_table() -> None:
    results = [rated(case) for case in CASES.values()]
    blocks = {type(block) for result in results for kind in result.model.layer_kinds for block in kind.layer.blocks}
    assert set(REGISTRY) == blocks
    assert {rating.op.kind for result in results for rating in result.ops} == set(Kind)
    exchanged = {
        rating.op.operation for result in results for rating in result.ops if isinstance(rating.op, Collective)
    }
    assert {str(operation) for operation in exchanged} >= {"all_reduce", "all_gather", "all_to_all", "send_receive"}


def test_no_table_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*")} == set(CASES)


def test_a_table_shows_a_change() -> None:
    tables = [table(rated(Case("llama-3.1-8b", Step(phase=Phase.DECODE, batch=batch)))) for batch in (1, 2)]
    assert tables[0] != tables[1]
    assert [line.split()[0] for line in tables[0].splitlines()] == [line.split()[0] for line in tables[1].splitlines()]
