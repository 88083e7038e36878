"""What each way of splitting leaves on a chip, and the collectives that it forces."""

from collections.abc import Sequence

import numpy as np
import pytest
from descriptions import chip, dense, experts, latent

from planner.errors import InputError
from planner.model import Model
from planner.op import Attention, Collective, Group, Matmul, Op, Operation, WeightedSum
from planner.parallel import (
    Layout,
    check_layout,
    experts_per_chip,
    layout_notes,
    legal_layouts,
    pipeline,
    ranks_reached,
    shard_stage,
    stages,
)
from planner.precision import policy
from planner.step import rate_step
from planner.workload import Phase, Step

BF16 = policy("bf16")
DECODE = Step(phase=Phase.DECODE, batch=32, context=128)
PREFILL = Step(phase=Phase.PREFILL, batch=2, new_tokens=64)


def on_chip(model: Model, layout: Layout, step: Step = DECODE, stage: int = 0) -> tuple[Op, ...]:
    return shard_stage(model, BF16, layout, stages(model, layout.pp)[stage], pipeline(step, layout))


def named(ops: Sequence[Op], name: str) -> Op:
    return next(op for op in ops if op.name == name)


def collectives(ops: Sequence[Op]) -> dict[str, Collective]:
    return {op.name: op for op in ops if isinstance(op, Collective)}


def test_tensor_parallelism_cuts_heads_ffn_and_vocabulary() -> None:
    ops = on_chip(dense(), Layout(tp=4))
    qkv, down, head = (named(ops, name) for name in ("qkv_proj", "down_proj", "lm_head"))
    assert isinstance(qkv, Matmul)
    assert [(axis.name, axis.size) for axis in qkv.outer] == [("query_heads", 4), ("kv_heads", 1)]
    assert isinstance(down, Matmul)
    assert (down.inner.elements, down.outer_elements) == (128, 256)
    assert isinstance(head, Matmul)
    assert head.outer_elements == 256
    core = named(ops, "attention")
    assert isinstance(core, Attention)
    assert (core.query_heads.size, core.cache_heads.size) == (4, 1)


def test_contracted_axes_force_sums_before_the_next_norm() -> None:
    ops = on_chip(dense(), Layout(tp=4))
    names = [op.name for op in ops]
    assert names.index("o_proj.all_reduce") == names.index("post_attention_norm") - 1
    assert names.index("down_proj.all_reduce") == names.index("final_norm") - 1
    found = collectives(ops)
    assert set(found) == {
        "embed_tokens.all_reduce",
        "o_proj.all_reduce",
        "down_proj.all_reduce",
        "lm_head.all_gather",
    }
    assert found["o_proj.all_reduce"].size_bytes == 32 * 256 * 2
    assert found["o_proj.all_reduce"].count == 4
    assert found["lm_head.all_gather"].size_bytes == 32 * 1024 * 2


def test_attention_and_ffn_in_parallel_are_summed_at_once() -> None:
    model = dense()
    layer = model.layers[0].model_copy(update={"norms": 1})
    ops = on_chip(model.model_copy(update={"layers": (layer,)}), Layout(tp=4))
    assert [op.name for op in ops if isinstance(op, Collective) and op.count == 4] == ["down_proj.all_reduce"]


def test_kv_heads_are_replicated_where_tp_exceeds_them() -> None:
    ops = on_chip(dense(kv_heads=4), Layout(tp=16))
    core = named(ops, "attention")
    assert isinstance(core, Attention)
    assert (core.query_heads.size, core.cache_heads.size) == (1, 1)
    assert layout_notes(dense(), Layout(tp=16)) == ("4 kv_heads over 16 chips: each is kept 4 times",)


def test_latent_cache_is_on_every_chip_and_down_projections_are_whole() -> None:
    whole, ops = on_chip(latent(), Layout()), on_chip(latent(), Layout(tp=4))
    for name in ("q_a_proj", "kv_a_proj"):
        assert named(ops, name).flops == named(whole, name).flops
    assert named(ops, "attention").kv_bytes == named(whole, "attention").kv_bytes
    assert named(ops, "attention").flops == named(whole, "attention").flops / 4
    for name in ("q_b_proj", "kv_b_proj.keys", "kv_b_proj.values", "o_proj"):
        assert named(ops, name).flops == named(whole, name).flops / 4
        assert named(ops, name).weight_bytes == named(whole, name).weight_bytes / 4


def test_experts_of_one_rank_need_a_sum_alone() -> None:
    """Every tp chip has all tokens: it runs its experts on them, and routed and shared results are summed together."""
    ops = on_chip(experts(), Layout(tp=4, ep=4))
    assert [name for name in collectives(ops) if "expert" in name] == ["shared_experts.down_proj.all_reduce"]
    up = named(ops, "experts.gate_up_proj")
    assert isinstance(up, Matmul)
    assert (up.copies.size, up.outer[0].size) == (4, 128)
    assert up.rows == 32 * 4 / 4


def test_width_of_experts_is_cut_over_the_rest_of_the_chips() -> None:
    up = named(on_chip(experts(), Layout(tp=4, ep=2)), "experts.gate_up_proj")
    assert isinstance(up, Matmul)
    assert (up.copies.size, up.outer[0].size) == (8, 64)


def test_dispatch_and_combine_with_attention_dp() -> None:
    layout = Layout(attention_dp=4, ep=4)
    ops = shard_stage(experts(), policy("fp8"), layout, stages(experts(), 1)[0], pipeline(DECODE, layout))
    found = collectives(ops)
    assert set(found) == {"experts.dispatch.all_to_all", "experts.combine.all_to_all"}
    reached = ranks_reached(16, 4, 4)
    # 8 tokens of the rank, each to the groups of its experts: fp8 there, bf16 back.
    assert found["experts.dispatch.all_to_all"].size_bytes == pytest.approx(8 * reached * 256 * 1)
    assert found["experts.combine.all_to_all"].size_bytes == pytest.approx(8 * reached * 256 * 2)
    names = [op.name for op in ops]
    assert names.index("experts.dispatch.all_to_all") == names.index("experts.gate_up_proj") - 1
    assert names.index("experts.combine.all_to_all") == names.index("experts.down_proj") + 1
    # Attention sees the rank's sequences, experts the tokens of all.
    core, up = named(ops, "attention"), named(ops, "experts.gate_up_proj")
    assert isinstance(core, Attention)
    assert isinstance(up, Matmul)
    assert core.rows == 8
    assert up.rows == 32 * 4 / 4
    assert up.touched == pytest.approx(4 * (1 - (1 - 4 / 16) ** 32))


def test_tokens_are_gathered_over_tp_after_their_experts() -> None:
    found = collectives(on_chip(experts(shared=None), Layout(tp=2, attention_dp=2, ep=4)))
    assert found["experts.combine.all_gather"].chips == Group(2)
    assert found["experts.combine.all_gather"].size_bytes == 16 * 256 * 2


def test_chips_that_share_an_expert_gather_tokens_and_scatter_sums() -> None:
    found = collectives(on_chip(experts(shared=None), Layout(attention_dp=4, ep=2)))
    order = [name for name in found if "experts" in name]
    assert order == [
        "experts.dispatch.all_to_all",
        "experts.dispatch.all_gather",
        "experts.combine.reduce_scatter",
        "experts.combine.all_to_all",
    ]
    assert found["experts.dispatch.all_to_all"].chips == Group(2, 2)
    assert found["experts.dispatch.all_gather"].chips == Group(2)


def test_imbalance_loads_the_busiest_group() -> None:
    even = on_chip(experts(), Layout(attention_dp=4, ep=4))
    skewed = on_chip(experts(), Layout(attention_dp=4, ep=4, expert_imbalance=1.5))
    for name in ("experts.gate_up_proj", "experts.down_proj"):
        assert named(skewed, name).flops == pytest.approx(1.5 * named(even, name).flops)
    sent = "experts.dispatch.all_to_all"
    assert collectives(skewed)[sent].size_bytes == pytest.approx(1.5 * collectives(even)[sent].size_bytes)
    assert named(skewed, "attention").flops == named(even, "attention").flops


def test_sum_of_experts_reads_the_results_of_the_chips_own() -> None:
    cut = named(on_chip(experts(), Layout(tp=4, ep=4)), "experts.combine")
    assert isinstance(cut, WeightedSum)
    assert cut.sources == 1


def test_context_parallelism_passes_keys_and_values() -> None:
    whole, ops = on_chip(dense(), Layout(), PREFILL), on_chip(dense(), Layout(cp=4), PREFILL)
    assert named(ops, "qkv_proj").flops == named(whole, "qkv_proj").flops / 4
    assert named(ops, "attention").flops == named(whole, "attention").flops / 4
    # The last token's logits are one chip's work.
    assert named(ops, "lm_head").flops == named(whole, "lm_head").flops
    gather = collectives(ops)["attention.all_gather"]
    assert gather.operation is Operation.ALL_GATHER
    assert gather.size_bytes == 2 * 64 * 4 * 64 * 2
    assert gather.chips == Group(4)


def test_stages_hold_their_layers_and_ends() -> None:
    model = dense(layers=10)
    assert [stage.layer_count for stage in stages(model, 4)] == [2, 3, 3, 2]
    first, last = on_chip(model, Layout(pp=4)), on_chip(model, Layout(pp=4), stage=3)
    assert named(first, "embed_tokens").count == 4
    assert "lm_head" not in {op.name for op in first}
    assert {"lm_head", "final_norm"} <= {op.name for op in last}
    assert "embed_tokens" not in {op.name for op in last}
    assert collectives(first)["stage.send_receive"].size_bytes == 8 * 256 * 2
    assert "stage.send_receive" not in collectives(last)


def test_decode_fills_the_pipeline_with_microbatches() -> None:
    flow = pipeline(DECODE, Layout(pp=4))
    assert (flow.microbatches, flow.part.batch, flow.bubble) == (4, 8, 0)
    short = pipeline(DECODE.with_batch(1), Layout(pp=4))
    assert (short.microbatches, short.part.batch, short.bubble) == (1, 1, 0.75)
    assert pipeline(PREFILL, Layout(pp=4)).microbatches == 1


def test_lone_sequence_waits_for_every_stage() -> None:
    """Four equal stages make one sequence no faster: a token takes as long as on one chip, and the sending between."""
    model, hardware = dense(layers=40), chip(latency=None, one_way=1e15)
    step = DECODE.with_batch(1)
    one = rate_step(model, hardware, step, BF16)
    four = rate_step(model, hardware, step, BF16, Layout(pp=4))
    assert four.tokens_per_s == pytest.approx(one.tokens_per_s, rel=0.1)
    assert four.tokens_per_s <= one.tokens_per_s * (1 + 1e-9)


def test_slowest_stage_is_shown() -> None:
    model = dense(layers=10)
    result = rate_step(model, chip(), DECODE, BF16, Layout(pp=4))
    assert result.stage.layer_count == 3


@pytest.mark.parametrize(
    ("model", "layout", "message"),
    [
        (dense(), Layout(tp=3), "tp: the 16 query_heads of dense cannot be cut over 3 chips, choose a divisor of 16"),
        (dense(heads=12, kv_heads=6), Layout(tp=4), "tp: the 6 kv_heads"),
        (dense(), Layout(tp=2, ep=2), "ep: dense has no routed experts"),
        (dense(), Layout(pp=8), "pp: 8 stages for 4 layers"),
        (experts(count=6, chosen=2), Layout(attention_dp=8, ep=8), "ep: the 6 experts"),
        (dense(), Layout(attention_dp=128), "chips: 128 asked for, but link of chip joins 64"),
        (dense(), Layout(cp=2), "cp: 2 is for prefill only"),
    ],
)
def test_what_engines_do_not_run_is_refused(model: Model, layout: Layout, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_layout(model, chip(), layout, Phase.DECODE)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tp": 0}, "tp: 0 is wrong"),
        ({"tp": 2, "ep": 3}, "ep: 3 groups do not divide the 2 chips"),
        ({"tp": 2, "ep": 2, "expert_imbalance": 3.0}, "from 1 \\(balanced\\) to ep = 2"),
    ],
)
def test_impossible_layouts_are_refused(fields: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Layout(**fields)


def test_vocabulary_is_padded_and_said() -> None:
    model = dense(vocab_size=1001)
    head = named(on_chip(model, Layout(tp=4)), "lm_head")
    assert isinstance(head, Matmul)
    assert head.outer_elements == 251
    assert layout_notes(model, Layout(tp=4)) == ("1001 vocab over 4 chips: padded to 251 on each",)


def test_uneven_experts_leave_the_fullest_chip() -> None:
    up = named(on_chip(experts(count=10), Layout(tp=4, ep=4)), "experts.gate_up_proj")
    assert isinstance(up, Matmul)
    assert up.copies.size == 3


def test_legal_layouts_are_legal_and_take_exactly_the_chips() -> None:
    found = legal_layouts(experts(), chip(), 8)
    assert Layout(tp=8, ep=8) in found
    assert Layout(attention_dp=8, ep=8) in found
    assert all(layout.chips == 8 for layout in found)
    assert len(set(found)) == len(found)
    assert not any(layout.cp > 1 for layout in found)
    assert any(layout.cp > 1 for layout in legal_layouts(experts(), chip(), 8, Phase.PREFILL))


def test_distinct_groups_that_a_token_reaches() -> None:
    """Two of four experts in two groups of two: the second is in the other group in 2 of 3 cases."""
    assert ranks_reached(4, 2, 2) == pytest.approx(1 + 2 / 3)
    assert ranks_reached(256, 8, 256) == pytest.approx(8)
    assert experts_per_chip(256, 144, redundant=32) == 2


def test_arrays_of_batches_go_through_a_layout() -> None:
    batches = np.array([1.0, 32.0, 4096.0])
    many = rate_step(experts(), chip(), DECODE.with_batch(batches), BF16, Layout(tp=2, pp=2, attention_dp=2, ep=4))
    for i, batch in enumerate(batches):
        one = rate_step(
            experts(), chip(), DECODE.with_batch(int(batch)), BF16, Layout(tp=2, pp=2, attention_dp=2, ep=4)
        )
        assert one.stage == many.stage
        assert many.lower_s[i] == pytest.approx(one.lower_s)
        assert many.network_bytes[i] == pytest.approx(one.network_bytes)
