"""Reads a ``quantization_config`` block: in which formats the checkpoint stores its weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.errors import listing
from planner.importers.huggingface.quantization.auto_round import read_auto_round
from planner.importers.huggingface.quantization.exporters import EXPORTERS
from planner.importers.huggingface.quantization.methods import METHODS
from planner.importers.huggingface.quantization.mlx import is_mlx, read_mlx
from planner.importers.huggingface.quantization.modules import (
    Module,
    embedding_module,
    linear_modules,
    lm_head_module,
    unfolded,
)
from planner.importers.huggingface.quantization.patterns import MAX_WORK, TOO_MUCH
from planner.importers.huggingface.quantization.regexes import PatternError
from planner.importers.huggingface.quantization.schemes import Block, Fields, Groups, Plan, UnknownQuantizationError
from planner.importers.huggingface.quantization.torchao import read_torchao
from planner.model import LayerGroup, Model, Quantization, StoredPart
from planner.model.quantization import AnyStored, scheme_of
from planner.precision import NEVER_QUANTIZED, PLAIN_BITS, Role

READERS = {**METHODS, **EXPORTERS, "auto-round": read_auto_round, "mlx": read_mlx, "torchao": read_torchao}

ALIASES = {"awq_marlin": "awq", "gptq_marlin": "gptq", "compressed_tensors": "compressed-tensors"}
"""Names under which engines know a method when they run it in another kernel."""

CODEBOOKS = "stores codebooks and indices, whose bytes are only in the files"

NOT_COMPUTED = {
    "aqlm": CODEBOOKS,
    "fp_quant": "stores rotated groups, and may store master weights beside",
    "gguf": "is that of GGUF files, name the .gguf file instead",
    "higgs": "stores grids of vectors in padded tiles, whose bytes are only in the files",
    "inc": "does not say how weights are stored",
    "moe_wna16": "is a kernel for AWQ and GPTQ, the files' own method is needed",
    "petit_nvfp4": "is a kernel for NVFP4, the files' own method is needed",
    "quanto": "stores tensors in layouts of its own, whose bytes are only in the files",
    "quip": CODEBOOKS,
    "sinq": "stores scales for rows and for columns, whose bytes are only in the files",
    "spqr": "stores outliers, whose number is only in the files",
    "vptq": CODEBOOKS,
}
"""Methods whose bytes do not follow from their blocks, and why."""

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
        # MLX writes its own block twice, under both names, and beside another method's it is what counts (`mlx_lm.utils`).
        if is_mlx(config.get("quantization")):
            return config["quantization"]
        for name in ("quantization_config", "compression_config", "quantization"):
            block = config.get(name)
            if block:
                width = config.get("expert_dtype")
                return {"expert_dtype": width, **block} if width and isinstance(block, Mapping) else block
    return None


def _parts_of(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [config[part] for part in PARTS_OF_CONFIG if isinstance(config.get(part), Mapping)]


def read_quantization(block: Any, model: Model, plain: Sequence[str] = ()) -> tuple[Quantization, tuple[str, ...]]:
    """Return how the weights of a model are stored, and what the reader should know about it.

    Parameters
    ----------
    block : Any
        The block as it stands in the file; None for none.
    model : Model
        The model, whose modules the block's lists are matched against.
    plain : sequence of str
        Tensors that are not quantised though no list says so.

    Raises
    ------
    UnknownQuantizationError
        If the method, or a combination of widths, is not known: sizes guessed from it would be wrong.
    """
    if not block:
        return Quantization(), ()
    if not isinstance(block, Mapping):
        raise UnknownQuantizationError(f"is a {type(block).__name__}, a mapping is expected")
    method = _known(block)
    fields = Fields(block)
    fields.get("quant_method")
    try:
        plan = READERS[method](fields)
        counted = _counted(plan, model, plain)
    except PatternError as error:
        raise UnknownQuantizationError(str(error)) from None
    found = condense(counted)
    odd = _nothing(plan, counted) or _unmatched(plan, model)
    notes = (*plan.notes, *odd, *_unread(fields), *cache_notes(fields))
    return found.model_copy(update={"source": f"quantization_config, {method}"}), notes


def _known(block: Block) -> str:
    """Return the method that a block is of, or raise `UnknownQuantizationError` where none can be read."""
    method, known = method_of(block), ", ".join(sorted(READERS))
    if method in NOT_COMPUTED:
        raise UnknownQuantizationError(
            f"method {method!r} is known, but {NOT_COMPUTED[method]}; to go on, take the block out and give a --precision"
        )
    if not method:
        given = block.get("quant_method")
        wrong = "is not there" if given in (None, "") else f"{str(given)[:40]} is no text"
        raise UnknownQuantizationError(f"quant_method {wrong}, a method is expected ({known})")
    if method not in READERS:
        raise UnknownQuantizationError(f"method {method!r} is not known ({known})")
    return method


def method_of(block: Block) -> str:
    """Return the method that a block is of: `quant_method`, or what its other fields tell."""
    method = block.get("quant_method")
    if isinstance(method, str) and method:
        method = method.lower().removeprefix("intel/")
        return ALIASES.get(method, method)
    if is_mlx(block):
        return "mlx"
    # Blocks of bitsandbytes from before there was a `quant_method` (`AutoQuantizationConfig.from_dict` in transformers).
    if block.get("load_in_4bit") or block.get("load_in_8bit"):
        return "bitsandbytes"
    if "quant_algo" in block or "quantization" in block:
        return "modelopt"
    return "compressed-tensors" if "config_groups" in block else ""


# ---- which module is stored how --------------------------------------------------------------------------------------

Elements = dict[AnyStored | None, float]
"""Elements by how they are stored; None for unquantised."""

Counted = Mapping[tuple[Role, str], Elements]
"""Elements of each tensor, over all layers."""


def _allocated(
    plan: Plan, groups: Groups, module: Module, layer: int | None
) -> Iterator[tuple[AnyStored | None, float]]:
    """Yield how the elements of a module are stored, and how many of them."""
    ignored = plan.ignored.share(module.names, layer, module.copies)
    left = 1 - ignored
    for patterns, how in groups:
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


def _counted(plan: Plan, model: Model, plain: Sequence[str]) -> Counted:
    """Return the elements of every matrix that may be quantised, by how they are stored."""
    total: dict[tuple[Role, str], Elements] = defaultdict(lambda: defaultdict(float))
    for index, layer, count in _layers(plan, model):
        if sum(patterns.work for patterns in plan.lists) > MAX_WORK:
            raise PatternError(TOO_MUCH)
        for module in linear_modules(layer, model.hidden_size, routers=bool(plan.routers)):
            groups = plan.routers if module.role is Role.ROUTER else plan.groups
            for how, elements in _allocated(plan, groups, module, index):
                total[module.role, module.tensor][None if module.tensor in plain else how] += count * elements
    embedding, head = embedding_module(model), lm_head_module(model)
    # A tied head is the embedding, read once more.
    tied = (plan.embedding, replace(head, names=embedding.names))
    for groups, module in ((plan.embedding, embedding), tied if model.tie_word_embeddings else (plan.head, head)):
        for how, elements in _allocated(plan, groups, module, None) if groups else ():
            total[module.role, module.tensor][how] += elements
    quantized = [table.tensor for table in model.tables if table.quantized]
    for table in quantized:
        total[table.role, table.name][plan.tables] += table.parameters
    if quantized and not plan.embedding:
        total[embedding.role, embedding.tensor][None] += model.embedding.matrix_elements
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


# ---- what the reader should know -------------------------------------------------------------------------------------


def _listed(names: Sequence[str]) -> str:
    """Return the first of some names in words."""
    return listing((name[:80] for name in names), most=MAX_TOLD)


def _unmatched(plan: Plan, model: Model) -> tuple[str, ...]:
    """Return a note on what the block names and the model does not have."""
    found = dict.fromkeys(entry for patterns in plan.lists for entry in patterns.unmatched(model.num_hidden_layers))
    if not found:
        return ()
    names = _listed([repr(entry) for entry in found])
    return (f"quantization_config names modules that match none of the model's: {names}; check the weight bytes",)


def _nothing(plan: Plan, counted: Counted) -> tuple[str, ...]:
    """Return a note where the block quantises no module of the model, though it has a scheme."""
    asked = any(how is not None for groups in (plan.groups, plan.head, plan.embedding) for _, how in groups)
    if not asked or any(how is not None and count > 0 for kinds in counted.values() for how, count in kinds.items()):
        return ()
    return (
        "quantization_config quantises none of the model's modules: the weights count in 16 bits, check the weight bytes",
    )


def _unread(fields: Fields) -> tuple[str, ...]:
    """Return a note on fields that no reader asked for and that are not known to be harmless."""
    left = list(fields.unread())
    return (f"quantization_config: not read, and may change the weights: {_listed(left)}",) if left else ()


_CACHES = {("float", 8): "fp8", ("float", 4): "fp4", ("int", 8): "int8", ("int", 4): "int4"}
"""Values of `--kv-precision` by type and bits of the cache."""

_CACHE_NAMES = {"FP8": "fp8", "NVFP4": "fp4", "INT8": "int8", "INT4": "int4"}
"""Values of `--kv-precision` by the names that ModelOpt gives them."""


def cache_notes(block: Block) -> tuple[str, ...]:
    """Return a note where the checkpoint was calibrated for a narrow KV cache, which is a choice of the engine's."""
    for owner in (block, block.get("quantization")):
        for name in ("kv_cache_scheme", "kv_cache_quant_algo"):
            scheme = owner.get(name) if isinstance(owner, Mapping) else None
            if not scheme or (isinstance(scheme, str) and scheme.upper() == "NONE"):
                continue
            says, kind = str(scheme)[:40], _CACHE_NAMES.get(str(scheme).upper())
            if isinstance(scheme, Mapping):
                width = scheme.get("num_bits", 8)
                says = f"{scheme.get('type', 'int')} of {width} bits"[:40]
                kind = _CACHES.get((str(scheme.get("type", "int")), width if type(width) is int else 0))
            option = (
                f"give --kv-precision {kind} to count it so" if kind else "which is not a --kv-precision that is known"
            )
            return (f"the checkpoint was calibrated for a KV cache in {says} ({name}): {option}",)
    return ()
