"""A legal bundle of choices: which model on which chip, in which precision, asked to do what."""

from __future__ import annotations

from collections.abc import Sequence

from planner.hardware import Hardware
from planner.memory import VISION, MemoryPlan, checkpoint_bytes
from planner.model import Model
from planner.numeric import anywhere, everywhere, largest_of
from planner.precision import Precision, policy
from planner.units import TRILLION, gigabytes
from planner.workload import Phase, Step

DEFAULT_TOKENS = 4096
"""Context of a decode step, and length of a prompt, where none is given."""


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
    return model.quantization.precision(kv, experts=experts)


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
    if limit is not None and anywhere(tokens > limit):
        found.append(f"{tokens} tokens are beyond the {limit} that {model.name} was made for")
    if memory.capacity_bytes is None:
        found.append(f"{hardware.name} has no fixed memory size: what fits cannot be said")
    elif not everywhere(memory.fits):
        needed = "weights, KV cache and buffers take " + gigabytes(largest_of(memory.total_bytes))
        wanted = f"; what would fit: {', or '.join(memory.advice)}" if memory.advice else ""
        found.append(f"{needed}, {hardware.name} has {gigabytes(memory.capacity_bytes)}{wanted}")
    if model.vision_parameters:
        size = gigabytes(checkpoint_bytes(model, model.quantization.precision("bf16"))[VISION])
        found.append(
            f"towers for pictures or sound are not in memory here: an engine that loads them needs {size} more"
        )
    return tuple(found)


DISAGREEMENT = 0.01
"""Stored bytes further than this from the arithmetic are told."""


def checkpoint_warning(model: Model) -> str | None:
    """Return in words that the files of a checkpoint and the arithmetic on its description disagree; None if they do not."""
    if model.checkpoint is None:
        return None
    computed = sum(checkpoint_bytes(model, model.quantization.precision("bf16")).values())
    stored = model.checkpoint.bytes
    if abs(stored - computed) <= DISAGREEMENT * stored:
        return None
    return (
        f"{model.name} stores {gigabytes(stored)} ({model.checkpoint.source}), arithmetic on its description gives "
        f"{gigabytes(computed)}: check both"
    )


def recalled_warning(hardware: Hardware, figures: Sequence[str]) -> tuple[str, ...]:
    """Return in words that figures of a chip were recalled, not read again; nothing where there are none."""
    if not figures:
        return ()
    return (f"{hardware.name}: {', '.join(figures)} recalled from the document and not read again [unverified]",)


GAPS = ("bf16", "fp8", "int8")
"""Arithmetic that plans ask for."""


def hardware_gaps(hardware: Hardware) -> tuple[str, ...]:
    """Return what cannot be computed for a chip, because a figure is not known, in words."""
    name, found = hardware.name, []
    missing = [arithmetic for arithmetic in GAPS if hardware.rate(arithmetic).flops_per_s is None]
    if missing:
        found.append(
            f"{name} has no known peak for {', '.join(missing)}: compute times and critical batches cannot be computed"
        )
    if hardware.memory.plannable_bytes is None:
        found.append(f"{name} has no known memory capacity: what fits cannot be computed")
    if hardware.memory.bandwidth.value is None:
        found.append(f"{name} has no known memory bandwidth: memory times cannot be computed")
    if hardware.links.scale_up is None or hardware.links.scale_up.one_way.value is None:
        found.append(f"{name} has no known link to chips of its kind: several of them cannot be planned as one")
    if hardware.price is None or hardware.price.hourly is None or hardware.price.hourly.value is None:
        found.append(f"{name} has no known hourly price: costs cannot be computed")
    if hardware.power is None or hardware.power.tdp.value is None:
        found.append(f"{name} has no known power: energy cannot be computed")
    return tuple(found)


def model_warnings(model: Model) -> tuple[str, ...]:
    """Return what is unusual about a model, in words."""
    found = list(model.notes)
    if model.parameters >= TRILLION:
        found.append(f"{model.name} has {model.parameters / TRILLION:.2f} trillion parameters, check the file")
    if model.published_parameters and not model.accounts_for(model.published_parameters):
        found.append(f"{model.name} counts {model.parameters} parameters, {model.published_parameters} are published")
    return (*found, *filter(None, [checkpoint_warning(model)]))
