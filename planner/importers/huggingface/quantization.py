"""Reads a ``quantization_config`` block: in which formats the checkpoint stores its weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from planner.importers.huggingface.exporters import EXPORTERS
from planner.importers.huggingface.modules import Module, linear_modules, lm_head_module, unfolded
from planner.importers.huggingface.patterns import MAX_WORK, TOO_MUCH
from planner.importers.huggingface.regexes import PatternError
from planner.importers.huggingface.schemes import METHODS, Block, Plan, UnknownQuantizationError
from planner.model import LayerGroup, Model, Quantization, StoredPart
from planner.model.quantization import AnyStored, scheme_of
from planner.precision import NEVER_QUANTIZED, PLAIN_BITS, Role

READERS = METHODS | EXPORTERS

PARTS_OF_CONFIG = ("text_config", "language_config", "llm_config", "thinker_config")
"""Where the block stands in files that describe several models."""

MAX_TOLD_APART = 1000
"""More layers than this are not told apart one by one."""

MAX_TOLD = 3
"""Modules named in a note."""


def find_block(data: Mapping[str, Any]) -> Any:
    """Return the quantisation block of a config, wherever it stands; None where there is none.

    DeepSeek-V4 states the width of its experts beside the block (`expert_dtype`): it is handed on as part of it.
    """
    inside = [data, *_parts_of(data), *(part for whole in _parts_of(data) for part in _parts_of(whole))]
    for config in inside:
        for name in ("quantization_config", "compression_config"):
            block = config.get(name)
            if block:
                width = config.get("expert_dtype")
                return {"expert_dtype": width, **block} if width and isinstance(block, Mapping) else block
    return None


def _parts_of(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [config[part] for part in PARTS_OF_CONFIG if isinstance(config.get(part), Mapping)]


def read_quantization(block: Any, model: Model) -> tuple[Quantization, tuple[str, ...]]:
    """Return how the weights of a model are stored, and what the reader should know about it.

    Parameters
    ----------
    block : Any
        The block as it stands in the file; None for none.
    model : Model
        The model, whose modules the block's lists are matched against.

    Raises
    ------
    UnknownQuantizationError
        If the method, or a combination of widths, is not known: sizes guessed from it would be wrong.
    """
    if not block:
        return Quantization(), ()
    if not isinstance(block, Mapping):
        raise UnknownQuantizationError(f"is a {type(block).__name__}, a mapping is expected")
    method = method_of(block)
    if method not in READERS:
        raise UnknownQuantizationError(f"method {method!r} is not known ({', '.join(sorted(READERS))})")
    try:
        plan = READERS[method](block)
        found = condense(_counted(plan, model))
    except PatternError as error:
        raise UnknownQuantizationError(str(error)) from None
    return found.model_copy(update={"source": f"quantization_config, {method}"}), _notes(plan, model)


def method_of(block: Block) -> str:
    """Return the method that a block is of: `quant_method`, or what its other fields tell."""
    method = block.get("quant_method")
    if isinstance(method, str) and method:
        return method.lower().replace("compressed_tensors", "compressed-tensors").removeprefix("intel/")
    if "quant_algo" in block or "quantization" in block:
        return "modelopt"
    return "compressed-tensors" if "config_groups" in block else ""


# ---- which module is stored how --------------------------------------------------------------------------------------

Elements = dict[AnyStored | None, float]
"""Elements by how they are stored; None for unquantised."""

Counted = Mapping[tuple[Role, str], Elements]
"""Elements of each tensor, over all layers."""


def _allocated(plan: Plan, module: Module, layer: int | None) -> Iterator[tuple[AnyStored | None, float]]:
    """Yield how the elements of a module are stored, and how many of them."""
    ignored = plan.ignored.share(module.names, layer, module.copies)
    left = 1 - ignored
    for patterns, how in plan.groups:
        share = min(left, 1.0 if patterns is None else patterns.share(module.names, layer, module.copies))
        left -= share
        yield how, share * module.elements
    yield None, (left + ignored) * module.elements


def _layers(plan: Plan, model: Model) -> Iterator[tuple[int, LayerGroup, int]]:
    """Yield a number, a layer and how many of it there are: one by one only where the block tells layers of a kind apart."""
    if not (plan.ignored.layers_matter or any(p.layers_matter for p, _ in plan.groups if p is not None)):
        yield from ((0, kind.layer, kind.count) for kind in model.layer_kinds)
    elif model.num_hidden_layers > MAX_TOLD_APART:
        raise UnknownQuantizationError(
            f"names single layers, which is not followed in more than {MAX_TOLD_APART} layers"
        )
    else:
        yield from ((index, layer, 1) for index, layer in enumerate(unfolded(model.layers)))


def _counted(plan: Plan, model: Model) -> Counted:
    """Return the elements of every matrix that may be quantised, by how they are stored."""
    total: dict[tuple[Role, str], Elements] = defaultdict(lambda: defaultdict(float))
    lists = [plan.ignored, *(patterns for patterns, _ in plan.groups if patterns is not None)]
    for index, layer, count in _layers(plan, model):
        if sum(patterns.work for patterns in lists) > MAX_WORK:
            raise PatternError(TOO_MUCH)
        for module in linear_modules(layer, model.hidden_size):
            for how, elements in _allocated(plan, module, index):
                total[module.role, module.tensor][how] += count * elements
    if plan.head and not model.tie_word_embeddings:
        head = lm_head_module(model)
        for how, elements in _allocated(plan, head, None):
            total[head.role, head.tensor][how] += elements
    return total


# ---- the shortest description ----------------------------------------------------------------------------------------


def condense(counted: Counted) -> Quantization:
    """Return the shortest description of how tensors are stored: the usual scheme of dense layers and experts, and what differs."""
    roles: dict[Role, Elements] = defaultdict(lambda: defaultdict(float))
    dense: Elements = defaultdict(float)
    for (role, _), elements in counted.items():
        for how, count in elements.items():
            roles[role][how] += count
            if role is not Role.EXPERTS and role not in NEVER_QUANTIZED:
                dense[how] += count
    linear = _usual(dense) or "bf16"
    experts = (_usual(roles[Role.EXPERTS]) or "bf16") if Role.EXPERTS in roles else linear
    unquantized: list[Role] = []
    parts: list[StoredPart] = []
    for role in (role for role in Role if role in roles):
        own = _own(role, linear, experts)
        if own is not None and role not in NEVER_QUANTIZED and _only(roles[role]) == (None,):
            unquantized.append(role)
        else:
            parts += _parts(role, own, counted, roles[role])
    return Quantization(
        linear=linear,
        experts=None if experts == linear else experts,
        unquantized=tuple(unquantized),
        parts=tuple(parts),
    )


def _own(role: Role, linear: AnyStored, experts: AnyStored) -> AnyStored | None:
    """Return how a class of tensors is stored unless a part says otherwise; None for bf16."""
    usual = experts if role is Role.EXPERTS else linear
    if role in NEVER_QUANTIZED and scheme_of(linear).weights.bits < PLAIN_BITS:
        usual = "bf16"
    return None if usual == "bf16" else usual


def _only(elements: Elements) -> tuple[AnyStored | None, ...]:
    """Return the ways in which there are elements stored."""
    return tuple(how for how, count in elements.items() if count > 0)


def _usual(elements: Elements) -> AnyStored | None:
    """Return how most of the quantised elements are stored; None where none is quantised."""
    quantized = {how: count for how, count in elements.items() if how is not None and count > 0}
    return max(quantized, key=lambda how: quantized[how]) if quantized else None


def _parts(role: Role, own: AnyStored | None, counted: Counted, together: Elements) -> Iterator[StoredPart]:
    """Yield what differs in a tensor class from the scheme `own`: the class as a whole, or tensors of it and shares of them."""
    if len(_only(together)) == 1:
        yield from _differing(str(role), own, together)
        return
    for (other, tensor), elements in counted.items():
        if other is role:
            yield from _differing(tensor, own, elements)


def _differing(of: str, own: AnyStored | None, elements: Elements) -> Iterator[StoredPart]:
    total = sum(elements.values())
    for how, count in elements.items():
        if count > 0 and how != own:
            share = count / total
            yield StoredPart(
                of=of, stored="bf16" if how is None else how, share=1 if share == 1 else round(share, SHARE_DIGITS)
            )


SHARE_DIGITS = 6
"""Decimals of a share: bytes come out to a millionth."""


def _notes(plan: Plan, model: Model) -> tuple[str, ...]:
    """Return notes on what the block names and the model does not have."""
    lists = [plan.ignored, *(patterns for patterns, _ in plan.groups if patterns is not None)]
    unmatched = [entry for patterns in lists for entry in patterns.unmatched(model.num_hidden_layers)]
    if not unmatched:
        return ()
    shown = ", ".join(repr(entry[:80]) for entry in unmatched[:MAX_TOLD])
    more = f" and {len(unmatched) - MAX_TOLD} more" if len(unmatched) > MAX_TOLD else ""
    return (f"quantization_config names modules that match none of the model's: {shown}{more}; check the weight bytes",)
