"""FLOPs and bytes of operations, against masks that are written out and products that are multiplied by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from planner.decompose import decompose
from planner.decompose.feedforward import experts_touched
from planner.model import FeedForward, LatentAttention, LayerGroup, MixtureOfExperts, Model, SoftmaxAttention
from planner.op import Attention, Axis, ChunkedSpan, Elementwise, FullSpan, Lookup, Matmul, Op, SlidingSpan, Span
from planner.precision import SCHEMES, policy
from planner.units import FORMATS
from planner.workload import Phase, Step

# ---- matmul ----------------------------------------------------------------------------------------------------------


def matmul(**changes: Any) -> Matmul:
    fields: dict[str, Any] = {
        "name": "x",
        "group": "g",
        "rows": 3,
        "inner": Axis("hidden", 5),
        "outer": (Axis("ffn", 7),),
        "scheme": SCHEMES["bf16"],
    }
    return Matmul(**fields | changes)


def test_matmul_counts_every_multiply_add_twice() -> None:
    multiplied = sum(2 for _ in itertools.product(range(3), range(5), range(7)))
    assert matmul().flops == multiplied == 210
    assert isinstance(matmul().flops, int)


@pytest.mark.parametrize(
    ("scheme", "weights", "activations"),
    [
        ("fp32", 4 * 35, 4 * 15 + 4 * 21),
        ("bf16", 2 * 35, 2 * 15 + 2 * 21),
        ("int8", 35, 15 + 2 * 21),  # results are 16 bits wide again
        ("w8a16", 35, 2 * 15 + 2 * 21),
        ("fp8", 35, 15 + 2 * 21),
        # AWQ: 4 bits and, for 128 of them, a 16-bit scale and a 4-bit zero-point.
        ("w4a16", 35 * (4 + 20 / 128) / 8, 2 * 15 + 2 * 21),
        # NVFP4: 4 bits and, for 16 of them, an 8-bit scale, on both sides.
        ("nvfp4", 35 * 0.5625, 15 * 0.5625 + 2 * 21),
        # MXFP4: 4 bits and, for 32 of them, an 8-bit exponent.
        ("mxfp4_w4a16", 35 * 0.53125, 2 * 15 + 2 * 21),
        # DeepSeek-V3: an fp32 scale for 128 x 128 weights, and for 128 activations.
        ("fp8_block", 35 * (1 + 4 / 128**2), 15 * (1 + 4 / 128) + 2 * 21),
    ],
)
def test_matmul_moves_each_operand_once_in_its_format(scheme: str, weights: float, activations: float) -> None:
    op = matmul(scheme=SCHEMES[scheme])
    assert op.weight_bytes == pytest.approx(weights, rel=1e-12)
    assert op.activation_bytes == pytest.approx(activations, rel=1e-12)
    assert op.memory_bytes == pytest.approx(weights + activations, rel=1e-12)
    assert op.kv_bytes == 0


def test_fused_projections_read_their_input_once() -> None:
    fused = matmul(outer=(Axis("q", 7), Axis("k", 2)))
    apart = [matmul(outer=(Axis("q", 7),)), matmul(outer=(Axis("k", 2),))]
    assert fused.flops == sum(op.flops for op in apart)
    assert fused.weight_bytes == sum(op.weight_bytes for op in apart)
    assert fused.activation_bytes == sum(op.activation_bytes for op in apart) - 2 * 3 * 5


def test_of_several_matrices_only_those_touched_are_read() -> None:
    experts = matmul(copies=Axis("experts", 8), touched=3)
    assert experts.weight_bytes == 3 * 2 * 35
    assert experts.flops == matmul().flops
    assert matmul(copies=Axis("experts", 8)).weight_bytes == 8 * 2 * 35


# ---- attention -------------------------------------------------------------------------------------------------------


def allowed(span: Span, query: int, key: int) -> bool:
    """Whether a causal query sees a key, by the mask's definition; positions count from 0."""
    if key > query:
        return False
    if isinstance(span, SlidingSpan):
        return query - key < span.window
    if isinstance(span, ChunkedSpan):
        return query // span.chunk == key // span.chunk
    return True


SPANS = [FullSpan(), *(SlidingSpan(w) for w in (1, 3, 4, 100)), *(ChunkedSpan(c) for c in (1, 3, 4, 100))]
STEPS = [(1, 0), (1, 1), (1, 9), (4, 0), (9, 0), (3, 5), (4, 4), (5, 3)]


@pytest.mark.parametrize("span", SPANS, ids=str)
@pytest.mark.parametrize(("new", "context"), STEPS)
def test_causal_pairs_are_those_of_the_mask(span: Span, new: int, context: int) -> None:
    queries = range(context, context + new)
    counted = sum(allowed(span, query, key) for query in queries for key in range(context + new))
    assert span.pairs(new, context, causal=True) == counted


@pytest.mark.parametrize("span", SPANS, ids=str)
@pytest.mark.parametrize(("new", "context"), STEPS)
def test_keys_read_from_the_cache_are_those_that_the_first_query_sees(span: Span, new: int, context: int) -> None:
    del new
    assert span.past(context) == sum(allowed(span, context, key) for key in range(context))


@pytest.mark.parametrize("span", SPANS, ids=str)
def test_a_full_mask_counts_each_query_over_its_window(span: Span) -> None:
    width = {FullSpan: 12, SlidingSpan: getattr(span, "window", 0), ChunkedSpan: getattr(span, "chunk", 0)}[type(span)]
    assert span.pairs(4, 8, causal=False) == 4 * min(width, 12)


@pytest.mark.parametrize("span", SPANS, ids=str)
def test_spans_take_arrays(span: Span) -> None:
    new, context = np.array([[1.0], [4.0], [9.0]]), np.array([0.0, 3.0, 8.0])
    for causal in (True, False):
        found = np.broadcast_to(span.pairs(new, context, causal=causal), (3, 3))
        expected = [[span.pairs(int(n), int(c), causal=causal) for c in context] for n in new[:, 0]]
        np.testing.assert_array_equal(found, expected)


HEADS, KV_HEADS, DIM, VALUE_DIM = 4, 2, 3, 5


def attention_model(**changes: Any) -> Model:
    shape = {"num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": DIM, "v_head_dim": VALUE_DIM}
    block = SoftmaxAttention(kind="gqa", **shape | changes)
    return one_layer(LayerGroup(attention=block))


def one_layer(layer: LayerGroup, hidden: int = 6) -> Model:
    return Model(name="t", hidden_size=hidden, vocab_size=10, tie_word_embeddings=True, layers=(layer,))


def ops_of(model: Model, kind: type[Op], step: Step, precision: str = "bf16", kv: str = "bf16") -> dict[str, Any]:
    return {op.name: op for op in decompose(model, step, policy(precision, kv=kv)) if isinstance(op, kind)}


@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("kv", ["bf16", "fp8"])
@pytest.mark.parametrize(
    ("batch", "new", "context"), [(1, 6, 0), (2, 3, 5), (3, 1, 8)], ids=["prefill", "chunk of a prefill", "decode"]
)
def test_attention_in_prefill_chunk_and_decode(batch: int, new: int, context: int, kv: str, window: int | None) -> None:
    step = Step(phase=Phase.PREFILL, batch=batch, new_tokens=new, context=context)
    op = ops_of(attention_model(sliding_window=window), Attention, step, kv=kv)["attention"]
    span = SlidingSpan(window) if window else FullSpan()
    pairs = sum(allowed(span, q, k) for q in range(context, context + new) for k in range(context + new))
    read = sum(allowed(span, context, k) for k in range(context))

    # Each pair and query head: a dot product of DIM elements, and VALUE_DIM elements added up.
    assert op.flops == batch * pairs * HEADS * (2 * DIM + 2 * VALUE_DIM)
    # Cached keys and values are read, new ones written.
    width = KV_HEADS * (DIM + VALUE_DIM)
    assert op.kv_bytes == batch * (read + new) * width * FORMATS[kv].bytes_per_element
    # Queries in and results out of every head, and new keys and values in.
    assert op.activation_bytes == 2 * batch * new * (HEADS * (DIM + VALUE_DIM) + width)
    assert op.weight_bytes == 0


def test_decode_intensity_is_about_the_query_heads_that_share_a_kv_head() -> None:
    wide = attention_model(num_attention_heads=32, num_key_value_heads=4, head_dim=128, v_head_dim=128)
    for batch in (1, 64):
        step = Step(phase=Phase.DECODE, batch=batch, context=100_000)
        op = ops_of(wide, Attention, step)["attention"]
        assert op.flops / op.memory_bytes == pytest.approx(8, rel=1e-3)


# ---- latent attention ------------------------------------------------------------------------------------------------

RANK, ROPE, NOPE, VALUE, LATENT_HEADS = 6, 2, 3, 5, 4


def latent_model() -> Model:
    block = LatentAttention(
        kind="mla",
        num_attention_heads=LATENT_HEADS,
        kv_lora_rank=RANK,
        qk_rope_head_dim=ROPE,
        qk_nope_head_dim=NOPE,
        v_head_dim=VALUE,
    )
    return one_layer(LayerGroup(attention=block), hidden=8)


def test_absorbed_latent_attention_attends_to_compressed_vectors() -> None:
    step = Step(phase=Phase.DECODE, batch=2, context=10, mla="absorbed")
    core = ops_of(latent_model(), Attention, step)["attention"]
    pairs = 2 * 11
    assert core.flops == pairs * LATENT_HEADS * 2 * ((RANK + ROPE) + RANK)
    assert core.kv_bytes == 2 * 2 * (10 + 1) * (RANK + ROPE)
    ups = ops_of(latent_model(), Matmul, step)
    assert ups["kv_b_proj.keys"].flops == 2 * 2 * LATENT_HEADS * NOPE * RANK
    assert ups["kv_b_proj.values"].flops == 2 * 2 * LATENT_HEADS * RANK * VALUE
    assert ups["kv_b_proj.keys"].weight_bytes == 2 * LATENT_HEADS * NOPE * RANK


def test_expanded_latent_attention_expands_the_cache_too() -> None:
    step = Step(phase=Phase.PREFILL, batch=2, new_tokens=3, context=4, mla="expanded")
    core = ops_of(latent_model(), Attention, step)["attention"]
    pairs = 2 * (5 + 6 + 7)
    assert core.flops == pairs * LATENT_HEADS * 2 * ((NOPE + ROPE) + VALUE)
    up = ops_of(latent_model(), Matmul, step)["kv_b_proj"]
    assert up.flops == 2 * (2 * (4 + 3)) * RANK * LATENT_HEADS * (NOPE + VALUE)


@pytest.mark.parametrize(("new", "context", "form"), [(1, 4096, "absorbed"), (4096, 0, "expanded")])
def test_latent_attention_takes_the_form_with_fewer_flops(new: int, context: int, form: str) -> None:
    def flops(mla: Any) -> float:
        step = Step(phase=Phase.PREFILL, new_tokens=new, context=context, mla=mla)
        return sum(float(op.flops) for op in decompose(latent_model(), step, policy("bf16")))

    both = {mla: flops(mla) for mla in ("absorbed", "expanded")}
    assert min(both, key=lambda mla: both[mla]) == form
    assert flops("auto") == both[form]


# ---- experts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("experts", "chosen", "tokens"), [(4, 1, 3), (4, 2, 2), (5, 3, 2), (6, 6, 1)])
def test_experts_touched_is_the_mean_over_every_routing(experts: int, chosen: int, tokens: int) -> None:
    choices = list(itertools.combinations(range(experts), chosen))
    touched = [len(set(itertools.chain(*routing))) for routing in itertools.product(choices, repeat=tokens)]
    assert experts_touched(experts, chosen, tokens) == pytest.approx(sum(touched) / len(touched), rel=1e-12)


def test_experts_held_by_a_chip_are_touched_in_proportion() -> None:
    assert experts_touched(256, 8, 16, held=32) == pytest.approx(experts_touched(256, 8, 16) / 8)
    np.testing.assert_allclose(experts_touched(256, 8, np.array([1.0, 1e9])), [8, 256])


def test_experts_read_those_touched_and_compute_those_chosen() -> None:
    ffn = MixtureOfExperts(
        kind="moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=3, shared_intermediate_size=5
    )
    step = Step(phase=Phase.DECODE, batch=2, context=0)
    ops = ops_of(one_layer(LayerGroup(ffn=ffn)), Matmul, step)
    into, out = ops["experts.gate_up_proj"], ops["experts.down_proj"]
    touched = 4 * (1 - 0.5**2)
    assert into.flops == 2 * (2 * 2) * 6 * (2 * 3)
    assert out.flops == 2 * (2 * 2) * 3 * 6
    assert into.weight_bytes == pytest.approx(2 * touched * 6 * 6)
    assert out.weight_bytes == pytest.approx(2 * touched * 3 * 6)
    assert ops["router"].flops == 2 * 2 * 6 * 4
    assert ops["shared_experts.gate_up_proj"].flops == 2 * 2 * 6 * (2 * 5)


def test_one_expert_that_every_token_passes_is_a_dense_network() -> None:
    step = Step(phase=Phase.DECODE, batch=5, context=0)
    single = MixtureOfExperts(kind="moe", num_experts=1, num_experts_per_tok=1, moe_intermediate_size=3)
    moe = ops_of(one_layer(LayerGroup(ffn=single)), Matmul, step)
    dense = ops_of(one_layer(LayerGroup(ffn=FeedForward(kind="gated", intermediate_size=3))), Matmul, step)
    for name in ("gate_up_proj", "down_proj"):
        assert moe[f"experts.{name}"].flops == dense[name].flops
        assert moe[f"experts.{name}"].memory_bytes == dense[name].memory_bytes


# ---- what is all traffic ---------------------------------------------------------------------------------------------


def test_norm_reads_and_writes_the_hidden_width_and_the_residual() -> None:
    step = Step(phase=Phase.DECODE, batch=3, context=0)
    norm = ops_of(attention_model(), Elementwise, step)["input_norm"]
    assert norm.activation_bytes == 2 * 3 * (2 * 6 + 2 * 6)
    assert norm.weight_bytes == 2 * 6
    assert norm.flops == 0


def test_lookup_reads_one_row_for_each_token() -> None:
    step = Step(phase=Phase.PREFILL, batch=2, new_tokens=4)
    found = ops_of(attention_model(), Lookup, step)["embed_tokens"]
    assert found.memory_bytes == 2 * 2 * 4 * 6 * 2


@pytest.mark.parametrize(("logits", "rows"), [("last", 2), ("all", 8)])
def test_logits_of_the_last_token_or_of_all(logits: Any, rows: int) -> None:
    step = Step(phase=Phase.PREFILL, batch=2, new_tokens=4, logits=logits)
    assert ops_of(attention_model(), Matmul, step)["lm_head"].flops == 2 * rows * 6 * 10


@pytest.mark.parametrize("count", [1, 3])
def test_a_row_stands_for_all_layers_of_its_kind(count: int) -> None:
    layer = LayerGroup(ffn=FeedForward(kind="plain", intermediate_size=3), repeat=count)
    op = ops_of(one_layer(layer), Matmul, Step(phase=Phase.DECODE))["up_proj"]
    assert (op.layers, op.count) == (count, count)
    assert op.flops == 2 * 6 * 3


@pytest.mark.parametrize("precision", ["bf16", "int8", "nvfp4"])
def test_counts_of_whole_numbers_stay_exact(precision: str) -> None:
    """A step of a trillion-parameter model has more FLOPs than a float can count one by one."""
    wide = one_layer(LayerGroup(ffn=FeedForward(kind="gated", intermediate_size=999_999_937)), hidden=999_999_893)
    op = ops_of(wide, Matmul, Step(phase=Phase.DECODE, batch=999_999_929, context=0), precision)["down_proj"]
    assert op.flops == 2 * 999_999_937 * 999_999_893 * 999_999_929
