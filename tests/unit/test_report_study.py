"""What a report shows, in numbers: thresholds, what fits, and a grid that agrees with the point."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner import catalogue, solve
from planner.errors import InputError
from planner.parallel import SINGLE_CHIP, Layout
from planner.precision import Role
from planner.report import frames, tables
from planner.report.answer import answer
from planner.report.study import LAST_OF_ALL, Question, Study, Threshold, digest, first_compute_bound, study
from planner.scenario import choose_precision
from planner.workload import Phase, Step

BATCHES = np.append(np.arange(1, LAST_OF_ALL + 1), 10**9)


def make(
    model: str = "llama-3.1-70b",
    chip: str = "h100-sxm",
    *names: str,
    kv: str = "bf16",
    layout: Layout = SINGLE_CHIP,
    **step: Any,
) -> Study:
    described = catalogue.load_model(model)
    policies = [choose_precision(described, name, kv=kv) for name in names or ("bf16", "int8", "fp32")]
    question = Question(
        model=described,
        hardware=catalogue.load_hardware(chip),
        step=Step(**{"phase": Phase.DECODE, "batch": 16, "context": 4096, **step}),
        engine=catalogue.load_engine("vllm"),
        layout=layout,
    )
    return study(question, policies)


# ---- thresholds ------------------------------------------------------------------------------------------------------


def test_a_threshold_is_the_first_batch_from_which_on_compute_is_the_longest() -> None:
    memory = np.full(BATCHES.shape, 100.0)
    assert first_compute_bound((BATCHES * 1.0, memory, 0.0), BATCHES) == Threshold(100)
    assert first_compute_bound((BATCHES * 1.0, memory, 100.5), BATCHES) == Threshold(101)
    assert first_compute_bound((BATCHES * 1.0, BATCHES * 1.0, 0.0), BATCHES) == Threshold(1)


def test_a_threshold_beyond_the_grid_is_no_number_and_not_never() -> None:
    times = (BATCHES * 1.0, np.full(BATCHES.shape, 1e6), 0.0)
    assert first_compute_bound(times, BATCHES) == Threshold(batch=None, is_never=False)
    assert first_compute_bound((BATCHES * 1.0, BATCHES * 2.0, 0.0), BATCHES) == Threshold(is_never=True)
    assert first_compute_bound((None, BATCHES * 1.0, 0.0), BATCHES) == Threshold(is_known=False)


def test_a_batch_that_is_compute_bound_for_a_while_only_does_not_count() -> None:
    compute = np.where((BATCHES > 10) & (BATCHES < 20), 5.0, np.where(BATCHES >= 50, 5.0, 0.0))
    assert first_compute_bound((compute, np.ones(BATCHES.shape), 0.0), BATCHES) == Threshold(50)


def test_matmuls_turn_compute_bound_where_the_closed_form_says() -> None:
    # B* = I* / (1 - I* (1/D + 1/F)), How to Scale Your Model, chapter 1; H100 SXM: I* = 989e12 / 3.35e12 in bf16. Llama-3.1-70B.
    ridge = 989e12 / 3.35e12
    shapes = {
        "qkv_proj": (8192, 10240),
        "o_proj": (8192, 8192),
        "gate_up_proj": (8192, 57344),
        "down_proj": (28672, 8192),
    }
    found = {name: threshold for (_, name), threshold in make().asked.thresholds.items()}
    for name, (inner, outer) in shapes.items():
        root = ridge / (1 - ridge * (1 / inner + 1 / outer))
        assert found[name] == Threshold(int(np.ceil(root))), name


def test_decode_attention_is_never_compute_bound_and_keeps_the_step_from_it() -> None:
    # 64 query heads share 8 KV heads: 2 x 64 x 2 x 128 FLOPs for 2 x 8 x 128 x 2 bytes, 8 FLOP/B, whatever the batch.
    asked = make().asked
    (attention,) = [r for r in asked.limit.ops if r.op.name == "attention"]
    assert float(attention.intensity) == pytest.approx(8, rel=0.01)
    assert asked.thresholds["gqa + gated ffn", "attention"].is_never
    assert asked.threshold.is_never
    # Without a context it is the matmuls that decide.
    assert make(context=0).asked.threshold.batch is not None


def test_the_grid_holds_the_batch_asked_for_and_agrees_with_it() -> None:
    found = make(batch=37)
    index = found.batches.index(37)
    assert list(found.batches) == sorted(set(found.batches))
    assert found.batches[0] == 1
    for choice in found.choices:
        assert np.ravel(choice.sweep.lower_s)[index] == pytest.approx(choice.point.lower_s, rel=1e-12)
        assert np.all(np.less_equal(choice.sweep.overlap_floor_s, choice.sweep.lower_s))
        assert np.all(np.less_equal(choice.sweep.lower_s, choice.sweep.upper_s))


def test_a_precision_asked_for_twice_stands_once_and_the_asked_one_first() -> None:
    found = make("llama-3.1-70b", "h100-sxm", "fp8", "int8", "fp8", "bf16")
    assert [choice.name for choice in found.choices] == ["fp8", "int8", "bf16"]


# ---- memory ----------------------------------------------------------------------------------------------------------


def test_memory_of_the_model_and_of_the_chip() -> None:
    # Llama-3.1-70B in fp8: linear layers in a byte for each element, embedding and LM head of 128256 x 8192 in two, 161 norms of
    # 8192 in two. A token keeps 80 x 2 x 8 x 128 elements of a byte.
    linear = 80 * (8192 * 10240 + 8192 * 8192 + 3 * 8192 * 28672)
    weights = linear + 2 * 2 * 128256 * 8192 + 161 * 8192 * 2
    found = make("llama-3.1-70b", "h100-sxm", "fp8", kv="fp8", layout=Layout(tp=2))
    assert found.asked.weight_bytes == weights
    assert found.asked.sequence_bytes == 4097 * 80 * 2 * 8 * 128
    assert found.asked.weights[Role.LM_HEAD] == 2 * 128256 * 8192
    whole, chip = tables.memory(found)
    assert whole["name"] == "the whole model"
    assert {"name": "weights together", "cells": ["72.7 GB"], "strong": True} in whole["rows"]
    assert chip["name"] == "the fullest of 2 chips, with 16 sequences, by the rules of vLLM"
    rows = {row["name"]: row["cells"][0] for row in chip["rows"]}
    assert rows["weights"] == "36.3 GB"
    assert rows["memory of a chip"] == "85.9 GB"
    assert rows["largest batch that fits"] == f"{found.asked.memory.max_batch:,}"


def test_what_a_chip_holds_grows_with_the_batch_up_to_the_largest_that_fits() -> None:
    found = make("llama-3.1-70b", "h100-sxm", "fp8", kv="fp8", layout=Layout(tp=2), batch=64)
    asked, batches = found.asked, np.array(found.batches)
    assert np.all(np.diff(asked.taken_bytes) > 0)
    assert asked.taken_bytes[found.batches.index(64)] == pytest.approx(asked.memory.total_bytes)
    assert asked.memory.max_batch is not None
    fits = asked.taken_bytes <= 80 * 2**30
    np.testing.assert_array_equal(fits, batches <= asked.memory.max_batch)
    marks = frames.marks(found)
    assert marks["text"].tolist() == [f"memory full at {asked.memory.max_batch}"]


def test_weights_that_do_not_fit_are_said_not_to() -> None:
    found = make()
    assert found.asked.memory.max_batch == 0
    assert tables.memory(found)[1]["rows"][-2]["cells"][0] == "none"
    assert any("not even one sequence of this length fits" in point for point in answer(found).points)


# ---- several chips ---------------------------------------------------------------------------------------------------


def test_exchanges_between_chips_are_operations_with_their_own_bound_and_sources() -> None:
    found = make("llama-3.1-70b", "h100-sxm", "fp8", "bf16", layout=Layout(tp=8))
    rows = {row["name"]: row for group in tables.side_by_side(found) for row in group["rows"]}
    assert rows["down_proj.all_reduce"]["cells"][0]["bound"] == "network"
    assert rows["down_proj.all_reduce"]["cells"][0]["from_batch"] == ""
    assert all(detail["has_network"] for detail in tables.details(found))
    assert set(frames.times(found)["part"]) == {"compute", "memory", "network"}
    assert "down_proj.all_reduce" not in set(frames.points(found)["operation"])
    sources = {row["name"]: row["source"] for row in tables.figures(found)}
    assert {"links scale up one way", "links scale up latency"} <= set(sources)
    assert not any(name.startswith("links scale out") for name in sources)
    wider = tables.figures(make("llama-3.1-70b", "h100-sxm", "bf16", layout=Layout(tp=8, pp=2)))
    assert any(row["name"].startswith("links scale out") for row in wider)
    assert "on 8 chips (tp 8)" in answer(found).lead
    assert "Exchanges between chips take" in " ".join(answer(found).points)


def test_the_whole_step_of_several_chips_stands_under_the_roof() -> None:
    found = make("llama-3.1-70b", "h100-sxm", "bf16", layout=Layout(tp=8), batch=64)
    points = frames.points(found)
    (step,) = points[(points["operation"] == frames.STEP) & (points["batch"] == 64)].to_dict("records")
    asked = found.asked.point
    assert step["attainable_rate"] == pytest.approx(asked.flops() / asked.lower_s, rel=1e-4)
    assert step["attainable_rate"] < 0.99 * step["arithmetic_intensity"] * 3.35e12


def test_a_layout_that_engines_do_not_run_is_refused() -> None:
    with pytest.raises(InputError, match="tp"):
        make(layout=Layout(tp=7))


@pytest.mark.parametrize(
    ("name", "chip", "layout"),
    [
        ("llama-3.1-70b", "h100-sxm", SINGLE_CHIP),
        ("llama-3.1-70b", "h100-sxm", Layout(tp=4)),
        ("qwen3-30b-a3b", "mi300x", SINGLE_CHIP),
        ("deepseek-v3", "tpu-v5p", SINGLE_CHIP),
    ],
)
@pytest.mark.parametrize("context", [0, 4096])
def test_thresholds_are_those_of_the_solver(name: str, chip: str, layout: Layout, context: int) -> None:
    found = make(name, chip, "fp8", "bf16", layout=layout, context=context)
    for choice in found.choices:
        question = solve.Question(
            model=found.model,
            hardware=found.hardware,
            precision=choice.precision,
            phase=Phase.DECODE,
            context=context,
            new_tokens=1,
            engine=found.question.engine,
            layout=layout,
        )
        solved = {(op.group, op.name): op.critical_batch for op in solve.solve_ops(question)}
        for key, threshold in choice.thresholds.items():
            if threshold.batch is None and not threshold.is_never:
                assert solved[key] is not None
                assert solved[key] > LAST_OF_ALL
            else:
                assert threshold.batch == solved[key], key
        assert choice.threshold.batch == solve.solve_step(question).critical_batch


# ---- sentences -------------------------------------------------------------------------------------------------------


def test_the_answer_names_the_bound_the_time_and_what_limits() -> None:
    lead = answer(make("llama-3.1-70b", "h100-sxm", "fp8", kv="fp8")).lead
    # 72.67 GB of weights and 16 x 671 MB of cache at 3.35 TB/s, with some activations: 24.5 ms.
    assert "is memory-bound, takes at least 24.5 ms" in lead
    assert "limited by reading weights, 8" in lead


def test_the_answer_says_never_with_its_reason_or_from_which_batch_on() -> None:
    # 4 x 64 x 128 x 4097 FLOPs for 4096 x 4097 bytes of cache and 36,864 of queries, results, new keys and values: 7.98 FLOP/B.
    never = " ".join(answer(make()).points)
    assert (
        "at no batch, however large: attention reads a cache of its own for every sequence and stays at 7.98 FLOP/B"
        in never
    )
    assert "fp32 from a batch of" in never
    prefill = " ".join(answer(make(phase=Phase.PREFILL, context=0, new_tokens=4096, batch=1)).points)
    assert "As a whole the step is compute-bound at any batch." in prefill


def test_a_chip_without_a_rate_gets_an_answer_that_says_so() -> None:
    found = make("llama-3.1-70b", "tpu-v5p", "fp32", "bf16")
    said = answer(found)
    assert said.lead.startswith("No time can be given")
    assert "no rate for fp32" in said.lead
    assert frames.points(found)["precision"].unique().tolist() == ["bf16"]
    first = tables.precisions(found)[0]
    assert (first["lower"], first["from_batch"]) == ("–", "–")
    assert "no rate for fp32" in first["why"]


# ---- tables ----------------------------------------------------------------------------------------------------------


def test_shares_of_a_step_add_up_and_points_stand_on_or_under_their_roof() -> None:
    found = make("qwen3-30b-a3b", "h100-sxm", "fp8", "bf16")
    points, roofs = frames.points(found), frames.roofs(found, frames.points(found))
    operations = points[points["operation"] != frames.STEP]
    assert operations.groupby(["precision", "batch"])["share"].sum().max() <= 1.02
    peaks = roofs[roofs["limit"] == "compute"].groupby("roof")["attainable_rate"].max()
    bandwidth = found.hardware.memory.bandwidth.value
    limit = np.minimum(operations["roof"].map(peaks), operations["arithmetic_intensity"] * bandwidth)
    np.testing.assert_allclose(operations["attainable_rate"], limit, rtol=1e-4)
    steps = points[points["operation"] == frames.STEP]
    assert (steps["attainable_rate"] <= steps["arithmetic_intensity"] * bandwidth * 1.0001).all()


def test_formats_of_one_peak_share_a_roof() -> None:
    labels = frames.roof_labels(make("llama-3.1-70b", "h100-sxm", "fp8", "int8", "bf16"))
    assert labels["fp8"] == labels["int8"] == "fp8, int8 1.98 PFLOP/s"
    assert labels["bf16"] == "bf16 989 TFLOP/s"


def test_every_figure_used_has_its_source_and_no_other_stands_there() -> None:
    found = make("llama-3.1-70b", "h100-sxm", "fp8", "bf16")
    rows = {row["name"]: row for row in tables.figures(found)}
    chip = [name for name in rows if not name.startswith("vLLM: ")]
    assert chip == ["peak bf16", "peak fp8", "memory capacity", "memory bandwidth"]
    assert "gpu_memory_utilization" in rows["vLLM: share of memory that it uses"]["source"]
    assert rows["memory bandwidth"]["value"] == "3.35 TB/s"
    assert "product page" in rows["peak fp8"]["source"]


@pytest.mark.parametrize("chip", catalogue.names("hardware"))
def test_every_chip_of_the_catalogue_can_be_reported_on(chip: str) -> None:
    found = make("llama-3.1-70b", chip, "w4a16", "bf16", "fp32")
    assert answer(found).lead
    points = frames.points(found)
    assert len(tables.side_by_side(found)) == 2
    assert tables.readouts(found)["bf16"][16]
    if found.asked.point.lower_s is not None:
        assert set(points["roof"]) - {""} <= set(frames.roofs(found, points)["roof"])
        assert not frames.times(found).empty


def test_the_digest_changes_with_the_descriptions_only() -> None:
    question = make().question
    assert digest(question) == digest(make(batch=99).question)
    model = question.model.model_copy(update={"vocab_size": 128257})
    chip = question.hardware.model_copy(update={"year": 1999})
    assert (
        len({digest(question), digest(replace(question, model=model)), digest(replace(question, hardware=chip))}) == 3
    )
