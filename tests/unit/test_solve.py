"""Answers of the solver that are known from the literature or from a closed form."""

from __future__ import annotations

import json
import math

import pytest

from planner.catalogue import load_engine, load_hardware, load_model
from planner.cli.main import run
from planner.errors import InputError
from planner.precision import policy
from planner.roofline import critical_batch
from planner.solve import Question, parse_target, solve_ops, solve_step
from planner.solve.crossing import decisive_batches, smallest_batch
from planner.workload import Phase


def question(precision: str = "bf16", context: int = 4096, hardware: str = "h100-sxm") -> Question:
    return Question(
        model=load_model("llama-3.1-70b"),
        hardware=load_hardware(hardware),
        precision=policy(precision),
        phase=Phase.DECODE,
        context=context,
        new_tokens=1,
        engine=load_engine("vllm"),
    )


def test_linear_layers_turn_compute_bound_at_the_closed_form() -> None:
    """Austin et al., How to Scale Your Model, chapter 1: I* / (1 - I* (1/D + 1/F)) at equal formats."""
    ridge = 989e12 / 3.35e12
    widths = {"o_proj": (8192, 8192), "gate_up_proj": (8192, 2 * 28672), "down_proj": (28672, 8192)}
    answers = {answer.name: answer for answer in solve_ops(question())}
    for name, (inner, outer) in widths.items():
        expected = ridge / (1 - ridge * (1 / inner + 1 / outer))
        assert answers[name].critical_tokens == pytest.approx(expected, rel=1e-9)
        assert critical_batch(ridge, inner, outer) == pytest.approx(expected, rel=1e-12)
        assert answers[name].critical_batch == math.ceil(expected)


def test_grouped_attention_is_never_compute_bound_and_says_why() -> None:
    """64 query heads over 8 KV heads of 128 in 80 layers: 2 x 8 x 128 x 80 x 2 B and 4 x 64 x 128 x 80 FLOP for each token."""
    attention = next(answer for answer in solve_ops(question()) if answer.name == "attention")
    assert attention.critical_batch is None
    assert "327,680 B of KV per token" in attention.reason
    assert "2.6 MFLOP" in attention.reason
    assert "8 FLOP/byte at any batch, critical is 295" in attention.reason


def test_a_70b_step_on_h100_is_compute_bound_below_about_1400_tokens_only() -> None:
    """Weights and KV cache alone give 1,476 tokens and 112 FLOP/byte at 4,096; activations lower both to 1,300-1,400 and 107-110."""
    answer = solve_step(question())
    assert answer.critical_batch is None
    assert answer.max_context_compute_bound is not None
    assert 1300 < answer.max_context_compute_bound < 1400
    assert answer.saturated_intensity is not None
    assert 107 < answer.saturated_intensity < 110
    at_limit = solve_step(question(context=answer.max_context_compute_bound))
    beyond = solve_step(question(context=answer.max_context_compute_bound + 1))
    assert at_limit.critical_batch is not None
    assert beyond.critical_batch is None


def test_int8_weights_alone_halve_the_critical_batch() -> None:
    """Int8 weights with bf16 arithmetic: half of bf16's for wide layers (120 against 240 on TPU v5e)."""
    both = [{a.name: a for a in solve_ops(question(p, hardware="tpu-v5e"))} for p in ("bf16", "w8a16")]
    ratio = (both[1]["gate_up_proj"].critical_tokens or 0) / (both[0]["gate_up_proj"].critical_tokens or 1)
    assert ratio == pytest.approx(0.5, rel=1e-9)


def test_a_format_without_a_rate_is_null_with_the_reason() -> None:
    answer = solve_step(question("fp32", hardware="tpu-v5e"))
    assert answer.critical_batch is None
    assert "no rate for fp32" in answer.reason


def test_equality_is_enough() -> None:
    assert smallest_batch(lambda batch: batch - 7.0) == 7
    assert smallest_batch(lambda batch: batch - 7.5) == 8
    assert smallest_batch(lambda batch: batch + 1.0) == 1
    assert smallest_batch(lambda batch: -1.0 / batch) is None


@pytest.mark.parametrize("quantum", [1, 2, 3, 8])
@pytest.mark.parametrize("need", [1.0, 5.0, 16.0, 17.0, 100.5])
def test_staircases_are_searched_exactly(quantum: int, need: float) -> None:
    """Every rank pays for the sequences of the busiest one, while something else grows with all of them."""

    def excess(batch: float) -> float:
        return batch * 3.0 - 1.5 * math.ceil(batch / quantum) * quantum - need

    scanned = next(batch for batch in range(1, 10_000) if excess(batch) >= 0)
    assert smallest_batch(excess, quantum) == scanned
    for most in range(1, 40):
        reached = any(excess(batch) >= 0 for batch in range(1, most + 1))
        assert any(excess(batch) >= 0 for batch in decisive_batches(most, quantum)) == reached


@pytest.mark.parametrize(
    "text", ["", "mfu", "mfu=0", "mfu=1.5", "mfu=nan", "tpot=30 GB", "tpot=-1ms", "tokens_per_s=inf", "fast"]
)
def test_targets_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--target"):
        parse_target(text)


def solved(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, object]]:
    code = run(["solve", "llama-3.1-70b", "--hardware", "h100-sxm", "--format", "json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_too_few_chips_are_infeasible(capsys: pytest.CaptureFixture[str]) -> None:
    code, record = solved(capsys, "--precision", "bf16", "--max-chips", "1")
    assert code == 3
    assert record["records"][0]["chips"]["minimum_to_fit"] is None  # type: ignore[index]
    code, record = solved(capsys, "--precision", "bf16", "--max-chips", "2")
    assert code == 0
    assert record["records"][0]["chips"]["minimum_to_fit"] == 2  # type: ignore[index]


def test_a_time_per_token_takes_the_chips_that_reach_it(capsys: pytest.CaptureFixture[str]) -> None:
    """141 GB of weights from one chip's 3.35 TB/s take 42 ms: 30 ms needs two chips."""
    _, record = solved(capsys, "--precision", "bf16", "--target", "tpot=30ms")
    chips = record["records"][0]["chips"]  # type: ignore[index]
    assert chips["minimum_compute_bound"] == 2
    assert record["records"][0]["step"]["critical_batch"] is None  # type: ignore[index]
