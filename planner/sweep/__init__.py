"""Sweeps: every combination of models, chips, precisions, layouts, batches and contexts, streamed in blocks."""

from planner.sweep.grid import parse_numbers
from planner.sweep.points import COLUMNS, Block, Case, Sweep, evaluate

__all__ = ["COLUMNS", "Block", "Case", "Sweep", "evaluate", "parse_numbers"]
