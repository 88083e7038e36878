"""What a report shows, in numbers: thresholds, what fits, and a grid that agrees with the point."""

from __future__ import annotations

import numpy as np
import pytest

from planner import catalogue
from planner.precision import Role
from planner.report import frames, tables
from planner.report.answer import answer
from planner.report.study import LAST_OF_ALL, Study, Threshold, digest, first_compute_bound, study
from planner.scenario import choose_precision
from planner.workload import Phase, Step

BATCHES = np.append(np.arange(1, LAST_OF_ALL + 1), 10**9)


def make(
    model: str = "llama-3.1-70b",
    chip: str = "h100-sxm",
    *names: str,
    kv: str = "bf16",
    phase: Phase = Phase.DECODE,
    batch: int = 16,
    context: int = 4096,
    new_tokens: int = 1,
) -> Study:
    described = catalogue.load_model(model)
    policies = [choose_precision(described, name, kv=kv) for name in names or ("bf16", "int8", "fp32")]
    step = Step(phase=phase, batch=batch, context=context, new_tokens=new_tokens)
    return study(described, catalogue.load_hardware(chip), step, policies)


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


def test_sequences_that_fit() -> None:
    # Llama-3.1-70B in fp8 on 80 GiB: 68,451,041,280 elements of linear layers in a byte each, embedding and LM head of
    # 128256 x 8192 in two; 161 norms of 8192 in two. A token keeps 80 x 2 x 8 x 128 elements of a byte.
    linear = 80 * (8192 * 10240 + 8192 * 8192 + 3 * 8192 * 28672)
    weights = linear + 2 * 2 * 128256 * 8192 + 161 * 8192 * 2
    each = 4097 * 80 * 2 * 8 * 128
    asked = make("llama-3.1-70b", "h100-sxm", "fp8", kv="fp8").asked
    assert asked.weight_bytes == weights
    assert asked.sequence_bytes == each
    assert asked.fitting == (80 * 2**30 - weights) // each
    assert asked.needed_bytes(3) == weights + 3 * each
    assert asked.weights[Role.LM_HEAD] == 2 * 128256 * 8192


def test_weights_that_do_not_fit_are_said_not_to() -> None:
    found = make()
    assert found.asked.fitting is not None
    assert found.asked.fitting < 0
    rows = {row["name"]: row["cells"] for row in tables.memory(found)}
    assert rows["sequences that fit"][0] == "none"
    assert any("do not fit" in point for point in answer(found).points)


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
    assert list(rows) == ["peak bf16", "peak fp8", "memory capacity", "memory bandwidth"]
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
    model, chip = catalogue.load_model("llama-3.1-70b"), catalogue.load_hardware("h100-sxm")
    assert digest(model, chip) == digest(model.model_copy(), chip.model_copy())
    assert digest(model, chip) != digest(model.model_copy(update={"vocab_size": 128257}), chip)
    assert digest(model, chip) != digest(model, chip.model_copy(update={"year": 1999}))
