"""Inverse questions: the smallest batch and the fewest chips that reach the compute-bound regime, or why none do."""

from planner.solve.critical import OpAnswer, StepAnswer, solve_ops, solve_step
from planner.solve.question import Question

__all__ = ["OpAnswer", "Question", "StepAnswer", "solve_ops", "solve_step"]
