"""A legal bundle of choices: which model on which chip, in which precision, asked to do what."""

from __future__ import annotations

import numpy as np

from planner.hardware import Hardware
from planner.memory import MemoryPlan
from planner.model import Model
from planner.precision import Precision, policy
from planner.units import gigabytes
from planner.workload import Phase, Step

DEFAULT_TOKENS = 4096
"""Context of a decode step, and length of a prompt, where none is given."""

TRILLION = 10**12


def choose_precision(
    model: Model, name: str | None = None, *, experts: str | None = None, kv: str = "bf16"
) -> Precision:
    """Return the policy asked for; the one that the checkpoint is stored in where none is named.

    Raises
    ------
    InputError
        If a name is not known.
    """
    if name is not None:
        return policy(name, experts=experts, kv=kv)
    stored = model.quantization
    if experts is not None:
        return policy(stored.linear, experts=experts, kv=kv, unquantized=stored.precision(kv).unquantized)
    return stored.precision(kv)


def default_lengths(phase: Phase, context: int | None, new_tokens: int | None) -> tuple[int, int]:
    """Return context and new tokens, with the defaults of the phase where they are not given."""
    decode = phase is Phase.DECODE
    return (
        (DEFAULT_TOKENS if decode else 0) if context is None else context,
        (1 if decode else DEFAULT_TOKENS) if new_tokens is None else new_tokens,
    )


def warnings(model: Model, hardware: Hardware, step: Step, memory: MemoryPlan) -> tuple[str, ...]:
    """Return what is unusual about a step on a chip, in words. A step is never refused for it."""
    found = list(model_warnings(model))
    limit = model.max_position_embeddings
    tokens = step.context + step.new_tokens
    if limit is not None and np.any(tokens > limit):
        found.append(f"{tokens} tokens are beyond the {limit} that {model.name} was made for")
    if memory.capacity_bytes is None:
        found.append(f"{hardware.name} has no fixed memory size: what fits cannot be said")
    elif not np.all(memory.fits):
        needed = "weights, KV cache and buffers take " + gigabytes(np.max(memory.total_bytes))
        wanted = f"; what would fit: {', or '.join(memory.advice)}" if memory.advice else ""
        found.append(f"{needed}, {hardware.name} has {gigabytes(memory.capacity_bytes)}{wanted}")
    return tuple(found)


def model_warnings(model: Model) -> tuple[str, ...]:
    """Return what is unusual about a model, in words."""
    found = list(model.notes)
    if model.parameters >= TRILLION:
        found.append(f"{model.name} has {model.parameters / TRILLION:.2f} trillion parameters, check the file")
    if model.published_parameters and model.parameters != model.published_parameters:
        found.append(f"{model.name} counts {model.parameters} parameters, {model.published_parameters} are published")
    return tuple(found)
