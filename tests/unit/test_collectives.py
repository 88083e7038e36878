"""Fabrics and the cost of collectives on them, worked by hand."""

import numpy as np
import pytest

from planner.collectives import (
    Fabric,
    Family,
    collective_cost,
    most_equal_sides,
    options,
    reach,
    scale_up_fabric,
)
from planner.errors import InputError
from planner.hardware import Hardware
from planner.op import Group, Operation

FIGURE = {"source": "made up"}


def chip(
    topology: str = "switch",
    chips: int = 8,
    one_way: str | None = "100 GB/s",
    pair: str | None = None,
    out: str | None = None,
    **links: object,
) -> Hardware:
    scale_up = {
        "name": "link",
        "topology": topology,
        "chips": chips,
        "one_way": {"value": one_way, **FIGURE},
        "latency": {"value": "1 us", **FIGURE},
        **links,
    }
    if pair:
        scale_up["one_way_pair"] = {"value": pair, **FIGURE}
    outside = (
        {"scale_out": {"one_way": {"value": out, **FIGURE}, "latency": {"value": "5 us", **FIGURE}}} if out else {}
    )
    return Hardware.model_validate(
        {
            "name": "chip",
            "vendor": "v",
            "kind": "gpu",
            "peak": {"bf16": {"value": "100 TFLOP/s", **FIGURE}},
            "memory": {"capacity": {"value": "80 GB", **FIGURE}, "bandwidth": {"value": "1 TB/s", **FIGURE}},
            "links": {"scale_up": scale_up, **outside},
        }
    )


def by_name(operation: Operation, size: float, fabric: Fabric) -> dict[str, object]:
    return {cost.algorithm: cost for cost in options(operation, size, fabric)}


def test_all_reduce_behind_a_switch() -> None:
    links = chip().links.scale_up
    assert links is not None
    found = by_name(Operation.ALL_REDUCE, 8e6, scale_up_fabric(links, 4))
    assert set(found) == {"ring", "tree", "one_shot"}
    assert found["ring"].seconds == pytest.approx(6e-6 + 2 * 0.75 * 8e6 / 100e9)
    assert found["tree"].seconds == pytest.approx(4e-6 + 16e6 / 100e9)
    assert found["one_shot"].seconds == pytest.approx(1e-6 + 24e6 / 100e9)


def test_switch_that_adds_up_sends_each_buffer_once() -> None:
    reducing = chip(in_network_reduction={"value": True, **FIGURE})
    cost = collective_cost(reducing, Operation.ALL_REDUCE, Group(8), 8e6)
    assert cost.algorithm == "in_switch"
    assert cost.seconds == pytest.approx(2e-6 + 8e6 / 100e9)


def test_cheapest_is_taken_element_by_element() -> None:
    sizes = np.array([8.0, 8e9])
    both = collective_cost(chip(), Operation.ALL_REDUCE, Group(4), sizes)
    assert list(both.algorithm) == ["one_shot", "ring"]
    for i, size in enumerate(sizes):
        one = collective_cost(chip(), Operation.ALL_REDUCE, Group(4), float(size))
        assert (both.algorithm[i], both.seconds[i], both.sent_bytes[i], both.steps[i]) == (
            one.algorithm,
            one.seconds,
            one.sent_bytes,
            one.steps,
        )


def test_a_pair_of_a_mesh_has_one_link() -> None:
    mesh = chip("full_mesh", one_way="448 GB/s", pair="64 GB/s")
    two = collective_cost(mesh, Operation.ALL_GATHER, Group(2), 64e9)
    eight = collective_cost(mesh, Operation.ALL_GATHER, Group(8), 64e9)
    assert two.transfer_s == pytest.approx(0.5)
    assert eight.transfer_s == pytest.approx(7 / 8 * 64 / 448)
    assert collective_cost(mesh, Operation.SEND_RECEIVE, Group(2), 64e9).transfer_s == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("chips", "sides", "wraps", "seconds"),
    [
        (2, (2,), (False,), 0.5 / 50),
        (4, (2, 2), (False, False), 0.75 / 100),
        (16, (4, 4), (False, False), 15 / 16 / 100),
        (64, (8, 8), (False, False), 63 / 64 / 100),
        (256, (16, 16), (True, True), 255 / 256 / 200),
        (128, (8, 16), (False, True), 127 / 128 / 150),
    ],
)
def test_torus_wraps_around_where_an_axis_is_whole(
    chips: int, sides: tuple[int, ...], wraps: tuple[bool, ...], seconds: float
) -> None:
    torus = chip("torus_2d", 256, "200 GB/s", "50 GB/s")
    fabric = reach(torus, Group(chips)).inner
    assert fabric is not None
    assert (fabric.sides, fabric.wraps) == (sides, wraps)
    assert collective_cost(torus, Operation.ALL_GATHER, Group(chips), 1e9).transfer_s == pytest.approx(seconds)


def test_slices_of_whole_cubes_wrap_around_where_the_file_says_so() -> None:
    torus = chip("torus_3d", 4096, "270 GB/s", "45 GB/s", wrap_multiple=4)
    cube, half = reach(torus, Group(64)).inner, reach(torus, Group(32)).inner
    assert cube is not None
    assert half is not None
    assert cube.wraps == (True, True, True)
    assert half.wraps == (False, False, False)
    assert (cube.hops, half.hops) == (6, 3 + 3 + 1)


def test_all_to_all_on_a_ring_is_a_quarter_of_an_all_gather() -> None:
    """Scaling book, sharding: of the same array, over both directions of a closed ring of many chips."""
    ring = chip("ring", 64, "100 GB/s", "50 GB/s")
    gather = collective_cost(ring, Operation.ALL_GATHER, Group(64), 64e9).transfer_s
    exchange = collective_cost(ring, Operation.ALL_TO_ALL, Group(64), 1e9).transfer_s
    assert exchange / gather == pytest.approx(0.25, rel=0.02)


def test_all_to_all_of_two_neighbours_takes_half_over_one_link() -> None:
    ring = chip("ring", 64, "100 GB/s", "50 GB/s")
    assert collective_cost(ring, Operation.ALL_TO_ALL, Group(2), 1e9).transfer_s == pytest.approx(0.5 / 50)


def test_gather_across_domains_is_as_fast_as_the_slower_level() -> None:
    """Scaling book, GPUs, quiz 4: two domains of 8 gather at 450 * 8/7 = 514 GB/s, not at the 800 between them."""
    pair = chip(one_way="450 GB/s", out="50 GB/s")
    cost = collective_cost(pair, Operation.ALL_GATHER, Group(16), 1e12)
    assert 1e12 / cost.transfer_s == pytest.approx(514e9, rel=1e-3)
    assert cost.latency_s == pytest.approx(7e-6 + 5e-6)
    assert cost.algorithm == "ring + ring"


def test_all_reduce_across_domains_sends_one_piece_of_each_chip() -> None:
    cost = collective_cost(chip(out="10 GB/s"), Operation.ALL_REDUCE, Group(32), 32e9)
    # Each of 8 chips of a domain reduces its eighth with its 3 counterparts: 4 GB around a ring of 4.
    assert cost.transfer_s == pytest.approx(2 * 0.75 * 4 / 10)


def test_group_with_a_stride_leaves_the_domain_earlier() -> None:
    links = reach(chip(out="10 GB/s"), Group(4, stride=4))
    assert links.inner is not None
    assert links.outer is not None
    assert (links.inner.chips, links.outer.chips) == (2, 2)


def test_larger_than_the_domain_without_scale_out_is_an_error() -> None:
    with pytest.raises(InputError, match="chips: 16 asked for, but chip joins 8 and no scale-out link is known"):
        reach(chip(), Group(16))


def test_number_without_a_shape_on_the_torus_is_an_error() -> None:
    with pytest.raises(InputError, match="chips: 34 have no shape on link of 16 x 16"):
        reach(chip("torus_2d", 256), Group(34))


def test_unpublished_bandwidth_gives_no_time() -> None:
    cost = collective_cost(chip(one_way=None), Operation.ALL_REDUCE, Group(8), 1e6)
    assert cost.seconds is None


def test_one_chip_exchanges_nothing() -> None:
    assert collective_cost(chip(), Operation.ALL_REDUCE, Group(1), 1e6).seconds == 0


@pytest.mark.parametrize(
    ("chips", "axes", "sides"), [(256, 2, (16, 16)), (64, 3, (4, 4, 4)), (8960, 3, (16, 20, 28)), (7, 2, (1, 7))]
)
def test_sides_are_as_equal_as_possible(chips: int, axes: int, sides: tuple[int, ...]) -> None:
    assert most_equal_sides(chips, axes) == sides


def test_every_collective_has_an_algorithm_on_every_fabric() -> None:
    for family in Family:
        fabric = Fabric(
            name="f",
            family=family,
            chips=4,
            port_bytes_per_s=3e9,
            link_bytes_per_s=1e9,
            latency_s=1e-6,
            sides=(2, 2),
            wraps=(False, False),
        )
        for operation in Operation:
            assert options(operation, 1e6, fabric), (family, operation)
