"""What a report shows, in numbers: thresholds, what fits, and a grid that agrees with the point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner import catalogue
from planner.errors import InputError
from planner.parallel import Layout
from planner.precision import Role
from planner.report import crossing, frames, solved, tables
from planner.report.answer import answer
from planner.report.study import Study, digest, study
from planner.scenario import choose_precision
from planner.workload import Phase, Step


def make(
    model: str = "llama-3.1-70b",
    chip: str = "h100-sxm",
    *names: str,
    kv: str = "bf16",
    phase: Phase = Phase.DECODE,
    batch: int = 16,
    context: int = 4096,
    new_tokens: int = 1,
    layout: Layout | None = None,
    **form: str,
) -> Study:
    described = catalogue.load_model(model)
    policies = [choose_precision(described, name, kv=kv) for name in names or ("bf16", "int8", "fp32")]
    step = Step(phase=phase, batch=batch, context=context, new_tokens=new_tokens, **form)
    engine = catalogue.load_engine("vllm")
    return study(described, catalogue.load_hardware(chip), step, policies, engine=engine, layout=layout or Layout())


# ---- thresholds ------------------------------------------------------------------------------------------------------


def test_matmuls_turn_compute_bound_where_the_closed_form_says() -> None:
    # B* = I* / (1 - I* (1/D + 1/F)), How to Scale Your Model, chapter 1; H100 SXM: I* = 989e12 / 3.35e12 in bf16. Llama-3.1-70B.
    ridge = 989e12 / 3.35e12
    shapes = {
        "qkv_proj": (8192, 10240),
        "o_proj": (8192, 8192),
        "gate_up_proj": (8192, 57344),
        "down_proj": (28672, 8192),
    }
    found = {name: op.critical_batch for (_, name), op in make().asked.critical.items()}
    for name, (inner, outer) in shapes.items():
        root = ridge / (1 - ridge * (1 / inner + 1 / outer))
        assert found[name] == int(np.ceil(root)), name


def test_decode_attention_is_never_compute_bound_and_keeps_the_step_from_it() -> None:
    # 64 query heads share 8 KV heads: 2 x 64 x 2 x 128 FLOPs for 2 x 8 x 128 x 2 bytes, 8 FLOP/B, whatever the batch.
    asked = make().asked
    attention = asked.critical["gqa + gated ffn", "attention"]
    assert attention.critical_batch is None
    assert "8 FLOP/byte at any batch, critical is 295" in attention.reason
    assert asked.is_known
    assert asked.critical_batch is None
    # Without a context it is the matmuls that decide.
    assert make(context=0).asked.critical_batch is not None


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


def test_parts_of_memory_and_sequences_that_fit() -> None:
    # Llama-3.1-70B in fp8 on 80 GiB: 68,451,041,280 elements of linear layers in a byte each, embedding and LM head of
    # 128256 x 8192 in two; 161 norms of 8192 in two. A token keeps 80 x 2 x 8 x 128 elements of a byte; 4,097 of them take 257
    # pages of 16.
    linear = 80 * (8192 * 10240 + 8192 * 8192 + 3 * 8192 * 28672)
    weights = linear + 2 * 2 * 128256 * 8192 + 161 * 8192 * 2
    each = 257 * 16 * 80 * 2 * 8 * 128
    found = make("llama-3.1-70b", "h100-sxm", "fp8", kv="fp8", batch=2)
    plan = found.asked.memory
    assert plan.weights_bytes == weights
    assert plan.kv_bytes == 2 * each
    assert plan.max_batch is not None
    free = 80 * 2**30 - weights - float(plan.reserve_bytes) - float(plan.activation_bytes)
    assert plan.max_batch <= free // each
    rows = {row["name"]: row["cells"][0] for row in tables.memory(found)}
    assert rows["verdict"] == "fits"
    assert rows["weights: lm head"] == "2.10 GB"
    assert rows["largest batch at 4,097 tokens"] == str(plan.max_batch)
    weights_of_head = found.asked.footprint.fullest(2, 4097)[0].weights[Role.LM_HEAD]
    assert weights_of_head == 2 * 128256 * 8192


def test_the_grid_and_the_plan_say_the_same_of_memory() -> None:
    found = make("llama-3.1-70b", "h100-sxm", "fp8", kv="fp8", batch=2)
    plan = found.asked.memory
    assert found.asked.parts(2).total_bytes == plan.total_bytes
    (full,) = [row for row in frames.marks(found).to_dict("records") if row["event"] == "full"]
    assert full["batch"] == plan.max_batch
    assert (
        float(found.asked.parts(plan.max_batch).total_bytes)
        <= found.room
        < float(found.asked.parts(plan.max_batch + 1).total_bytes)
    )


def test_weights_that_do_not_fit_are_said_not_to() -> None:
    found = make()
    assert found.asked.memory.max_batch == 0
    rows = {row["name"]: row["cells"] for row in tables.memory(found)}
    assert rows["verdict"][0] == "does not fit"
    # 141 GB of weights and 16 x 1.34 GB of cache are more than 0.9 of 2 x 85.9 GB, and less than of 4.
    assert any("does not fit" in point and "4 chips (tp 4" in point for point in answer(found).points)


# ---- layouts ---------------------------------------------------------------------------------------------------------


def test_figures_are_of_one_chip_of_the_layout() -> None:
    one, eight = (
        make("llama-3.1-70b", "h100-sxm", "bf16"),
        make("llama-3.1-70b", "h100-sxm", "bf16", layout=Layout(tp=8)),
    )
    assert float(one.asked.point.flops()) == pytest.approx(8 * float(eight.asked.point.flops()), rel=1e-12)
    assert eight.asked.memory.kv_bytes == pytest.approx(one.asked.memory.kv_bytes / 8)
    assert tables.laid_out(eight) == "one of 8 chips: tp 8"
    assert "one of 8 chips: tp 8" in answer(eight).points[0]
    collectives = [row for row in _rows(eight) if "all_reduce" in row["name"]]
    assert collectives
    assert all(row["cells"][0]["bound"] == "network" for row in collectives)
    assert not [row for row in _rows(one) if "all_reduce" in row["name"]]


def _rows(found: Study) -> list[dict[str, Any]]:
    return [row for group in tables.side_by_side(found) for row in group["rows"]]


def test_a_link_is_a_roof_over_the_bytes_that_go_through_it() -> None:
    found = make("llama-3.1-70b", "h100-sxm", "bf16", layout=Layout(tp=8))
    points = frames.points(found)
    roofs = frames.roofs(found, points)
    link = roofs[roofs["limit"] == "network"]
    # NVLink 4: 450 GB/s in one direction.
    assert set(link["roof"]) == {"450 GB/s link"}
    np.testing.assert_allclose(link["attainable_rate"], link["arithmetic_intensity"] * 450e9, rtol=1e-4)
    (at,) = points[(points["operation"] == frames.LINKED) & (points["batch"] == 16)].to_dict("records")
    point = found.asked.point
    assert at["arithmetic_intensity"] == pytest.approx(float(point.flops()) / float(point.network_bytes), rel=1e-4)
    assert frames.LINKED not in set(frames.points(make("llama-3.1-70b", "h100-sxm", "fp8"))["operation"])


def test_links_stand_among_the_sources_as_far_as_they_are_used() -> None:
    names = [row["name"] for row in tables.figures(make("llama-3.1-70b", "h100-sxm", "bf16", layout=Layout(tp=8)))]
    assert {"links scale up one way", "links scale up latency"} <= set(names)
    assert not any(name.startswith("links scale out") for name in names)
    wider = tables.figures(make("llama-3.1-70b", "h100-sxm", "bf16", layout=Layout(tp=8, pp=2)))
    assert any(row["name"].startswith("links scale out") for row in wider)


def test_a_layout_that_engines_do_not_run_is_refused() -> None:
    with pytest.raises(InputError, match="tp"):
        make(layout=Layout(tp=7))


def test_stages_and_copies_are_said() -> None:
    found = make("llama-3.1-70b", "h100-sxm", "fp8", layout=Layout(tp=16, pp=2), batch=3)
    assert "of 2, the slowest, with 40 layers and 2 microbatches" in tables.laid_out(found)
    assert "8 kv_heads over 16 chips: each is kept 2 times" in tables.layout_points(found)
    whole = make("llama-3.1-70b", "h100-sxm", "fp8", layout=Layout(pp=2), batch=1)
    assert "it waits 50.0 % of the time" in tables.laid_out(whole)
    assert tables.critical(whole)


def test_what_the_step_is_asked_with_reaches_the_solver() -> None:
    # With logits of every token the head works on 512 rows for each sequence, with those of the last on one.
    last, every = (
        make("llama-3.1-70b", "h100-sxm", "bf16", phase=Phase.PREFILL, context=0, new_tokens=512, logits=logits)
        for logits in ("last", "all")
    )
    heads = [next(op for (_, name), op in found.asked.critical.items() if name == "lm_head") for found in (last, every)]
    assert heads[0].critical_batch is not None
    assert heads[0].critical_batch > 256
    assert heads[1].critical_batch == 1


# ---- solver ----------------------------------------------------------------------------------------------------------


def test_the_table_of_critical_batches_ends_with_the_step_and_its_context() -> None:
    rows = {row["name"]: row["cells"] for row in tables.critical(make())}
    assert rows["attention"] == ["never", "never", "never"]
    assert rows["whole step"][:2] == ["never", "never"]
    # How to Scale Your Model, counting all traffic: about 1,300 tokens for Llama-3-70B in bf16 on an H100.
    assert rows["up to a context of, in tokens"][0] == "1,320"
    chips = {row["name"]: row["cells"] for row in tables.chips(make())}
    assert chips["chips that hold the model"] == ["2", "1", "4"]
    assert chips["limited by"][0] == "bandwidth"


def test_what_is_not_known_is_neither_never_nor_a_number() -> None:
    rows = {row["name"]: row["cells"] for row in tables.critical(make("llama-3.1-70b", "tpu-v5p", "fp32", "bf16"))}
    assert {cells[0] for cells in rows.values()} == {"–"}
    assert rows["qkv_proj"][1] != "–"


def test_reasons_that_differ_in_numbers_only_are_one_line() -> None:
    lines = solved.reasons([choice.solved for choice in make().choices])
    assert len([line for line in lines if "attention reads" in line]) == 1
    assert "int8" in lines[0]
    assert "critical is 295 | 295 | 20" in lines[0]


def test_the_picture_holds_classes_ridges_and_what_chips_hold() -> None:
    found = make("qwen3-30b-a3b", "h100-sxm", "bf16")
    drawn = crossing.tables([found.asked.question], [found.asked.solved])
    assert set(drawn.curves["operations"]) == {"whole step", "linear layers", "experts", "attention", "LM head"}
    assert drawn.curves["share_of_peak"].between(0, 1).all()
    attention = drawn.curves[drawn.curves["operations"] == "attention"]
    # 32 query heads share 4 KV heads: 8 FLOP/B at any batch.
    np.testing.assert_allclose(attention["arithmetic_intensity"], 8, rtol=0.02)
    # H100 SXM: 989 TFLOP/s over 3.35 TB/s.
    assert drawn.ridges["text"].tolist() == ["ridge of bf16: 295"]
    held = dict(zip(drawn.limits["chips"], drawn.limits["batch"], strict=True))
    assert list(held) == [1, 2, 4, 8]
    assert held[1] == found.asked.memory.max_batch
    # A class is at its peak where its intensity is at or above the ridge.
    heads = drawn.curves[drawn.curves["operations"] == "LM head"]
    above = heads["arithmetic_intensity"] >= 989e12 / 3.35e12
    assert (heads["share_of_peak"][above] == 1).all()
    assert (heads["share_of_peak"][~above] < 1).all()


# ---- sentences -------------------------------------------------------------------------------------------------------


def test_the_answer_names_the_bound_the_time_and_what_limits() -> None:
    lead = answer(make("llama-3.1-70b", "h100-sxm", "fp8", kv="fp8")).lead
    # 72.67 GB of weights and 16 x 671 MB of cache at 3.35 TB/s, with some activations: 24.5 ms.
    assert "is memory-bound, takes at least 24.5 ms" in lead
    assert "limited by reading weights, 8" in lead


def test_the_answer_says_never_with_its_reason_or_from_which_batch_on() -> None:
    never = " ".join(answer(make()).points)
    assert "at no batch, however large: with 4,096 tokens of context each sequence does 150 GFLOP and moves" in never
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
    question = make().asked.question
    assert digest(question) == digest(make(batch=99).asked.question)
    model = question.model.model_copy(update={"vocab_size": 128257})
    chip = question.hardware.model_copy(update={"year": 1999})
    assert len({digest(question), digest(question.but(model=model)), digest(question.but(hardware=chip))}) == 3
