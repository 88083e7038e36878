"""How a model is laid out over chips, and which layouts are legal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from planner.errors import InputError
from planner.hardware import Hardware
from planner.model import Model, Tensor
from planner.op import Axis, Divide
from planner.workload import Phase

DEGREES = ("tp", "pp", "ep", "attention_dp", "cp", "replicas")
"""The whole numbers of a layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A number of chips for each way of splitting the work.

    Attributes
    ----------
    tp : int
        Tensor parallelism: chips that share every layer, cut along heads, FFN width and vocabulary.
    pp : int
        Pipeline parallelism: stages, each with its part of the layers.
    ep : int
        Expert parallelism: groups that the routed experts are dealt out to. Each expert's width is cut over the rest of a stage's chips.
    attention_dp : int
        Attention data parallelism: ranks with sequences of their own, and copies of all weights but those of routed experts.
    cp : int
        Context parallelism: chips that share each sequence of a prefill.
    replicas : int
        Copies of the whole that share nothing.
    expert_imbalance : float
        Tokens of the busiest expert group over the mean; 1 for balanced routing.

    Raises
    ------
    InputError
        If a degree is not a whole number of at least 1, the experts' groups do not fit the chips, or the imbalance is impossible.
    """

    tp: int = 1
    pp: int = 1
    ep: int = 1
    attention_dp: int = 1
    cp: int = 1
    replicas: int = 1
    expert_imbalance: float = 1.0

    def __post_init__(self) -> None:
        """Check what can be checked without a model."""
        for name in DEGREES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name}: {value!r} is wrong, a whole number of at least 1 is expected")
        if self.stage_chips % self.ep:
            raise InputError(
                f"ep: {self.ep} groups do not divide the {self.stage_chips} chips of a stage (tp x attention_dp x cp), "
                f"choose a divisor of {self.stage_chips}"
            )
        if not 1 <= self.expert_imbalance <= max(self.ep, 1):
            raise InputError(
                f"expert_imbalance: {self.expert_imbalance} is wrong, from 1 (balanced) to ep = {self.ep} is possible"
            )

    @property
    def stage_chips(self) -> int:
        """Chips of one pipeline stage."""
        return self.tp * self.attention_dp * self.cp

    @property
    def chips(self) -> int:
        """Chips of one replica."""
        return self.stage_chips * self.pp

    @property
    def moe_tp(self) -> int:
        """Chips that share the width of an expert."""
        return self.stage_chips // self.ep

    @property
    def token_ranks(self) -> int:
        """Ranks with tokens of their own: attention-DP and context parallelism."""
        return self.attention_dp * self.cp

    @property
    def is_single(self) -> bool:
        """Whether one chip does everything."""
        return self.chips == 1


SINGLE_CHIP = Layout()
"""No parallelism."""


class Uneven(StrEnum):
    """What engines do where an axis has not a whole number of units for each chip."""

    REFUSE = "refuse"
    REPLICATE = "replicate"
    PAD = "pad"


@dataclass(frozen=True, slots=True)
class Rule:
    """How an axis is cut.

    Attributes
    ----------
    degree : callable
        Returns over how many chips a layout cuts it.
    uneven : Uneven
        What happens where that does not come out even. `REPLICATE` keeps whole units, several chips with a copy of the same.
    """

    degree: Callable[[Layout], int]
    uneven: Uneven


# One row for each named axis that is ever cut; every other axis is whole on every chip: the hidden axis, ranks of low-rank
# projections, the latent vector that all heads of latent attention share, the scores of a router, the heads of an indexer (which
# engines run whole on every chip).
RULES: dict[str, Rule] = {
    "query_heads": Rule(lambda layout: layout.tp, Uneven.REFUSE),
    "kv_heads": Rule(lambda layout: layout.tp, Uneven.REPLICATE),
    "ffn": Rule(lambda layout: layout.tp, Uneven.REFUSE),
    "vocab": Rule(lambda layout: layout.tp, Uneven.PAD),
    "o_groups": Rule(lambda layout: layout.tp, Uneven.REFUSE),
    "key_heads": Rule(lambda layout: layout.tp, Uneven.REFUSE),
    "value_heads": Rule(lambda layout: layout.tp, Uneven.REFUSE),
    "mamba_heads": Rule(lambda layout: layout.tp, Uneven.REFUSE),
    "mamba_groups": Rule(lambda layout: layout.tp, Uneven.REPLICATE),
    "channels": Rule(lambda layout: layout.tp, Uneven.PAD),
    "blocks": Rule(lambda layout: layout.tp, Uneven.REFUSE),
    "experts": Rule(lambda layout: layout.ep, Uneven.PAD),
    "expert_ffn": Rule(lambda layout: layout.moe_tp, Uneven.REFUSE),
}


def divider(layout: Layout) -> Divide:
    """Return the function that cuts an axis to the piece of the busiest chip.

    Examples
    --------
    >>> cut = divider(Layout(tp=16))
    >>> cut(Axis("query_heads", 64, 128)).size, cut(Axis("kv_heads", 8, 256)).size, cut(Axis("hidden", 8192)).size
    (4, 1, 8192)
    """

    def divide(axis: Axis) -> Axis:
        rule = RULES.get(axis.name)
        degree = 1 if rule is None else rule.degree(layout)
        return axis if degree == 1 else Axis(axis.name, -(-axis.size // degree), axis.each)

    return divide


def experts_per_chip(experts: int, groups: int, redundant: int = 0) -> int:
    """Return the routed experts that a chip of the fullest group holds, copies of hot ones included.

    Parameters
    ----------
    experts : int
        Routed experts of a layer.
    groups : int
        Groups that they are dealt out to (EP).
    redundant : int
        Further copies of experts that are asked for often.

    Examples
    --------
    >>> experts_per_chip(256, 32, redundant=32)
    9
    """
    return -(-(experts + redundant) // groups)


def ranks_reached(experts: int, chosen: int, groups: int) -> float:
    """Return the number of expert groups that one token is sent to, in expectation.

    Parameters
    ----------
    experts : int
        Routed experts, E.
    chosen : int
        Experts of a token, k, all different.
    groups : int
        Groups of equal size, g.

    Notes
    -----
    ``g (1 - C(E - E/g, k) / C(E, k))``: derived here, a group is missed where all k come from the other E - E/g experts. At most
    min(k, g). Routing that limits the groups of a token, as DeepSeek-V3's does, reaches fewer.

    Examples
    --------
    >>> ranks_reached(8, 2, 1), ranks_reached(8, 2, 8)
    (1.0, 2.0)
    """
    others = experts - experts_per_chip(experts, groups)
    missed = math.prod(max(others - i, 0) / (experts - i) for i in range(chosen))
    return min(groups * (1 - missed), float(chosen), float(groups))


# ---- legality --------------------------------------------------------------------------------------------------------


def _axes(model: Model) -> Iterator[Axis]:
    """Yield every axis of the model's weights, each once."""
    tensors = [model.embedding, model.lm_head, *(tensor for tensor, _ in model.stored_tensors)]
    axes = (axis for t in tensors if isinstance(t, Tensor) for axis in (t.inner, *t.outer, t.copies))
    yield from dict.fromkeys(axes)


def _is_fair(axis: Axis, degree: int, uneven: Uneven) -> bool:
    """Whether engines run an axis cut so."""
    even = axis.size % degree == 0
    if uneven is Uneven.REPLICATE:
        return even or degree % axis.size == 0
    return even if uneven is Uneven.REFUSE else axis.size >= degree


def _faults(model: Model, hardware: Hardware, layout: Layout, phase: Phase | None) -> Iterator[str]:
    degree_names = {"experts": "ep", "expert_ffn": "moe_tp"}
    seen: set[str] = set()
    for axis in _axes(model):
        rule = RULES.get(axis.name)
        if rule is None or _is_fair(axis, rule.degree(layout), rule.uneven):
            continue
        name = degree_names.get(axis.name, "tp")
        fault = (
            f"{name}: the {axis.size} {axis.name} of {model.name} cannot be cut over {rule.degree(layout)} chips, "
            f"choose a divisor of {axis.size}"
        )
        if fault not in seen:
            seen.add(fault)
            yield fault
    if layout.ep > 1 and not any(axis.name == "experts" for axis in _axes(model)):
        yield f"ep: {model.name} has no routed experts, only ep 1 makes sense"
    if layout.pp > model.num_hidden_layers:
        yield f"pp: {layout.pp} stages for {model.num_hidden_layers} layers, at most one for each layer"
    if model.encoder is not None and (layout.pp > 1 or layout.cp > 1):
        yield f"pp, cp: {model.name} has an encoder, only pp 1 and cp 1 are known for such"
    if any(kind.layer.tokens_per_patch for kind in model.layer_kinds) and (layout.pp > 1 or layout.cp > 1):
        yield f"pp, cp: {model.name} works on patches of tokens, only pp 1 and cp 1 are known for such"
    if layout.cp > 1 and phase is Phase.DECODE:
        yield f"cp: {layout.cp} is for prefill only, in decode cp is 1"
    yield from _domain_faults(hardware, layout)


def _domain_faults(hardware: Hardware, layout: Layout) -> Iterator[str]:
    links = hardware.links
    if layout.chips == 1 or links.scale_out is not None:
        return
    if links.scale_up is None:
        yield f"chips: {layout.chips} asked for, but {hardware.name} has no link to other chips, only 1 makes sense"
    elif layout.chips > links.scale_up.chips:
        yield (
            f"chips: {layout.chips} asked for, but {links.scale_up.name} of {hardware.name} joins {links.scale_up.chips} "
            "and no scale-out link is known, give links.scale_out in its file or take fewer"
        )


def check_layout(model: Model, hardware: Hardware, layout: Layout, phase: Phase | None = None) -> None:
    """Refuse a layout that engines do not run, or that the chip's links do not allow.

    Parameters
    ----------
    model, hardware : Model, Hardware
        Descriptions.
    layout : Layout
        What is asked for.
    phase : Phase, optional
        Prefill or decode, where it is known.

    Raises
    ------
    InputError
        With every fault.
    """
    faults = list(_faults(model, hardware, layout, phase))
    if faults:
        raise InputError("; ".join(faults))


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def legal_layouts(
    model: Model, hardware: Hardware, chips: int, phase: Phase | None = Phase.DECODE
) -> tuple[Layout, ...]:
    """Return every legal layout of one replica over exactly `chips` chips, tensor parallelism first.

    Parameters
    ----------
    model, hardware : Model, Hardware
        Descriptions.
    chips : int
        Chips of the replica.
    phase : Phase, optional
        In prefill, layouts with context parallelism are among them.
    """
    found = []
    for pp in _divisors(chips):
        for dp in _divisors(chips // pp):
            rest = chips // (pp * dp)
            for cp in _divisors(rest) if phase is Phase.PREFILL else [1]:
                for ep in _divisors(chips // pp):
                    layout = Layout(tp=rest // cp, pp=pp, ep=ep, attention_dp=dp, cp=cp)
                    if next(_faults(model, hardware, layout, phase), None) is None:
                        found.append(layout)
    return tuple(found)


def layout_notes(model: Model, layout: Layout) -> tuple[str, ...]:
    """Return what a layout does that a reader should know, in words: copies, padding, assumptions."""
    notes = []
    for axis in _axes(model):
        rule = RULES.get(axis.name)
        degree = 1 if rule is None else rule.degree(layout)
        if rule is None or axis.size % degree == 0:
            continue
        if rule.uneven is Uneven.REPLICATE:
            notes.append(f"{axis.size} {axis.name} over {degree} chips: each is kept {degree // axis.size} times")
        else:
            notes.append(f"{axis.size} {axis.name} over {degree} chips: padded to {-(-axis.size // degree)} on each")
    if layout.tp > 1 and any(axis.name == "kv_rank" for axis in _axes(model)):
        notes.append(f"the latent cache and its down-projections are kept on each of the {layout.tp} tp chips")
    if layout.attention_dp > 1:
        notes.append(f"attention-DP: {layout.attention_dp} copies of all weights but those of routed experts")
    if layout.ep > 1:
        load = f"{layout.expert_imbalance:g} times the mean" if layout.expert_imbalance > 1 else "the mean: balanced"
        notes.append(f"expert load: the busiest of {layout.ep} groups takes {load}")
    return tuple(dict.fromkeys(notes))
