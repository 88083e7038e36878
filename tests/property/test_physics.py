"""Laws that hold for every model, chip and step, whatever the numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import catalogue
from planner.hardware import Hardware
from planner.importers.huggingface import read_config
from planner.memory import sequence_bytes, weight_bytes
from planner.model import Model
from planner.op import Kind
from planner.precision import SCHEMES, Role, policy
from planner.roofline import Rating
from planner.sourced import Figure
from planner.step import StepRating, rate_step
from planner.workload import Phase, Step

CONFIGS = Path(__file__).parents[1] / "oracle" / "data" / "configs"

# Each kind of attention and of feed-forward network at least once.
NAMES = (
    "llama-3.1-8b",  # grouped queries, dense
    "qwen3-30b-a3b",  # experts
    "deepseek-v3",  # latent attention, shared experts, leading dense layers
    "deepseek-v3.2",  # positions picked by an indexer
    "deepseek-v4-flash",  # compressed along the sequence
    "gemma-3-27b-it",  # sliding windows, tied embeddings
    "llama-4-scout",  # chunks
    "nemotron-h-56b",  # state space
    "minimax-text-01",  # linear attention
    "kimi-linear-48b-a3b",  # delta rule
)
SAMPLES = (
    "openai__gpt-oss-120b",
    "tiiuae__falcon-7b",
    "Qwen__Qwen3.5-35B-A3B",
    "tiiuae__Falcon-H1-0.5B-Base",
    "openai__whisper-large-v3",
    "google__gemma-3n-E4B-text",
)
MODELS = {name: catalogue.load_model(name) for name in NAMES} | {
    name: read_config(json.loads((CONFIGS / f"{name}.json").read_text("utf-8")), name=name, where=name)
    for name in SAMPLES
}
CHIPS = {
    name: catalogue.load_hardware(name) for name in ("h100-sxm", "mi300x", "tpu-v5e", "v100-sxm2-32gb", "b300-sxm")
}

models = st.sampled_from(sorted(MODELS)).map(MODELS.__getitem__)
chips = st.sampled_from(sorted(CHIPS)).map(CHIPS.__getitem__)
# A TPU has no rate for these, nor for anything wider: its times are not known.
precisions = st.sampled_from(sorted(set(SCHEMES) - {"fp32", "tf32", "fp16"})).map(policy)
sizes = st.integers(1, 3000)
factors = st.floats(1, 50)


@st.composite
def steps(draw: st.DrawFn) -> Step:
    phase = draw(st.sampled_from(list(Phase)))
    return Step(
        phase=phase,
        batch=draw(sizes),
        new_tokens=1 if phase is Phase.DECODE else draw(sizes),
        context=draw(st.integers(0, 200_000)),
        mask=draw(st.sampled_from(["causal", "full"])),
        logits=draw(st.sampled_from(["last", "all"])),
    )


def scaled(chip: Hardware, *, peak: float = 1, bandwidth: float = 1) -> Hardware:
    """Return a chip with other rates."""

    def by(figure: Figure, factor: float) -> Figure:
        return figure.model_copy(update={"value": None if figure.value is None else figure.value * factor})

    peaks = {name: by(figure, peak) for name, figure in chip.peak if isinstance(figure, Figure)}
    memory = chip.memory.model_copy(update={"bandwidth": by(chip.memory.bandwidth, bandwidth)})
    return chip.model_copy(update={"peak": chip.peak.model_copy(update=peaks), "memory": memory})


def lower(result: StepRating | Rating) -> Any:
    assert result.lower_s is not None
    return result.lower_s


@settings(max_examples=40)
@given(model=models, chip=chips, step=steps(), precision=precisions, peak=factors, bandwidth=factors)
def test_a_faster_chip_never_slows_a_step(
    model: Model, chip: Hardware, step: Step, precision: Any, peak: float, bandwidth: float
) -> None:
    slow = rate_step(model, chip, step, precision)
    for fast in (scaled(chip, peak=peak), scaled(chip, bandwidth=bandwidth)):
        result = rate_step(model, fast, step, precision)
        for before, after in zip(slow.ops, result.ops, strict=True):
            assert lower(after) <= lower(before)
            assert after.upper_s <= before.upper_s
        assert result.overlap_floor_s <= slow.overlap_floor_s


@settings(max_examples=40)
@given(model=models, chip=chips, step=steps(), precision=precisions)
def test_twice_every_rate_is_half_the_time(model: Model, chip: Hardware, step: Step, precision: Any) -> None:
    once = rate_step(model, chip, step, precision)
    twice = rate_step(model, scaled(chip, peak=2, bandwidth=2), step, precision)
    assert lower(twice) == pytest.approx(lower(once) / 2, rel=1e-12)
    assert twice.upper_s == pytest.approx(once.upper_s / 2, rel=1e-12)
    assert [rating.bound for rating in twice.ops] == [rating.bound for rating in once.ops]


def is_chunked(model: Model) -> bool:
    return any("chunk" in kind.label for kind in model.layer_kinds)


@settings(max_examples=40)
@given(
    model=models.filter(lambda model: not is_chunked(model)),
    chip=chips,
    batch=sizes,
    context=st.integers(0, 200_000),
    more=st.integers(0, 200_000),
    precision=precisions,
)
def test_more_context_never_speeds_a_decode_step(
    model: Model, chip: Hardware, batch: int, context: int, more: int, precision: Any
) -> None:
    """Attention within chunks is left out: at the end of a chunk a query starts anew."""
    short, long = (
        rate_step(model, chip, Step(phase=Phase.DECODE, batch=batch, context=tokens), precision)
        for tokens in (context, context + more)
    )
    assert lower(long) >= lower(short) * (1 - 1e-12)
    assert long.upper_s >= short.upper_s * (1 - 1e-12)
    assert long.memory_bytes >= short.memory_bytes * (1 - 1e-12)


@settings(max_examples=40)
@given(model=models, chip=chips, step=steps(), more=st.integers(0, 1000), precision=precisions)
def test_more_sequences_never_speed_a_step(model: Model, chip: Hardware, step: Step, more: int, precision: Any) -> None:
    few = rate_step(model, chip, step, precision)
    many = rate_step(model, chip, step.with_batch(step.batch + more), precision)
    assert lower(many) >= lower(few) * (1 - 1e-12)
    assert many.flops() >= few.flops()


@settings(max_examples=40)
@given(model=models, chip=chips, step=steps(), precision=precisions)
def test_bounds_in_their_order_and_parts_that_sum_to_the_total(
    model: Model, chip: Hardware, step: Step, precision: Any
) -> None:
    result = rate_step(model, chip, step, precision)
    for rating in result.ops:
        times = [rating.compute_s, rating.memory_s, rating.network_s]
        assert max(times) == rating.lower_s
        assert sum(times) == pytest.approx(rating.upper_s)
        assert rating.lower_s <= rating.upper_s <= 3 * rating.lower_s
        parts = rating.weight_bytes + rating.activation_bytes + rating.kv_bytes
        assert rating.memory_bytes == parts
        if rating.flops:
            assert rating.attainable_flops <= rating.rate.flops_per_s
            # What the roofline allows takes the lower bound: the same statement twice.
            assert rating.flops / rating.attainable_flops == pytest.approx(rating.lower_s)
    assert result.overlap_floor_s <= lower(result) * (1 + 1e-12)
    assert lower(result) <= result.upper_s
    assert result.upper_s <= 3 * lower(result)
    assert lower(result) == pytest.approx(sum(lower(rating) for rating in result.ops))
    assert result.memory_bytes == pytest.approx(sum(rating.memory_bytes for rating in result.ops))
    kinds = (Kind.MATMUL, Kind.ATTENTION, Kind.INDEXER, Kind.STATE_SPACE)
    assert result.flops() == pytest.approx(sum(result.flops(kind) for kind in kinds))
    assert result.tokens_per_s == pytest.approx(step.tokens / lower(result))


# ---- kinds that are special cases of each other ----------------------------------------------------------------------


def one_kind(attention: dict[str, Any], ffn: dict[str, Any], hidden: int) -> Model:
    return Model.model_validate(
        {
            "name": "m",
            "hidden_size": hidden,
            "vocab_size": 100,
            "tie_word_embeddings": False,
            "layers": [{"repeat": 3, "attention": attention, "ffn": ffn}],
        }
    )


def figures(result: StepRating) -> list[tuple[Any, ...]]:
    return [
        (r.op.name, r.flops, r.weight_bytes, r.activation_bytes, r.kv_bytes, r.lower_s, r.upper_s, r.bound)
        for r in result.ops
    ]


FFN = {"kind": "gated", "intermediate_size": 96}
small = st.integers(1, 64)


@given(heads=small, width=small, hidden=small, step=steps(), precision=precisions)
def test_grouped_queries_with_a_head_each_are_multi_head_attention(
    heads: int, width: int, hidden: int, step: Step, precision: Any
) -> None:
    shape = {"num_attention_heads": heads, "head_dim": width}
    grouped, multi = (
        one_kind(attention, FFN, hidden)
        for attention in ({"kind": "gqa", "num_key_value_heads": heads, **shape}, {"kind": "mha", **shape})
    )
    assert grouped.parameters == multi.parameters
    chip = CHIPS["h100-sxm"]
    assert figures(rate_step(grouped, chip, step, precision)) == figures(rate_step(multi, chip, step, precision))


@given(width=small, hidden=small, gated=st.booleans(), step=steps(), precision=precisions)
def test_one_expert_of_one_is_a_dense_network(width: int, hidden: int, gated: bool, step: Step, precision: Any) -> None:
    attention = {"kind": "mha", "num_attention_heads": 2, "head_dim": 8}
    moe = {
        "kind": "moe",
        "num_experts": 1,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": width,
        "gated": gated,
    }
    dense = {"kind": "gated" if gated else "plain", "intermediate_size": width}
    chip = CHIPS["h100-sxm"]
    rows = [
        {
            r.op.name.removeprefix("experts."): (r.flops, r.weight_bytes, r.activation_bytes, r.lower_s)
            for r in rate_step(one_kind(attention, ffn, hidden), chip, step, precision).ops
        }
        for ffn in (moe, dense)
    ]
    for name in ("gate_up_proj" if gated else "up_proj", "activation", "down_proj"):
        assert rows[0][name] == rows[1][name]


@given(window=st.integers(1, 500), step=steps())
def test_a_window_or_chunk_as_long_as_the_sequence_is_full_attention(window: int, step: Step) -> None:
    tokens = step.context + step.new_tokens
    shape = {"kind": "mha", "num_attention_heads": 2, "head_dim": 8}
    chip, precision = CHIPS["h100-sxm"], policy("bf16")
    full = figures(rate_step(one_kind(shape, FFN, 16), chip, step, precision))
    for limit in ("sliding_window", "attention_chunk_size"):
        limited = one_kind({**shape, limit: tokens + window}, FFN, 16)
        assert figures(rate_step(limited, chip, step, precision)) == full


@settings(max_examples=40)
@given(model=models, chip=chips, first=sizes, second=sizes, precision=precisions)
def test_a_prompt_in_two_chunks_takes_the_flops_of_the_prompt(
    model: Model, chip: Hardware, first: int, second: int, precision: Any
) -> None:
    """Layer by layer, with the form of latent attention that expands nothing again; an encoder reads its prompt at once."""
    if model.encoder is not None:
        return
    whole = Step(phase=Phase.PREFILL, new_tokens=first + second, mla="absorbed", logits="all")
    chunks = (
        Step(phase=Phase.PREFILL, new_tokens=first, mla="absorbed", logits="all"),
        Step(phase=Phase.PREFILL, new_tokens=second, context=first, mla="absorbed", logits="all"),
    )
    parts = [rate_step(model, chip, chunk, precision).flops() for chunk in chunks]
    assert sum(parts) == pytest.approx(rate_step(model, chip, whole, precision).flops())


# ---- the floor of a decode step --------------------------------------------------------------------------------------

UNBIASED = ("llama-3.1-8b", "qwen3-30b-a3b", "mixtral-8x7b-v0.1", "gemma-2-9b", "deepseek-v3")


@settings(max_examples=40)
@given(name=st.sampled_from(UNBIASED), chip=chips, batch=sizes, context=st.integers(0, 100_000), precision=precisions)
def test_a_decode_step_reads_its_weights_and_its_cache(
    name: str, chip: Hardware, batch: int, context: int, precision: Any
) -> None:
    """Austin et al., How to Scale Your Model, chapter 7: no step is faster than (weights + KV cache) / bandwidth.

    Weights are counted from the stored tensors, experts by the share of them that `batch` tokens reach; the embedding is read by the
    row unless it is the LM head as well. Of the cache every position but the new one is read.
    """
    model = catalogue.load_model(name)
    stored = dict(weight_bytes(model, precision))
    embedding, norms = stored.pop(Role.EMBEDDING), stored.pop(Role.NORM)
    assert norms < embedding
    experts = [block for kind in model.layer_kinds for block in kind.layer.networks if hasattr(block, "num_experts")]
    reached = 1.0
    if experts:
        reached = 1 - (1 - experts[0].num_experts_per_tok / experts[0].num_experts) ** batch
    weights = sum(size * (reached if role is Role.EXPERTS else 1) for role, size in stored.items())
    weights += embedding if model.tie_word_embeddings else 0
    cache = batch * sequence_bytes(model, max(context - 1, 0), precision.kv)
    result = rate_step(model, chip, Step(phase=Phase.DECODE, batch=batch, context=context), precision)
    bandwidth = chip.memory.bandwidth.value
    assert bandwidth is not None
    assert lower(result) >= (weights + cache) / bandwidth * (1 - 1e-9)
    assert result.memory_bytes >= (weights + cache) * (1 - 1e-9)


# ---- arrays ----------------------------------------------------------------------------------------------------------

BATCHES, CONTEXTS = (1, 7, 300), (0, 1, 129, 8192, 100_000)
FIGURES = (
    "flops",
    "weight_bytes",
    "activation_bytes",
    "kv_bytes",
    "memory_bytes",
    "network_bytes",
    "intensity",
    "compute_s",
    "memory_s",
    "network_s",
    "lower_s",
    "upper_s",
    "attainable_flops",
    "bound",
)
SUMS = (
    "memory_bytes",
    "compute_s",
    "memory_s",
    "network_s",
    "lower_s",
    "upper_s",
    "overlap_floor_s",
    "tokens_per_s",
    "bound",
)


def grid() -> Iterator[tuple[tuple[int, int], int, int]]:
    for row, batch in enumerate(BATCHES):
        for column, context in enumerate(CONTEXTS):
            yield (row, column), batch, context


def agree(together: Any, place: tuple[int, int], alone: Any) -> bool:
    there = np.broadcast_to(together, (len(BATCHES), len(CONTEXTS)))[place]
    if isinstance(alone, str):
        return bool(there == alone)
    return bool(np.isclose(there, alone, rtol=1e-12, atol=0, equal_nan=True))


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("form", ["absorbed", "expanded"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_arrays_equal_numbers(name: str, form: Any, phase: Phase) -> None:
    """Every figure of every operation, for each batch and context of a grid."""
    model, chip, precision = MODELS[name], CHIPS["h100-sxm"], policy("fp8")
    shared: dict[str, Any] = {"phase": phase, "new_tokens": 1 if phase is Phase.DECODE else 50, "mla": form}
    batches, contexts = np.array(BATCHES, dtype=float)[:, None], np.array(CONTEXTS, dtype=float)[None, :]
    together = rate_step(model, chip, Step(batch=batches, context=contexts, **shared), precision)
    for place, batch, context in grid():
        alone = rate_step(model, chip, Step(batch=batch, context=context, **shared), precision)
        assert [r.op.name for r in together.ops] == [r.op.name for r in alone.ops]
        for many, one in zip(together.ops, alone.ops, strict=True):
            for figure in FIGURES:
                assert agree(getattr(many, figure), place, getattr(one, figure)), (many.op.name, figure, batch, context)


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("name", sorted(MODELS))
def test_sums_over_arrays_equal_numbers_where_points_differ_in_form(name: str, phase: Phase) -> None:
    model, chip, precision = MODELS[name], CHIPS["h100-sxm"], policy("fp8")
    shared: dict[str, Any] = {"phase": phase, "new_tokens": 1 if phase is Phase.DECODE else 50}
    batches, contexts = np.array(BATCHES, dtype=float)[:, None], np.array(CONTEXTS, dtype=float)[None, :]
    together = rate_step(model, chip, Step(batch=batches, context=contexts, **shared), precision)
    for place, batch, context in grid():
        alone = rate_step(model, chip, Step(batch=batch, context=context, **shared), precision)
        for figure in SUMS:
            assert agree(getattr(together, figure), place, getattr(alone, figure)), (figure, batch, context)
