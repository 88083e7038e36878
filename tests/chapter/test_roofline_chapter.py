"""Claims of a chapter on the roofline model, each with the right answer.

Sources: "The roofline model explained" (slides), chapter 1, after Austin et al., How to Scale Your Model, chapter 1. Where the slides are
wrong or round early, the right value stands here, and the name of the test says what is claimed. Chips are the catalogue's where it
has the claim's figures.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from chapter.roofline_cases import WIDE, attention, compute_bound_prompt, matmul, rated, ridge

from planner.catalogue import load_engine, load_hardware
from planner.model import FeedForward, LayerGroup, Model, SoftmaxAttention
from planner.precision import policy
from planner.roofline import (
    attainable,
    bound_name,
    compute_time,
    critical_batch,
    critical_intensity,
    intensity,
    rate_op,
    transfer_time,
)
from planner.solve import Question, solve_ops
from planner.workload import Phase

V5E = 197e12, 820e9
"""Peak and bandwidth that the book gives for the TPU v5e [FLOP/s, B/s]."""


# ---- times, bounds, intensity ----------------------------------------------------------------------------------------


def test_c1_time_is_flops_over_peak() -> None:
    rating = rated("h100-sxm", 64, 8192, 28672)
    assert rating.compute_s == pytest.approx(2 * 64 * 8192 * 28672 / 989e12)


@pytest.mark.parametrize(("peak", "seconds"), [(989e12, 1.0111e-3), (9.1e14, 1.0989e-3), (918e12, 1.0893e-3)])
def test_c2_a_trillion_flops_take_about_a_millisecond(peak: float, seconds: float) -> None:
    assert compute_time(1e12, peak) == pytest.approx(seconds, rel=5e-5)


@pytest.mark.parametrize(
    ("chip", "dense"),
    [("h100-sxm", 989.4e12), ("h100-pcie", 756.5e12), ("tpu-v6e", 918e12), ("tpu-v5e", 197e12)],
    ids=["c3-h100-is-dense", "c3-pcie-card-is-slower", "c4-v6e-as-the-vendor-says", "v5e"],
)
def test_c3_c4_bf16_peaks(chip: str, dense: float) -> None:
    assert load_hardware(chip).rate("bf16").flops_per_s == pytest.approx(dense, rel=1e-3)


def test_c5_time_is_bytes_over_bandwidth() -> None:
    rating = rated("h100-sxm", 64, 8192, 28672)
    assert rating.memory_s == pytest.approx(2 * (64 * 8192 + 8192 * 28672 + 64 * 28672) / 3.35e12)


@pytest.mark.parametrize(("chip", "bandwidth"), [("h100-sxm", 3.35e12), ("tpu-v6e", 1.64e12)])
def test_c6_c7_memory_bandwidths(chip: str, bandwidth: float) -> None:
    assert load_hardware(chip).memory.bandwidth.value == pytest.approx(bandwidth, rel=2e-3)


@pytest.mark.parametrize(
    ("chip", "link", "times"),
    [
        ("h100-sxm", "scale_up", 7.44),  # less than the one to two orders of magnitude that are claimed
        ("a100-sxm-80gb", "scale_up", 6.80),
        ("h100-sxm", "scale_out", 67.0),
        ("tpu-v5e", "host", 54.7),
    ],
)
def test_c8_links_are_slower_than_memory(chip: str, link: str, times: float) -> None:
    hardware = load_hardware(chip)
    one_way, bandwidth = getattr(hardware.links, link).one_way.value, hardware.memory.bandwidth.value
    assert bandwidth is not None
    assert transfer_time(1, one_way) / transfer_time(1, bandwidth) == pytest.approx(times, rel=1e-3)


def test_c9_time_lies_between_maximum_and_sum() -> None:
    rating = rated("h100-sxm", 64, 8192, 28672)
    assert rating.compute_s == pytest.approx(30.4e-6, rel=1e-3)
    assert rating.lower_s == pytest.approx(141.6e-6, rel=5e-4)
    assert rating.upper_s == pytest.approx(172.0e-6, rel=5e-4)


@pytest.mark.parametrize("rows", [1, 16, 255, 256, 4096, 10**6])
def test_c9_sum_is_at_most_twice_the_maximum(rows: int) -> None:
    rating = rated("tpu-v5e", rows, 8192, 8192)
    assert rating.lower_s is not None
    assert rating.upper_s is not None
    assert rating.lower_s <= rating.upper_s <= 2 * rating.lower_s


def test_c10_intensity_is_flops_over_bytes_of_one_path() -> None:
    """Each path has a ridge of its own: memory 240, and a link of the book's 45 GB/s 4,378 FLOP/B."""
    rating = rated("tpu-v5e", 32, 8192, 28672)
    assert rating.intensity == rating.flops / rating.memory_bytes
    assert rating.critical_intensity == pytest.approx(240.24, rel=1e-4)
    assert critical_intensity(V5E[0], 4.5e10) == pytest.approx(4377.8, rel=1e-4)


@pytest.mark.parametrize(("rows", "bound"), [(255, "memory"), (256, "compute")])
def test_c11_compute_bound_where_intensity_is_above_the_ridge(rows: int, bound: str) -> None:
    rating = rated("tpu-v5e", rows, 8192, 8192)
    assert rating.critical_intensity is not None
    assert (rating.intensity >= rating.critical_intensity) is (bound == "compute")
    assert rating.bound == bound


def test_c11_ridge_itself_counts_as_compute_bound() -> None:
    assert bound_name(1.0, 1.0, 0.0) == "compute"


@pytest.mark.parametrize(("bandwidth", "ridge_"), [(8.2e11, 240.24), (8.1e11, 243.2), (819e9, 240.5)])
def test_c12_ridge_of_v5e(bandwidth: float, ridge_: float) -> None:
    assert critical_intensity(V5E[0], bandwidth) == pytest.approx(ridge_, rel=2e-4)
    assert ridge("tpu-v5e") == pytest.approx(240.24, rel=1e-4)


# ---- dot products and the roof ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 10, 1000])
def test_c13_bytes_and_flops_of_a_dot_product(length: int) -> None:
    op = matmul(1, length, 1)
    assert op.memory_bytes == 4 * length + 2
    assert op.flops == 2 * length  # 2N - 1, and the addition to zero that multiply-adds bring


@pytest.mark.parametrize(("length", "ratio"), [(1, 0.1667), (10, 0.4524), (1000, 0.49950), (10**9, 0.5)])
def test_c14_intensity_of_a_dot_product(length: int, ratio: float) -> None:
    op = matmul(1, length, 1)
    assert intensity(op.flops - 1, op.memory_bytes) == pytest.approx(ratio, rel=3e-4)


def test_c15_dot_product_is_480_times_short_of_the_matrix_unit_and_5_of_the_vector_unit() -> None:
    half = float(intensity(matmul(1, 10**9, 1).flops, matmul(1, 10**9, 1).memory_bytes))
    assert ridge("tpu-v5e") / half == pytest.approx(480.5, rel=1e-3)
    assert critical_intensity(7e12, 2.8e12) / half == pytest.approx(5, rel=1e-6)


@pytest.mark.parametrize(("at", "idle"), [(1.0, 0.9958), (0.5, 0.9979)])
def test_c16_idle_share(at: float, idle: float) -> None:
    assert 1 - float(attainable(at, 240, 1)) / 240 == pytest.approx(idle, rel=1e-4)


@pytest.mark.parametrize(("at", "rate"), [(0.5, 4.1e11), (120, 9.84e13), (240.25, 1.97e14), (10_000, 1.97e14)])
def test_c17_attainable_rate_is_the_lower_of_slope_and_roof(at: float, rate: float) -> None:
    assert attainable(at, *V5E) == pytest.approx(rate)


def test_c17_rate_of_an_operation_lies_on_the_roof() -> None:
    rating = rated("tpu-v5e", 120, 8192, 8192)
    assert rating.lower_s is not None
    assert rating.attainable_flops == pytest.approx(rating.flops / rating.lower_s)


# ---- matmuls and their critical batch --------------------------------------------------------------------------------


def test_c18_bytes_and_flops_of_a_matmul() -> None:
    op = matmul(32, 8192, 28672)
    assert op.flops == 2 * 32 * 8192 * 28672
    assert op.memory_bytes == 2 * (32 * 8192 + 8192 * 28672 + 32 * 28672)


@pytest.mark.parametrize(("rows", "inner", "outer", "ratio"), [(32, 8192, 28672, 31.84), (240, 8192, 8192, 226.7)])
def test_c19_intensity_is_the_batch_less_what_activations_take(rows: int, inner: int, outer: int, ratio: float) -> None:
    found = rated("tpu-v5e", rows, inner, outer).intensity
    assert found == pytest.approx(ratio, rel=2e-4)
    assert found == pytest.approx(rows / (1 + rows / inner + rows / outer))


WIDTHS = [(8192, 8192, 255.2), (8192, 28672, 249.7), (4096, 14336, 259.8), (1024, 4096, 339.9), (1024, 1024, 452.6)]


@pytest.mark.parametrize(("inner", "outer", "batch"), WIDTHS)
def test_c20_critical_batch_is_above_240(inner: int, outer: int, batch: float) -> None:
    found = critical_batch(ridge("tpu-v5e"), inner, outer)
    assert found == pytest.approx(batch, rel=3e-4)
    assert rated("tpu-v5e", int(found or 0), inner, outer).bound == "memory"
    assert rated("tpu-v5e", int(found or 0) + 1, inner, outer).bound == "compute"


@pytest.mark.parametrize("width", [128, 480])
def test_c20_narrow_matmuls_are_never_compute_bound(width: int) -> None:
    assert critical_batch(ridge("tpu-v5e"), width, width) is None
    assert rated("tpu-v5e", 10**9, width, width).bound == "memory"


def test_c20_solver_finds_the_same_batch_in_a_model() -> None:
    block = LayerGroup(
        attention=SoftmaxAttention(kind="mha", num_attention_heads=64, head_dim=128),
        ffn=FeedForward(kind="plain", intermediate_size=28672),
    )
    model = Model(name="wide", hidden_size=8192, vocab_size=8, tie_word_embeddings=True, layers=(block,))
    question = Question(
        model=model,
        hardware=load_hardware("tpu-v5e"),
        precision=policy("bf16"),
        phase=Phase.DECODE,
        context=1024,
        new_tokens=1,
        engine=load_engine("vllm"),
    )
    found = {answer.name: answer for answer in solve_ops(question)}
    assert found["o_proj"].critical_tokens == pytest.approx(255.2, rel=3e-4)
    assert found["o_proj"].critical_batch == 256
    assert found["up_proj"].critical_tokens == pytest.approx(249.7, rel=3e-4)
    assert found["attention"].critical_batch is None


def test_c21_critical_batch_falls_with_width_but_never_below_the_ridge() -> None:
    widths = np.geomspace(500, 1e9, 50)
    batches = [critical_batch(ridge("tpu-v5e"), width, width) or WIDE for width in widths]
    assert all(wider < narrower for narrower, wider in pairwise(batches))
    assert min(batches) > ridge("tpu-v5e")
    assert critical_batch(ridge("tpu-v5e"), WIDE, WIDE) == pytest.approx(240.24, rel=1e-4)


def test_c21_twice_as_wide_saves_little() -> None:
    at_8k, at_16k = (critical_batch(ridge("tpu-v5e"), width, width) or WIDE for width in (8192, 16384))
    assert 1 - at_16k / at_8k == pytest.approx(0.0302, abs=1e-4)


@pytest.mark.parametrize(
    ("peak", "bandwidth", "batch"),
    [(197e12, 820e9, 240.2), (9.1e14, 1.6e12, 568.8), (918e12, 1.64e12, 559.8), (459e12, 2.765e12, 166.0)],
    ids=["v5e", "v6e-of-the-slides", "v6e-of-the-vendor", "v5p"],
)
def test_c29_the_rule_of_240_holds_for_one_tpu(peak: float, bandwidth: float, batch: float) -> None:
    assert critical_batch(critical_intensity(peak, bandwidth), WIDE, WIDE) == pytest.approx(batch, rel=3e-4)


@pytest.mark.parametrize(
    ("chip", "batch"), [("tpu-v5e", 240.2), ("tpu-v6e", 560), ("tpu-v5p", 166.0), ("tpu-v4", 229.2)]
)
def test_c29_critical_batch_of_the_catalogue_s_tpus(chip: str, batch: float) -> None:
    assert critical_batch(ridge(chip), WIDE, WIDE) == pytest.approx(batch, rel=2e-3)


def test_c30_critical_batch_of_h100_is_295() -> None:
    assert critical_batch(ridge("h100-sxm"), WIDE, WIDE) == pytest.approx(295.2, rel=1e-3)


@pytest.mark.parametrize(
    ("chip", "scheme", "batch"),
    [
        ("tpu-v5e", "w8a16", 120.1),  # int8 weights alone halve it
        ("tpu-v5e", "int8", 240.2),  # int8 arithmetic doubles the peak as well
        ("h100-sxm", "w8a16", 147.7),
        ("h100-sxm", "fp8", 295.4),
        ("tpu-v4", "int8", 114.6),  # which has no faster int8
    ],
)
def test_c31_int8_halves_the_critical_batch_only_where_arithmetic_stays_in_16_bits(
    chip: str, scheme: str, batch: float
) -> None:
    """Very wide matmuls: a trillion elements on a side leave activations out."""
    op = matmul(1, 10**12, 10**12, scheme)
    found = critical_batch(ridge(chip, op.arithmetic), WIDE, WIDE, weight_bytes=op.scheme.weights.bytes_per_element)
    assert found == pytest.approx(batch, rel=3e-3)
    hardware = load_hardware(chip)
    assert rate_op(matmul(0.999 * (found or 0), 10**12, 10**12, scheme), hardware).bound == "memory"
    assert rate_op(matmul(1.001 * (found or 0), 10**12, 10**12, scheme), hardware).bound == "compute"


@pytest.mark.parametrize(("causal", "pairs"), [(False, 3 * 5), (True, 3 + 4 + 5)])
def test_helper_attention_counts_pairs_and_moves_everything_once(causal: bool, pairs: int) -> None:
    """Three queries, the last of five positions, two query heads: 4 N H FLOPs for a pair, 2 B for each element of Q, O, K and V."""
    op = attention(3, 5, 2, causal=causal)
    assert op.flops == 4 * 2 * 128 * pairs
    assert op.memory_bytes == 2 * 128 * (3 * 2 * 2 + 5 * 2)


# ---- homework --------------------------------------------------------------------------------------------------------


def test_q1_fp32_halves_intensity() -> None:
    half = rated("h100-sxm", 240, 10**9, 10**9, "fp32").intensity
    assert half == pytest.approx(120, rel=1e-6)
    assert half == pytest.approx(float(rated("h100-sxm", 240, 10**9, 10**9).intensity) / 2)
    dot = matmul(1, 10**9, 1, "fp32")
    assert intensity(dot.flops, dot.memory_bytes) == pytest.approx(0.25, rel=1e-6)


def test_q1_batch_doubles_only_where_the_peak_stays() -> None:
    assert critical_batch(ridge("tpu-v5e"), WIDE, WIDE, weight_bytes=4) == pytest.approx(480.5, rel=1e-4)
    assert ridge("h100-sxm", "fp32") == pytest.approx(20)
    assert critical_batch(ridge("h100-sxm", "fp32"), WIDE, WIDE, weight_bytes=4) == pytest.approx(40)
    assert ridge("h100-sxm", "tf32") == pytest.approx(147.7, rel=1e-3)
    assert critical_batch(ridge("h100-sxm", "tf32"), WIDE, WIDE, weight_bytes=4) == pytest.approx(295, rel=2e-3)


@pytest.mark.parametrize(("queries", "keys"), [(4096, 4096), (512, 512), (16, 4096)])
def test_q2_intensity_of_attention(queries: int, keys: int) -> None:
    op = attention(queries, keys)
    assert intensity(op.flops, op.memory_bytes) == pytest.approx(keys * queries / (keys + queries))


@pytest.mark.parametrize(
    ("chip", "heads_per_kv_head", "tokens"),
    [("tpu-v5e", 1, 480.5), ("h100-sxm", 1, 590.4), ("tpu-v5e", 8, 270.3), ("h100-sxm", 8, 332.1)],
)
def test_q2_prefill_attention_is_compute_bound_from_some_hundred_tokens(
    chip: str, heads_per_kv_head: int, tokens: float
) -> None:
    assert compute_bound_prompt(chip, heads_per_kv_head) == pytest.approx(tokens, abs=1)


@pytest.mark.parametrize(("chip", "tokens"), [("tpu-v5e", 961), ("h100-sxm", 1181)])
def test_q2_twice_as_many_tokens_where_the_masked_half_is_skipped(chip: str, tokens: int) -> None:
    assert compute_bound_prompt(chip, causal=True) == pytest.approx(tokens, abs=2)


@pytest.mark.parametrize(("heads_per_kv_head", "ratio"), [(1, 0.99988), (8, 7.9922)])
@pytest.mark.parametrize("batch", [1, 512])
def test_q2_decode_attention_has_the_intensity_of_its_group_at_any_batch(
    heads_per_kv_head: int, ratio: float, batch: int
) -> None:
    op = attention(1, 8192, heads_per_kv_head)
    assert intensity(batch * op.flops, batch * op.memory_bytes) == pytest.approx(ratio, rel=1e-5)


def test_q2_decode_attention_reaches_a_few_percent_of_the_peak() -> None:
    rating = rate_op(attention(1, 10**6, 8), load_hardware("h100-sxm"))
    assert rating.bound == "memory"
    assert rating.attainable_flops is not None
    assert float(rating.attainable_flops) / 989e12 == pytest.approx(0.027, rel=0.01)


@pytest.mark.parametrize(("inner", "outer", "batch"), [(WIDE, WIDE, 295), (8192, 28672, 310), (8192, 8192, 318)])
def test_q4_critical_batch_of_h100(inner: float, outer: float, batch: float) -> None:
    assert critical_batch(ridge("h100-sxm"), inner, outer) == pytest.approx(batch, rel=2e-3)


def test_q4_sparse_peak_is_a_trap() -> None:
    """The data sheet's 1,979 TFLOP/s are with sparsity, and would give 591."""
    assert critical_batch(critical_intensity(1979e12, 3.35e12), WIDE, WIDE) == pytest.approx(591, rel=1e-3)
    assert ridge("h100-sxm") < 300
