"""Memory of a chip by part, worked by hand, and what would make a step fit."""

import pytest
from descriptions import chip, dense, engine, experts, latent

from planner.memory import largest, memory_plan, sequence_bytes, stage_weight_bytes, weight_bytes
from planner.parallel import Layout, stages
from planner.precision import Role, policy
from planner.units import FORMATS

BF16 = policy("bf16")


def plan_of(model=None, layout=None, batch=8, context=100, capacity=80e9, **rules):
    return memory_plan(
        model or dense(),
        chip(capacity=capacity),
        BF16,
        layout or Layout(),
        batch=batch,
        context=context,
        engine=engine(**rules),
    )


def test_one_chip_holds_all_weights_and_the_whole_cache() -> None:
    plan = plan_of()
    assert plan.weights_bytes == sum(weight_bytes(dense(), BF16).values())
    assert plan.kv_bytes == 8 * sequence_bytes(dense(), 100, FORMATS["bf16"]) == 8 * 100 * 4 * 2 * 4 * 32 * 2
    assert plan.communication_bytes == 0
    assert plan.reserve_bytes == 1


def test_tensor_parallelism_divides_weights_and_kv_heads() -> None:
    whole, cut = plan_of(), plan_of(layout=Layout(tp=4))
    norms = (4 * 2 + 1) * 256 * 2
    assert cut.weights_bytes - norms == (whole.weights_bytes - norms) / 4
    assert cut.kv_bytes == whole.kv_bytes / 4
    # 16 chips share 4 heads: each is kept four times.
    assert plan_of(layout=Layout(tp=16)).kv_bytes == whole.kv_bytes / 4


def test_latent_cache_is_not_divided() -> None:
    assert plan_of(latent(), Layout(tp=4)).kv_bytes == plan_of(latent()).kv_bytes


def test_attention_dp_divides_sequences_and_routed_experts_alone() -> None:
    layout = Layout(attention_dp=4, ep=4)
    stage = stages(experts(), 1)[0]
    whole, cut = weight_bytes(experts(), BF16), stage_weight_bytes(experts(), BF16, layout, stage)
    assert cut[Role.EXPERTS] == whole[Role.EXPERTS] / 4
    assert {role: size for role, size in cut.items() if role is not Role.EXPERTS} == {
        role: size for role, size in whole.items() if role is not Role.EXPERTS
    }
    assert plan_of(experts(), layout, batch=9).kv_bytes == plan_of(experts(), batch=3).kv_bytes


def test_stages_hold_their_layers_and_a_tied_head_twice() -> None:
    tied = dense(tie_word_embeddings=True)
    first, last = (stage_weight_bytes(tied, BF16, Layout(pp=2), stage) for stage in stages(tied, 2))
    assert first[Role.EMBEDDING] == last[Role.EMBEDDING] == 1024 * 256 * 2
    assert first[Role.FFN] == last[Role.FFN] == sum(weight_bytes(tied, BF16)[role] for role in [Role.FFN]) / 2


def test_cache_is_kept_in_whole_pages() -> None:
    assert plan_of(context=100, page=16).kv_bytes == plan_of(context=112).kv_bytes


def test_engine_leaves_a_share_of_all_or_of_what_is_free() -> None:
    assert plan_of(fraction=0.9).reserve_bytes == pytest.approx(8e9 + 1)
    free = plan_of(fraction=0.9, of="free")
    beside = 80e9 - free.weights_bytes - 1 - free.activation_bytes
    assert free.reserve_bytes == pytest.approx(0.1 * beside + 1)


def test_largest_activations_are_those_of_the_widest_operation() -> None:
    """800 tokens in chunks of 256: residual of 256, and reads 1,024 to write 512 elements, of 2 bytes."""
    assert plan_of().activation_bytes == 256 * 2 * (256 + 1024 + 512)


def test_buffers_hold_the_largest_message_twice() -> None:
    """A chunk of 256 tokens of 256 elements of 2 bytes."""
    assert plan_of(layout=Layout(tp=4)).communication_bytes == 2 * 256 * 256 * 2


def test_advice_is_true() -> None:
    small = plan_of(batch=1000, context=1000, capacity=1e9)
    assert not small.fits
    assert small.max_batch is not None
    assert plan_of(batch=small.max_batch, context=1000, capacity=1e9).fits
    assert plan_of(batch=1000, context=small.max_context, capacity=1e9).fits
    assert small.advice[0] == f"a batch of at most {small.max_batch}"
    chips = next(line for line in small.advice if "chips" in line)
    assert chips == "8 chips (tp 2, pp 4)" or plan_of(batch=1000, context=1000, capacity=1e9, layout=Layout(tp=4)).fits


def test_nothing_fits_where_weights_do_not() -> None:
    tiny = plan_of(capacity=1e6)
    assert (tiny.max_batch, tiny.max_context) == (0, 0)
    assert "narrower weights" in tiny.advice


def test_largest_finds_the_edge() -> None:
    assert [largest(lambda n, edge=edge: n <= edge) for edge in (0, 1, 2, 3, 1000, 10**12)] == [0, 1, 2, 3, 1000, 10**9]
