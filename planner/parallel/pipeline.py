"""Pipeline stages: which layers each one holds, and how a step passes through them."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model import Model
from planner.numeric import Numeric, is_array, minimum
from planner.parallel.layout import Layout
from planner.workload import Phase, Step


@dataclass(frozen=True, slots=True)
class Stage:
    """One pipeline stage.

    Attributes
    ----------
    index, of : int
        Its place, from 0, and the number of stages.
    layers : tuple of (str, int)
        Labels of its kinds of layer, with how many of each it holds.
    """

    index: int
    of: int
    layers: tuple[tuple[str, int], ...]

    @property
    def is_first(self) -> bool:
        """Whether it holds the embedding."""
        return self.index == 0

    @property
    def is_last(self) -> bool:
        """Whether it holds the final norm and the LM head."""
        return self.index == self.of - 1

    @property
    def layer_count(self) -> int:
        """Layers in the stage."""
        return sum(count for _, count in self.layers)


def _layer_labels(model: Model) -> list[str]:
    """Return the label of every layer, in order."""
    labels = {kind.layer: kind.label for kind in model.layer_kinds}
    ordered: list[str] = []
    for group in model.layers:
        one_repeat = [layer for layer, count in group.model_copy(update={"repeat": 1}).kinds() for _ in range(count)]
        ordered += [labels[layer] for layer in one_repeat] * group.repeat
    return ordered


def stages(model: Model, count: int) -> tuple[Stage, ...]:
    """Deal the layers out to stages, in order and as evenly as whole layers allow.

    Notes
    -----
    A remainder goes to the stages before the last one, which has the LM head: the fullest holds ``ceil(layers / count)``. This is how
    vLLM deals them out (vllm/distributed/utils.py, get_pp_indices).
    """
    labels = _layer_labels(model)
    each, rest = divmod(len(labels), count)
    sizes = [each] * count
    for i in range(rest):
        sizes[-2 - i if i + 2 <= count else 0] += 1
    found, start = [], 0
    for index, size in enumerate(sizes):
        held: dict[str, int] = {}
        for label in labels[start : start + size]:
            held[label] = held.get(label, 0) + 1
        found.append(Stage(index, count, tuple(held.items())))
        start += size
    return tuple(found)


def distinct(found: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return one of each sort of stage: those that hold the same layers and ends take the same time."""
    sorts = {(stage.layers, stage.is_first, stage.is_last): stage for stage in found}
    return tuple(sorts.values())


def divide_up(value: Numeric, parts: Numeric) -> Numeric:
    """Return `value` over `parts`, rounded up.

    >>> divide_up(7, 2)
    4
    """
    if is_array(value, parts):
        import numpy as np  # see is_array

        return np.ceil(np.divide(value, parts))
    return -int(-value // parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """How the sequences of a step pass through the stages.

    Attributes
    ----------
    microbatches : Numeric
        Parts that a rank's batch is cut into, one after the other.
    part : Step
        What one chip sees of one microbatch, with the sequences of one attention-DP rank.
    pooled : Step
        The same of all attention-DP ranks together: what the routed experts see.
    bubble : Numeric
        Share of the time that a chip of the slowest stage waits, once the pipeline runs.
    """

    microbatches: Numeric
    part: Step
    pooled: Step
    bubble: Numeric


def pipeline(step: Step, layout: Layout) -> Pipeline:
    """Cut a step of the whole replica to what passes one chip at a time.

    Notes
    -----
    In decode a sequence cannot take its next step before the last one is through all stages: all sequences of the replica are cut into
    as many microbatches as there are stages, or fewer where there are fewer sequences, and then stages wait for
    ``1 - microbatches / pp`` of the time. Prefills do not wait for each other: a step passes whole and the next one follows; a step
    on its own is through after pp times as long.
    """
    local = step.batch if layout.attention_dp == 1 else divide_up(step.batch, layout.attention_dp)
    waits = layout.pp > 1 and step.phase is Phase.DECODE
    microbatches = minimum(divide_up(local, 1), layout.pp) if waits else 1
    part = divide_up(local, microbatches) if waits else local
    return Pipeline(
        microbatches=microbatches,
        part=step.with_batch(part),
        pooled=step.with_batch(part if layout.attention_dp == 1 else divide_up(step.batch, microbatches)),
        bubble=1 - microbatches / layout.pp if waits else 0.0,
    )
