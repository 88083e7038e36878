"""What would help most: each lever pulled on its own, and where the step would then turn compute-bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.model import LatentAttention, Model, SoftmaxAttention
from planner.precision import policy
from planner.solve.critical import first_batch
from planner.solve.crossing import LARGEST_BATCH
from planner.solve.question import Question
from planner.solve.target import ComputeBound, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One change, and what it does.

    Attributes
    ----------
    name : str
        What is changed.
    critical_batch : int or None
        The smallest batch that reaches the target with it.
    share : float
        Compute time over the longer of memory and network, at a batch without end: 1 and more can be compute-bound.
    """

    name: str
    critical_batch: int | None
    share: float


def pull_levers(question: Question, target: Target | None = None) -> tuple[Lever, ...]:
    """Return the levers there are, the most helpful first: those with the smallest batch, then those with the largest share."""
    goal = target or ComputeBound()
    found = [
        Lever(name=name, critical_batch=first_batch(changed, goal), share=_share(changed))
        for name, changed in _changes(question)
    ]
    return tuple(
        sorted(found, key=lambda lever: (lever.critical_batch is None, lever.critical_batch or 0, -lever.share))
    )


def _share(question: Question) -> float:
    far = question.at(LARGEST_BATCH)
    if far.compute_s is None or far.memory_s is None or far.network_s is None:
        return 0.0
    return float(far.compute_s) / max(float(far.memory_s), float(far.network_s))


def _changes(question: Question) -> Iterator[tuple[str, Question]]:
    precision = question.precision
    name, kv = precision.linear.name, precision.kv.name
    if kv == "bf16":
        yield "KV cache in fp8", question.but(precision=policy(name, kv="fp8"))
    if precision.linear.weights.bits == 16:  # 16-bit weights can be halved and quartered
        yield "weights in int8, arithmetic as it is (w8a16)", question.but(precision=policy("w8a16", kv=kv))
        yield "weights in int4, arithmetic as it is (w4a16)", question.but(precision=policy("w4a16", kv=kv))
    if question.context > 1:
        yield f"half the context ({question.context // 2:,} tokens)", question.but(context=question.context // 2)
    fewer = _half_the_kv_heads(question.model)
    if fewer is not None:
        yield "half the KV heads (a model with wider groups)", question.but(model=fewer)


def _half_the_kv_heads(model: Model) -> Model | None:
    """Return the model with half the KV heads in every layer that can halve them; None where no layer can."""
    changed = False
    groups = []
    for group in model.layers:
        attention = group.attention
        if isinstance(attention, SoftmaxAttention) and attention.kv_heads % 2 == 0:
            heads = attention.kv_heads // 2
            update = {"kind": "mqa" if heads == 1 else "gqa", "num_key_value_heads": heads}
            groups.append(group.model_copy(update={"attention": attention.model_copy(update=update)}))
            changed = True
        else:
            groups.append(group)
    if not changed or any(isinstance(group.attention, LatentAttention) for group in groups):
        return None
    # A copy would keep what the model has worked out about its old layers; a new one does not.
    return Model(**{name: getattr(model, name) for name in Model.model_fields} | {"layers": tuple(groups)})
