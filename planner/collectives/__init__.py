"""Collectives as an alpha-beta model on a chip's links: ``steps latency + bytes / bandwidth``, by the cheapest algorithm that the links allow."""

from planner.collectives.cost import Cost, cheapest, options
from planner.collectives.fabric import Fabric, Family, Reach, most_equal_sides, reach, scale_out_fabric, scale_up_fabric
from planner.collectives.levels import collective_cost, cost_of
from planner.collectives.volumes import (
    VOLUMES,
    collective_bandwidth,
    expert_exchange_bytes,
    gather_bytes,
    in_switch_bytes,
    latency_bound_bytes,
    one_shot_bytes,
    ring_bytes,
    transfer_seconds,
    tree_bytes,
    two_way_hops,
)
from planner.collectives.width import (
    CutMatmul,
    Rates,
    critical_width,
    critical_width_decode,
    cut_matmul,
    most_tensor_parallel,
    two_dimensional_break_even,
)

__all__ = [
    "VOLUMES",
    "Cost",
    "CutMatmul",
    "Fabric",
    "Family",
    "Rates",
    "Reach",
    "cheapest",
    "collective_bandwidth",
    "collective_cost",
    "cost_of",
    "critical_width",
    "critical_width_decode",
    "cut_matmul",
    "expert_exchange_bytes",
    "gather_bytes",
    "in_switch_bytes",
    "latency_bound_bytes",
    "most_equal_sides",
    "most_tensor_parallel",
    "one_shot_bytes",
    "options",
    "reach",
    "ring_bytes",
    "scale_out_fabric",
    "scale_up_fabric",
    "transfer_seconds",
    "tree_bytes",
    "two_dimensional_break_even",
    "two_way_hops",
]
