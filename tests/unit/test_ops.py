"""FLOPs and bytes of operations against values worked out by hand, written as the arithmetic that gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.decompose import decompose
from planner.decompose.feedforward import experts_touched
from planner.model import Model
from planner.op import Attention, Axis, Matmul, Op
from planner.precision import SCHEMES, policy
from planner.units import FORMATS
from planner.workload import Phase, Step

BF16_BYTES = 2
GATED = {"kind": "gated", "intermediate_size": 48}


def one_layer(attention: dict[str, Any], ffn: dict[str, Any] | None = None, **fields: Any) -> Model:
    """Return a model of one layer, 16 elements wide, with a vocabulary of 100."""
    layer = {"attention": attention, "ffn": ffn or GATED}
    return Model.model_validate(
        {"name": "one", "hidden_size": 16, "vocab_size": 100, "tie_word_embeddings": False, "layers": [layer], **fields}
    )


def gqa(**fields: Any) -> dict[str, Any]:
    return {"kind": "gqa", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, **fields}


def ops_of(model: Model, step: Step, precision: str = "bf16", kv: str = "bf16") -> dict[str, Op]:
    return {op.name: op for op in decompose(model, step, policy(precision, kv=kv))}


def decode(batch: int, context: int, **more: Any) -> Step:
    return Step(phase=Phase.DECODE, batch=batch, new_tokens=1, context=context, **more)


def prefill(batch: int, new_tokens: int, context: int = 0, **more: Any) -> Step:
    return Step(phase=Phase.PREFILL, batch=batch, new_tokens=new_tokens, context=context, **more)


# ---- matmul ----------------------------------------------------------------------------------------------------------


def matmul(precision: str, **more: Any) -> Matmul:
    """Return five rows of 7 elements by a matrix to 3 heads of 2 and 4 more elements."""
    outer = (Axis("heads", 3, 2), Axis("more", 4))
    inner = Axis("hidden", 7)
    return Matmul(name="m", group="g", rows=5, inner=inner, outer=outer, scheme=SCHEMES[precision], **more)


@pytest.mark.parametrize(
    ("precision", "weight", "activation", "result"),
    [
        ("fp32", 4, 4, 4),
        ("tf32", 4, 4, 4),
        ("bf16", 2, 2, 2),
        ("fp16", 2, 2, 2),
        ("fp8", 1, 1, 2),
        ("int8", 1, 1, 2),
        ("w8a16", 1, 2, 2),
        ("w4a16", (4 + 20 / 128) / 8, 2, 2),
        ("w4a8", (4 + 20 / 128) / 8, 1, 2),
        ("fp8_block", 1 + 4 / 16384, 1 + 4 / 128, 2),
        ("mxfp4_w4a16", 0.5 + 1 / 32, 2, 2),
        ("mxfp4_w4a8", 0.5 + 1 / 32, 1, 2),
        ("nvfp4", 0.5 + 1 / 16, 0.5 + 1 / 16, 2),
    ],
)
def test_matmul(precision: str, weight: float, activation: float, result: float) -> None:
    op = matmul(precision)
    assert op.flops == 2 * 5 * 7 * 10
    assert op.weight_bytes == pytest.approx(7 * 10 * weight)
    assert op.activation_bytes == pytest.approx(5 * 7 * activation + 5 * 10 * result)
    assert op.kv_bytes == 0
    assert op.memory_bytes == op.weight_bytes + op.activation_bytes


def test_a_multiply_add_is_two_flops() -> None:
    assert matmul("bf16").flops == 2 * (5 * 7 * 10)


def test_copies_are_all_read_unless_it_is_said_how_many() -> None:
    experts = Axis("experts", 6)
    assert matmul("bf16", copies=experts).weight_bytes == 6 * 7 * 10 * BF16_BYTES
    assert matmul("bf16", copies=experts, touched=2.5).weight_bytes == 2.5 * 7 * 10 * BF16_BYTES
    assert matmul("bf16", copies=experts, touched=2.5).flops == 2 * 5 * 7 * 10


def test_counts_of_whole_numbers_are_exact_whatever_their_size() -> None:
    wide = Axis("wide", 10**9)
    op = Matmul(name="m", group="g", rows=10**9, inner=wide, outer=(wide,), scheme=SCHEMES["bf16"])
    assert op.flops == 2 * 10**27


def test_matmuls_of_a_dense_layer() -> None:
    ops = ops_of(one_layer(gqa()), prefill(batch=3, new_tokens=5))
    tokens = 3 * 5
    # 4 query heads and 2 heads each of keys and values, of 8 elements: 64 columns.
    assert ops["qkv_proj"].flops == 2 * tokens * 16 * (4 + 2 * 2) * 8
    assert ops["o_proj"].flops == 2 * tokens * (4 * 8) * 16
    assert ops["gate_up_proj"].flops == 2 * tokens * 16 * (2 * 48)
    assert ops["down_proj"].flops == 2 * tokens * 48 * 16
    # Logits of the last token of each sequence.
    assert ops["lm_head"].flops == 2 * 3 * 16 * 100
    assert ops["lm_head"].weight_bytes == 16 * 100 * BF16_BYTES
    # A look-up reads one row for each token and writes it.
    assert ops["embed_tokens"].memory_bytes == 2 * tokens * 16 * BF16_BYTES
    assert ops["embed_tokens"].flops == 0


def test_logits_of_all_tokens_on_request() -> None:
    ops = ops_of(one_layer(gqa()), prefill(batch=3, new_tokens=5, logits="all"))
    assert ops["lm_head"].flops == 2 * (3 * 5) * 16 * 100


def test_a_plain_network_has_no_gate() -> None:
    ops = ops_of(one_layer(gqa(), {"kind": "plain", "intermediate_size": 48}), decode(batch=3, context=5))
    assert ops["up_proj"].flops == 2 * 3 * 16 * 48
    assert ops["activation"].activation_bytes == 3 * (48 + 48) * BF16_BYTES


def test_norms_are_memory_traffic() -> None:
    """A norm with the residual add before it reads both summands and writes sum and result, and reads its weights."""
    ops = ops_of(one_layer(gqa()), decode(batch=3, context=5))
    assert ops["input_norm"].activation_bytes == 3 * (2 + 2) * 16 * BF16_BYTES
    assert ops["input_norm"].weight_bytes == 16 * BF16_BYTES
    assert ops["input_norm"].flops == 0


def test_an_operation_of_several_layers_stands_once() -> None:
    layer = {"repeat": 7, "attention": gqa(), "ffn": GATED}
    ops = ops_of(one_layer(gqa(), layers=[layer]), decode(batch=1, context=5))
    assert (ops["qkv_proj"].count, ops["qkv_proj"].layers) == (7, 7)
    assert (ops["lm_head"].count, ops["lm_head"].layers) == (1, 1)


# ---- attention -------------------------------------------------------------------------------------------------------

SPANS: dict[str, dict[str, Any]] = {
    "full": {},
    "sliding": {"sliding_window": 4},
    "chunked": {"attention_chunk_size": 4},
}


def attention(fields: dict[str, Any], step: Step, kv: str = "bf16") -> Attention:
    op = ops_of(one_layer(gqa(**fields)), step, kv=kv)["attention"]
    assert isinstance(op, Attention)
    return op


@pytest.mark.parametrize(
    ("span", "step", "pairs", "read"),
    [
        # One token after 9: it sees 10, the 4 of its window, or positions 9 and 10 of the chunk 9-12.
        ("full", decode(2, 9), 10, 9),
        ("sliding", decode(2, 9), 4, 3),
        ("chunked", decode(2, 9), 2, 1),
        # The first token of a chunk sees itself alone.
        ("chunked", decode(2, 8), 1, 0),
        ("full", decode(2, 0), 1, 0),
        ("sliding", decode(2, 2), 3, 2),
        # A prompt of 6: 1 + 2 + 3 + 4 + 5 + 6, at most 4 of them, or 1 + 2 + 3 + 4 and 1 + 2.
        ("full", prefill(2, 6), 1 + 2 + 3 + 4 + 5 + 6, 0),
        ("sliding", prefill(2, 6), 1 + 2 + 3 + 4 + 4 + 4, 0),
        ("chunked", prefill(2, 6), 1 + 2 + 3 + 4 + 1 + 2, 0),
        # Three tokens after 5, positions 6, 7 and 8.
        ("full", prefill(2, 3, context=5), 6 + 7 + 8, 5),
        ("sliding", prefill(2, 3, context=5), 4 + 4 + 4, 3),
        ("chunked", prefill(2, 3, context=5), 2 + 3 + 4, 1),
        # The full mask: every query over all positions, or over its window.
        ("full", prefill(2, 6, mask="full"), 6 * 6, 0),
        ("full", prefill(2, 3, context=5, mask="full"), 3 * 8, 5),
        ("sliding", prefill(2, 6, mask="full"), 6 * 4, 0),
        ("chunked", prefill(2, 6, mask="full"), 6 * 4, 0),
        ("sliding", prefill(2, 3, mask="full"), 3 * 3, 0),
    ],
)
def test_attention(span: str, step: Step, pairs: int, read: int) -> None:
    """4 query heads and 2 KV heads of 8 elements; two sequences."""
    op, new = attention(SPANS[span], step), step.new_tokens
    # Scores and weighted sum: a multiply-add for each element of a key, and of a value.
    assert op.flops == 2 * 4 * (8 + 8) * 2 * pairs
    # Keys and values of the cache are read, those of the new tokens written.
    assert op.kv_bytes == 2 * (read + new) * 2 * (8 + 8) * BF16_BYTES
    # Queries and results of 4 heads, and the new keys and values of 2 heads, which come from activations.
    assert op.activation_bytes == 2 * new * (4 * (8 + 8) + 2 * (8 + 8)) * BF16_BYTES
    assert op.weight_bytes == 0


def test_a_decode_step_with_context_s_attends_to_s_plus_1() -> None:
    """Austin et al., How to Scale Your Model, chapter 4: 4 B S N H FLOPs."""
    assert attention({}, decode(batch=3, context=99)).flops == 4 * 3 * 100 * 4 * 8


def test_the_causal_mask_halves_a_long_prompt() -> None:
    full = attention({}, prefill(1, 10**6, mask="full")).flops
    assert attention({}, prefill(1, 10**6)).flops / full == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize(("kv", "size"), [("bf16", 2), ("fp8", 1), ("int8", 1), ("int4", 0.51953125), ("fp4", 0.5625)])
def test_the_cache_has_its_own_format(kv: str, size: float) -> None:
    op = attention({}, decode(batch=2, context=9), kv=kv)
    assert op.kv_bytes == 2 * (9 + 1) * 2 * (8 + 8) * size
    assert op.activation_bytes == 2 * (4 * 16 + 2 * 16) * BF16_BYTES
    assert FORMATS[kv].bytes_per_element == size


@pytest.mark.parametrize(("kv_heads", "intensity"), [(32, 1), (8, 4), (1, 32)])
def test_intensity_of_long_decode_is_the_query_heads_of_a_kv_head(kv_heads: int, intensity: float) -> None:
    """Per cached token: 4 N H FLOPs over 2 K H elements of 2 bytes, N / K (MHA 1, GQA the group)."""
    fields = {"num_attention_heads": 32, "num_key_value_heads": kv_heads}
    op = attention(fields, decode(batch=3, context=10**7))
    assert op.flops / op.memory_bytes == pytest.approx(intensity, rel=1e-4)


# ---- latent attention ------------------------------------------------------------------------------------------------

MLA = {
    "kind": "mla",
    "num_attention_heads": 4,
    "q_lora_rank": 6,
    "kv_lora_rank": 8,
    "qk_nope_head_dim": 5,
    "qk_rope_head_dim": 3,
    "v_head_dim": 7,
}


def test_latent_projections() -> None:
    ops = ops_of(one_layer(MLA), decode(batch=2, context=9))
    assert ops["q_a_proj"].flops == 2 * 2 * 16 * 6
    assert ops["q_b_proj"].flops == 2 * 2 * 6 * 4 * (5 + 3)
    assert ops["kv_a_proj"].flops == 2 * 2 * 16 * (8 + 3)
    assert ops["o_proj"].flops == 2 * 2 * (4 * 7) * 16


def test_latent_attention_absorbed() -> None:
    """DeepSeek-V2 (arXiv 2405.04434), section 2.1.2: queries go into the compressed space, results come out of it."""
    ops = ops_of(one_layer(MLA), decode(batch=2, context=9, mla="absorbed"))
    rows = 2 * 4  # each head of each token
    keys, values, core = ops["kv_b_proj.keys"], ops["kv_b_proj.values"], ops["attention"]
    assert keys.flops == 2 * rows * 5 * 8
    assert keys.weight_bytes == 4 * 5 * 8 * BF16_BYTES
    assert keys.activation_bytes == rows * (5 + 8) * BF16_BYTES
    assert values.flops == 2 * rows * 8 * 7
    assert values.weight_bytes == 4 * 8 * 7 * BF16_BYTES
    # Against 8 compressed and 3 rotary elements, and a sum over the 8.
    assert core.flops == 2 * 4 * ((8 + 3) + 8) * 2 * 10
    assert core.kv_bytes == 2 * (9 + 1) * (8 + 3) * BF16_BYTES
    assert core.activation_bytes == 2 * (4 * ((8 + 3) + 8) + (8 + 3)) * BF16_BYTES
    assert "kv_b_proj" not in ops


def test_latent_attention_expanded() -> None:
    ops = ops_of(one_layer(MLA), prefill(batch=2, new_tokens=3, context=9, mla="expanded"))
    up, core = ops["kv_b_proj"], ops["attention"]
    positions = 2 * (9 + 3)  # cached tokens are expanded again
    assert up.flops == 2 * positions * 8 * 4 * (5 + 7)
    assert up.weight_bytes == 8 * 4 * (5 + 7) * BF16_BYTES
    assert core.flops == 2 * 4 * ((5 + 3) + 7) * 2 * (10 + 11 + 12)
    assert core.kv_bytes == 2 * (9 + 3) * (8 + 3) * BF16_BYTES
    # Queries and results of 6 new tokens, and the expanded keys and values of all positions.
    assert core.activation_bytes == (6 * 4 * (8 + 7) + positions * 4 * (8 + 7)) * BF16_BYTES


def total_flops(model: Model, step: Step) -> float:
    return sum(op.count * op.flops for op in decompose(model, step, policy("bf16")))


@pytest.mark.parametrize("context", [0, 1, 9, 1000])
@pytest.mark.parametrize("new_tokens", [1, 2, 3, 5, 8, 13, 100, 1000])
def test_the_form_with_fewer_flops_is_taken(new_tokens: int, context: int) -> None:
    forms = {
        form: total_flops(one_layer(MLA), prefill(batch=2, new_tokens=new_tokens, context=context, mla=form))
        for form in ("auto", "absorbed", "expanded")
    }
    assert forms["auto"] == min(forms["absorbed"], forms["expanded"])


def test_decode_is_absorbed_and_a_prompt_expanded() -> None:
    names = ops_of(one_layer(MLA), decode(batch=2, context=1000))
    assert "kv_b_proj.keys" in names
    names = ops_of(one_layer(MLA), prefill(batch=2, new_tokens=1000))
    assert "kv_b_proj" in names


# ---- experts ---------------------------------------------------------------------------------------------------------

MOE = {"kind": "moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 12}


def test_experts() -> None:
    """Three tokens, two experts of eight each: 8 (1 - (3/4)^3) = 4.625 experts are read in expectation."""
    ops = ops_of(one_layer(gqa(), {**MOE, "shared_intermediate_size": 20}), decode(batch=3, context=5))
    touched = 8 * (1 - 0.75**3)
    assert touched == 4.625
    assert ops["router"].flops == 2 * 3 * 16 * 8
    assert ops["experts.gate_up_proj"].flops == 2 * (3 * 2) * 16 * (2 * 12)
    assert ops["experts.gate_up_proj"].weight_bytes == touched * 16 * (2 * 12) * BF16_BYTES
    assert ops["experts.gate_up_proj"].activation_bytes == (3 * 2) * (16 + 2 * 12) * BF16_BYTES
    assert ops["experts.down_proj"].flops == 2 * (3 * 2) * 12 * 16
    assert ops["experts.down_proj"].weight_bytes == touched * 12 * 16 * BF16_BYTES
    assert ops["shared_experts.gate_up_proj"].flops == 2 * 3 * 16 * (2 * 20)
    assert ops["shared_experts.down_proj"].weight_bytes == 20 * 16 * BF16_BYTES
    # Two experts' results and the shared ones' are read, their sum is written.
    assert ops["experts.combine"].activation_bytes == 3 * (2 + 1 + 1) * 16 * BF16_BYTES


def test_the_router_stays_in_16_bits_under_a_quantised_policy() -> None:
    ops = ops_of(one_layer(gqa(), MOE), decode(batch=3, context=5), precision="int8")
    assert ops["router"].weight_bytes == 16 * 8 * BF16_BYTES
    assert ops["lm_head"].weight_bytes == 16 * 100 * BF16_BYTES
    assert ops["experts.down_proj"].weight_bytes == 4.625 * 12 * 16 * 1
    assert ops["qkv_proj"].weight_bytes == 16 * 64 * 1


@pytest.mark.parametrize(
    ("experts", "chosen", "tokens", "held"), [(8, 2, 1, 8), (8, 2, 5, 8), (64, 6, 32, 16), (16, 1, 40, 4)]
)
def test_experts_touched_as_in_a_trial(experts: int, chosen: int, tokens: int, held: int) -> None:
    """Uniform routing, drawn 4,000 times: the mean is within four standard errors."""
    draws = np.random.default_rng(20240229).random((4000, tokens, experts)).argsort(axis=2)[:, :, :chosen]
    hit = np.zeros((4000, experts), dtype=bool)
    hit[np.arange(4000)[:, None], draws.reshape(4000, -1)] = True
    counts = hit[:, :held].sum(axis=1)
    error = max(float(counts.std()) / 4000**0.5, 1e-12)
    assert abs(experts_touched(experts, chosen, tokens, held) - counts.mean()) <= 4 * error


@pytest.mark.parametrize(
    ("experts", "chosen", "tokens", "held", "expected"),
    [(8, 2, 1, None, 2), (8, 2, 2, None, 3.5), (8, 2, 3, None, 4.625), (8, 8, 1, None, 8), (8, 2, 3, 4, 2.3125)],
)
def test_experts_touched_by_hand(experts: int, chosen: int, tokens: int, held: int | None, expected: float) -> None:
    assert experts_touched(experts, chosen, tokens, held) == expected
