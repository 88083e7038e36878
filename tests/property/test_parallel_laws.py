"""Laws of parallelism: nothing is lost or won by cutting, and better links never hurt."""

import math
from itertools import permutations

import numpy as np
import pytest
from descriptions import chip, dense, engine, experts, latent
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.collectives import collective_cost
from planner.decompose import decompose
from planner.memory import PARTS, footprint, memory_plan
from planner.model import Model
from planner.op import Collective, Group, Kind, Op, Operation
from planner.parallel import Layout, legal_layouts, pipeline, shard_stage, stages
from planner.precision import policy
from planner.step import rate_step
from planner.workload import Phase, Step

BF16 = policy("bf16")
MODELS = {"dense": dense(layers=8, kv_heads=8), "experts": experts(layers=8, kv_heads=8), "latent": latent(layers=8)}
HARDWARE = chip()

models = st.sampled_from(sorted(MODELS)).map(MODELS.__getitem__)
steps = st.builds(
    Step,
    phase=st.just(Phase.DECODE),
    batch=st.integers(1, 8).map(lambda n: 64 * n),
    context=st.integers(0, 5000),
)
prefills = st.builds(
    Step, phase=st.just(Phase.PREFILL), batch=st.integers(1, 4).map(lambda n: 8 * n), new_tokens=st.just(64)
)
topologies = st.sampled_from(["switch", "full_mesh", "ring", "torus_2d", "torus_3d", "pcie", "hybrid_mesh"])
sizes = st.floats(1, 1e10)

REPLICATED = {"q_a_proj", "kv_a_proj", "router"}
"""Matmuls that every chip of a tensor-parallel group runs whole."""


def some_layout(model: Model, data: st.DataObject, phase: Phase = Phase.DECODE) -> Layout:
    chips = data.draw(st.sampled_from([1, 2, 4, 8]))
    return data.draw(st.sampled_from(legal_layouts(model, HARDWARE, chips, phase)))


def work(ops: tuple[Op, ...], kind: Kind) -> float:
    return sum(op.count * op.flops for op in ops if op.kind is kind and op.name not in REPLICATED)


@given(model=models, step=steps, data=st.data())
@settings(max_examples=150, deadline=None)
def test_work_of_all_chips_is_that_of_one(model: Model, step: Step, data: st.DataObject) -> None:
    layout = some_layout(model, data)
    whole = decompose(model, step, BF16)
    flow = pipeline(step, layout)
    for kind in (Kind.MATMUL, Kind.ATTENTION):
        per_stage = (work(shard_stage(model, BF16, layout, stage, flow), kind) for stage in stages(model, layout.pp))
        assert layout.stage_chips * sum(per_stage) == pytest.approx(work(whole, kind), rel=1e-9)


@given(model=models, step=prefills, data=st.data())
@settings(max_examples=100, deadline=None)
def test_work_of_all_chips_is_that_of_one_in_prefill(model: Model, step: Step, data: st.DataObject) -> None:
    layout = some_layout(model, data, Phase.PREFILL)
    whole = decompose(model, step, BF16)
    flow = pipeline(step, layout)
    per_stage = (work(shard_stage(model, BF16, layout, s, flow), Kind.ATTENTION) for s in stages(model, layout.pp))
    assert layout.stage_chips * sum(per_stage) == pytest.approx(work(whole, Kind.ATTENTION), rel=1e-9)


@given(model=models, data=st.data())
@settings(max_examples=60, deadline=None)
def test_weights_of_all_chips_are_at_least_those_of_one(model: Model, data: st.DataObject) -> None:
    layout = some_layout(model, data)
    foot = footprint(model, 80e9, BF16, layout, engine())
    one = footprint(model, 80e9, BF16, Layout(), engine()).stages[0].weight_bytes
    alike = {(s.stage.layers, s.stage.is_first, s.stage.is_last): s.weight_bytes for s in foot.stages}
    every = [alike[s.layers, s.is_first, s.is_last] for s in stages(model, layout.pp)]
    assert layout.stage_chips * sum(every) >= one * (1 - 1e-12)
    assert max(every) <= one * (1 + 1e-12)


@given(model=models, step=st.one_of(steps, prefills))
@settings(max_examples=60, deadline=None)
def test_one_chip_is_no_parallelism_to_the_bit(model: Model, step: Step) -> None:
    plain, laid_out = rate_step(model, HARDWARE, step, BF16), rate_step(model, HARDWARE, step, BF16, Layout())
    assert [rating.op for rating in laid_out.ops] == list(decompose(model, step, BF16))
    for name in ("lower_s", "upper_s", "overlap_floor_s", "memory_bytes", "network_bytes", "tokens_per_s"):
        assert getattr(plain, name) == getattr(laid_out, name)
    assert laid_out.network_s == 0
    assert not any(isinstance(rating.op, Collective) for rating in laid_out.ops)


@given(operation=st.sampled_from(Operation), topology=topologies, size=sizes, faster=st.floats(1, 100))
def test_more_bandwidth_never_slows(operation: Operation, topology: str, size: float, faster: float) -> None:
    slow, fast = chip(topology=topology), chip(topology=topology, one_way=100e9 * faster)
    for chips in (2, 4, 16, 64):
        before = collective_cost(slow, operation, Group(chips), size).seconds
        after = collective_cost(fast, operation, Group(chips), size).seconds
        assert after <= before * (1 + 1e-12)


@given(operation=st.sampled_from(Operation), topology=topologies, size=sizes, longer=st.floats(1, 100))
def test_more_latency_never_speeds(operation: Operation, topology: str, size: float, longer: float) -> None:
    short, long = chip(topology=topology), chip(topology=topology, latency=1e-6 * longer)
    for chips in (2, 4, 16, 64):
        before = collective_cost(short, operation, Group(chips), size).seconds
        after = collective_cost(long, operation, Group(chips), size).seconds
        assert after >= before * (1 - 1e-12)


@given(model=models, step=steps, faster=st.floats(1, 100), data=st.data())
@settings(max_examples=40, deadline=None)
def test_better_links_never_slow_a_step(model: Model, step: Step, faster: float, data: st.DataObject) -> None:
    layout = some_layout(model, data)
    slow = rate_step(model, chip(chips=4, out=10e9), step, BF16, layout)
    fast = rate_step(model, chip(chips=4, out=10e9 * faster, one_way=100e9 * faster), step, BF16, layout)
    assert fast.lower_s <= slow.lower_s * (1 + 1e-12)
    # Faster links may make another stage the slowest, and its upper bound the one that is shown.
    assert fast.stage != slow.stage or fast.upper_s <= slow.upper_s * (1 + 1e-12)


@given(operation=st.sampled_from(Operation), size=sizes)
def test_larger_messages_never_take_less(operation: Operation, size: float) -> None:
    found = collective_cost(HARDWARE, operation, Group(8), np.array([size, 2 * size])).seconds
    assert found[0] <= found[1]


@pytest.mark.parametrize("factors", [(2, 4), (2, 2, 2), (2, 8), (4, 4)])
def test_order_in_which_chips_are_named_is_the_same_on_a_flat_switch(factors: tuple[int, ...]) -> None:
    step, model = Step(phase=Phase.DECODE, batch=64, context=100), MODELS["dense"]
    times = {
        rate_step(model, HARDWARE, step, BF16, Layout(tp=math.prod(order))).lower_s for order in permutations(factors)
    }
    assert len(times) == 1
    # A group costs the same whichever chips of the switch it is made of.
    chips = math.prod(factors)
    costs = {
        collective_cost(HARDWARE, Operation.ALL_REDUCE, Group(chips, stride), 1e6).seconds
        for stride in (1, 2, 4)
        if chips * stride <= 64
    }
    assert len(costs) == 1


@given(model=models, data=st.data(), batch=st.integers(1, 10_000), context=st.integers(1, 100_000))
@settings(max_examples=60, deadline=None)
def test_parts_of_memory_sum_to_the_total(model: Model, data: st.DataObject, batch: int, context: int) -> None:
    layout = some_layout(model, data)
    plan = memory_plan(
        model, HARDWARE, BF16, layout, batch=batch, context=context, engine=engine(fraction=0.9, page=16)
    )
    assert sum(getattr(plan, name) for name in PARTS) == pytest.approx(plan.total_bytes, rel=1e-12)
    assert plan.fits == (plan.total_bytes <= plan.capacity_bytes)


@given(model=models, data=st.data(), context=st.integers(1, 100_000))
@settings(max_examples=40, deadline=None)
def test_largest_batch_fits_and_one_more_does_not(model: Model, data: st.DataObject, context: int) -> None:
    layout, rules = some_layout(model, data), engine(page=16)
    plan = memory_plan(model, HARDWARE, BF16, layout, batch=1, context=context, engine=rules)
    foot = footprint(model, HARDWARE.memory.plannable_bytes, BF16, layout, rules)
    assert plan.max_batch
    assert foot.fits(plan.max_batch, context)
    assert not foot.fits(plan.max_batch + 1, context)
