"""Parallelism: which piece of every named axis a chip holds, and the collectives that the cuts force.

Covered: tensor, pipeline, expert and context parallelism, and attention data parallelism, in any legal combination. Left out: overlap
of a collective with the operations around it (bounds say what it could bring), sequence-parallel norms, context parallelism in decode,
and copies of hot experts.
"""

from planner.parallel.layout import (
    DEGREES,
    SINGLE_CHIP,
    Layout,
    check_layout,
    divider,
    experts_per_chip,
    layout_notes,
    legal_layouts,
    ranks_reached,
)
from planner.parallel.pipeline import Pipeline, Stage, distinct, divide_up, pipeline, stages
from planner.parallel.shard import shard, shard_stage

__all__ = [
    "DEGREES",
    "SINGLE_CHIP",
    "Layout",
    "Pipeline",
    "Stage",
    "check_layout",
    "distinct",
    "divide_up",
    "divider",
    "experts_per_chip",
    "layout_notes",
    "legal_layouts",
    "pipeline",
    "ranks_reached",
    "shard",
    "shard_stage",
    "stages",
]
