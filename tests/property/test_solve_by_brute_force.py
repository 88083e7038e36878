"""The solver against brute force: every batch scanned, every layout tried."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from planner.catalogue import load_engine, load_hardware
from planner.model import FeedForward, LatentAttention, LayerGroup, MixtureOfExperts, Model, SoftmaxAttention
from planner.parallel import legal_layouts
from planner.precision import policy
from planner.solve import Question, parse_target, solve_chips, solve_step
from planner.solve.critical import solve_ops
from planner.workload import Phase

SCANNED = 1 << 15
COMPUTE_BOUND = parse_target("compute-bound")
CHIPS = ("h100-sxm", "mi300x", "tpu-v5e", "h20", "a100-sxm-80gb", "rtx-4090", "tpu-v5p", "l40s")


@st.composite
def models(draw: st.DrawFn) -> Model:
    heads = draw(st.sampled_from([4, 8, 16, 64]))
    kind = draw(st.sampled_from(["gqa", "window", "mla"]))
    if kind == "mla":
        attention: SoftmaxAttention | LatentAttention = LatentAttention(
            kind="mla",
            num_attention_heads=heads,
            kv_lora_rank=draw(st.sampled_from([128, 512])),
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
        )
    else:
        attention = SoftmaxAttention(
            kind="gqa",
            num_attention_heads=heads,
            num_key_value_heads=heads // draw(st.sampled_from([1, 2, 4])),
            head_dim=draw(st.sampled_from([64, 128])),
            sliding_window=draw(st.sampled_from([64, 1024])) if kind == "window" else None,
        )
    if draw(st.booleans()):
        ffn: FeedForward | MixtureOfExperts = FeedForward(
            kind="gated", intermediate_size=draw(st.sampled_from([1024, 14336]))
        )
    else:
        experts = draw(st.sampled_from([8, 64]))
        ffn = MixtureOfExperts(
            kind="moe",
            num_experts=experts,
            num_experts_per_tok=draw(st.sampled_from([1, 2, 8])),
            moe_intermediate_size=draw(st.sampled_from([512, 2048])),
        )
    return Model(
        name="drawn",
        hidden_size=draw(st.sampled_from([512, 2048, 8192])),
        vocab_size=draw(st.sampled_from([1000, 128256])),
        tie_word_embeddings=draw(st.booleans()),
        layers=(LayerGroup(repeat=draw(st.sampled_from([2, 12])), attention=attention, ffn=ffn),),
    )


@st.composite
def questions(draw: st.DrawFn) -> Question:
    phase = draw(st.sampled_from([Phase.DECODE, Phase.DECODE, Phase.PREFILL]))
    return Question(
        model=draw(models()),
        hardware=load_hardware(draw(st.sampled_from(CHIPS))),
        precision=policy(
            draw(st.sampled_from(["bf16", "int8", "fp8", "w4a16", "w8a16"])), kv=draw(st.sampled_from(["bf16", "fp8"]))
        ),
        phase=phase,
        context=draw(st.sampled_from([0, 1, 100, 512, 2048])),
        new_tokens=1 if phase is Phase.DECODE else draw(st.sampled_from([1, 16, 300])),
        engine=load_engine("vllm"),
    )


def first_scanned(question: Question, most: int = SCANNED) -> int | None:
    """The first whole batch that is compute-bound, found by trying every one."""
    batches = np.arange(1, most + 1, dtype=float)
    enough = np.flatnonzero(np.broadcast_to(COMPUTE_BOUND.excess(question.at(batches)), batches.shape) >= 0)
    return int(batches[enough[0]]) if enough.size else None


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(questions())
def test_the_critical_batch_is_the_first_of_a_scan(question: Question) -> None:
    found, scanned = solve_step(question).critical_batch, first_scanned(question)
    assert found == scanned or (scanned is None and found is not None and found > SCANNED)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(questions())
def test_the_critical_batch_of_every_operation_is_the_first_of_a_scan(question: Question) -> None:
    batches = np.arange(1, SCANNED + 1, dtype=float)
    for answer, rating in zip(solve_ops(question), question.at(batches).ops, strict=True):
        if rating.compute_s is None or answer.reason.startswith(("moves memory", "sends")):
            assert answer.critical_batch is None
            continue
        spare = np.broadcast_to(rating.compute_s - rating.memory_s, batches.shape)
        enough = np.flatnonzero(spare >= 0)
        scanned = int(batches[enough[0]]) if enough.size else None
        assert answer.critical_batch == scanned or (scanned is None and (answer.critical_batch or 0) > SCANNED)


BLOCK = 1 << 14
FURTHEST = 1 << 18


def first_that_fits(question: Question) -> int | None:
    """The first batch that is compute-bound among all that fit in memory, found by trying every one of them in turn."""
    held, least = question.footprint(), question.layout.attention_dp
    for start in range(1, FURTHEST, BLOCK):
        if not held.fits(max(start, least), question.tokens):
            return None
        batches = np.arange(start, start + BLOCK, dtype=float)
        excess = np.broadcast_to(COMPUTE_BOUND.excess(question.at(batches)), batches.shape)
        enough = np.flatnonzero(excess >= 0)
        if enough.size:
            first = int(batches[enough[0]])
            return first if held.fits(max(first, least), question.tokens) else None
    # More fit than are tried: such a case says nothing, and another is drawn.
    return reject()


def fewest_chips(question: Question, max_chips: int) -> tuple[int | None, int | None, int | None]:
    """Chips to fit, chips that are compute-bound, and the smallest batch there: by trying everything."""
    to_fit = None
    for chips in range(1, max_chips + 1):
        firsts = []
        for layout in legal_layouts(question.model, question.hardware, chips, question.phase):
            laid_out = question.but(layout=layout)
            if laid_out.footprint().fits(layout.attention_dp, question.tokens):
                to_fit = to_fit or chips
                firsts.append(first_that_fits(laid_out))
        found = [first for first in firsts if first is not None]
        if found:
            return to_fit, chips, min(found)
    return to_fit, None, None


@settings(
    max_examples=500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    derandomize=True,
)
@given(questions())
def test_the_fewest_chips_are_those_of_an_exhaustive_search(question: Question) -> None:
    answer = solve_chips(question, COMPUTE_BOUND, max_chips=4)
    assert (answer.minimum_to_fit, answer.minimum_compute_bound, answer.batch) == fewest_chips(question, 4)
