"""Inverse questions: the smallest batch and the fewest chips that reach a regime or a target, or why none do."""

from planner.solve.chips import DEFAULT_MAX_CHIPS, ChipsAnswer, layouts_of, solve_chips
from planner.solve.critical import OpAnswer, StepAnswer, solve_ops, solve_step
from planner.solve.levers import Lever, pull_levers
from planner.solve.question import Question
from planner.solve.solution import Ask, PrecisionAnswer, Solution, answer_in_full, solve
from planner.solve.target import TARGETS, ComputeBound, Target, parse_target

__all__ = [
    "DEFAULT_MAX_CHIPS",
    "TARGETS",
    "Ask",
    "ChipsAnswer",
    "ComputeBound",
    "Lever",
    "OpAnswer",
    "PrecisionAnswer",
    "Question",
    "Solution",
    "StepAnswer",
    "Target",
    "answer_in_full",
    "layouts_of",
    "parse_target",
    "pull_levers",
    "solve",
    "solve_chips",
    "solve_ops",
    "solve_step",
]
