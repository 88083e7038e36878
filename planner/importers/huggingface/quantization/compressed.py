"""The quantisation blocks of compressed-tensors, which LLM Compressor writes: schemes for groups of modules, and formats of storage.

Facts are those of compressed-tensors 0.12: `quantization/quant_args.py` and `quant_scheme.py` for the fields, `utils/match.py` for which
scheme a module takes, `config/format.py` and the compressors for what each format stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.huggingface.quantization.patterns import Patterns
from planner.importers.huggingface.quantization.schemes import (
    EIGHT,
    FLOAT16,
    FOUR,
    Block,
    Groups,
    Plan,
    UnknownQuantizationError,
    flag,
    mapping,
    modules,
    number,
    one_of,
    stored,
    text,
    tile_elements,
)
from planner.model.quantization import AnyStored

CLASSES = ("Linear",)
"""Classes of modules whose weights are matrices of layers, or the head."""

_COMPRESSED: Mapping[tuple[str | None, int, int | None], str] = {
    # (weights, their bits, bits of activations or None): precision
    ("int", 8, 8): "int8",
    ("int", 4, 8): "w4a8",
    ("float", 8, 8): "fp8",
    ("float", 8, None): "w8a16",
}

NVFP4_GROUP, MXFP4_GROUP = 16, 32

_FLOAT4 = {
    # (group size, bits of activations or None): precision
    (NVFP4_GROUP, 4): "nvfp4",
    (NVFP4_GROUP, 8): "w4a8",
    (NVFP4_GROUP, None): "w4a16",
    (MXFP4_GROUP, 4): "mxfp4",
    (MXFP4_GROUP, 8): "mxfp4_w4a8",
    (MXFP4_GROUP, None): "mxfp4_w4a16",
}

_SPARSE = ("sparse-24-bitmask", "sparse-bitmask")
"""Storage that leaves zeros out: how many bytes it takes does not follow from the block."""

DENSE, MARLIN_24 = "dense", "marlin-24"
_WHOLE_BYTES = ("int-quantized", "float-quantized", "naive-quantized", "mxfp8-quantized")
_PACKED = ("pack-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized")
_FORMATS = (None, DENSE, MARLIN_24, *_WHOLE_BYTES, *_PACKED)
"""Formats of a group; the block's own may say `mixed-precision` beside."""

_STRATEGIES = (None, "tensor", "channel", "group", "tensor_group", "block")


def read_compressed_tensors(block: Block) -> Plan:
    """Read a block of compressed-tensors."""
    inner = mapping(block.get("quantization_config") or block, "quantization_config")
    configs = inner.get("config_groups")
    if not isinstance(configs, Mapping) or not configs:
        raise UnknownQuantizationError("config_groups is missing, it says how weights are stored")
    for owner in (block, inner):
        sparse = owner.get("sparsity_config")
        _storage(text(sparse, "format") if isinstance(sparse, Mapping) else None)
    groups, embedding, notes = groups_by_target(configs, _storage(text(inner, "format")))
    if inner.get("transform_config"):
        notes += (
            "quantization_config: transform_config asks for rotations in every pass, their bytes and time are not counted",
        )
    return Plan(
        groups=groups, ignored=Patterns(modules(inner, "ignore")), head=groups, embedding=embedding, notes=notes
    )


def _storage(name: str | None) -> str | None:
    """Return the format that a block is stored in; None where each group has its own."""
    if name in _SPARSE:
        raise UnknownQuantizationError(f"format {name!r} leaves out zeros, its size is only in the safetensors files")
    return None if name == "mixed-precision" else one_of(name, (*_FORMATS, "mixed-precision"), "format")


# ---- which module takes which scheme ---------------------------------------------------------------------------------


def groups_by_target(configs: Block, usual: str | None) -> tuple[Groups, Groups, tuple[str, ...]]:
    """Return how matrices, and how embeddings are stored, and notes.

    A module takes the scheme of its own name if there is one, else of the first regular expression that matches in alphabetic order,
    else of its class (`match_targets` in `utils/match.py`); a target that several groups name is the last one's.

    Parameters
    ----------
    configs : mapping
        Groups by name, each with its targets and scheme.
    usual : str or None
        The format of groups that do not say theirs.
    """
    by_target: dict[str, AnyStored | None] = {}
    for group in configs.values():
        fields = mapping(group, "a config group")
        how = _scheme(fields, _storage(text(fields, "format")) or usual)
        for target in modules(fields, "targets") or CLASSES:
            by_target[str(target)] = how
    classes = {target for target in by_target if target[:1].isupper() and "." not in target and "*" not in target}
    names: dict[AnyStored | None, list[str]] = {}
    for target, how in by_target.items():
        if target not in classes and not target.startswith("re:"):
            names.setdefault(how, []).append(target)
    found: list[tuple[Patterns | None, AnyStored | None]] = [(Patterns(listed), how) for how, listed in names.items()]
    found += [(Patterns([target]), by_target[target]) for target in sorted(by_target) if target.startswith("re:")]
    found += [(None, by_target[target]) for target in CLASSES if target in classes]
    embedding: Groups = ((None, by_target["Embedding"]),) if "Embedding" in classes else ()
    odd = sorted(classes - {*CLASSES, "Embedding"})
    note = f"quantization_config: classes other than Linear and Embedding are not followed, nothing counts as quantised by {', '.join(odd)[:200]}"
    return tuple(found), embedding, (note,) if odd else ()


# ---- how a scheme is stored ------------------------------------------------------------------------------------------


def _scheme(group: Block, storage: str | None) -> AnyStored | None:
    """Return how a group's weights are stored; None for 16 bits."""
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        raise UnknownQuantizationError("a config group has no weights")
    kind, bits = (
        one_of(text(weights, "type", "int"), ("int", "float"), "type"),
        number(weights, "num_bits", default=EIGHT),
    )
    inputs = _input_bits(group.get("input_activations"))
    size, is_tile = _group_elements(weights)
    if storage == DENSE:
        return None
    if storage is None and kind == "int" and (inputs is not None or bits not in (FOUR, EIGHT)):
        storage = _WHOLE_BYTES[0]
    if kind == "float" and bits == FOUR:
        return _float4(weights, size, inputs)
    if kind == "int" and bits <= EIGHT:
        return _integers(weights, size, inputs, storage)
    precision = _COMPRESSED.get((kind, bits, inputs))
    if precision is None:
        raise UnknownQuantizationError(f"{kind} weights of {bits} bits with activations of {inputs} are not known")
    if is_tile:
        return stored("fp8_block" if precision == "fp8" else precision, group_size=size, scale_bits=32)
    usual = EIGHT if storage == "mxfp8-quantized" else FLOAT16
    return stored(precision, group_size=size, scale_bits=_scale_bits(weights, usual))


def _float4(weights: Block, size: int, inputs: int | None) -> AnyStored:
    if (size, inputs) not in _FLOAT4:
        raise UnknownQuantizationError(
            f"4-bit floats in groups of {size} with activations of {inputs} bits are not known"
        )
    return stored(_FLOAT4[size, inputs], bits=FOUR, group_size=size, scale_bits=_scale_bits(weights, EIGHT))


def _integers(weights: Block, size: int, inputs: int | None, storage: str | None) -> AnyStored:
    """Return how whole numbers are stored: packed in their own width, or in a byte each; with zero-points likewise unless symmetric."""
    bits = number(weights, "num_bits", default=EIGHT)
    kept: float = EIGHT if storage in _WHOLE_BYTES else bits
    zero = 0 if flag(weights, "symmetric", default=True) else kept
    if storage == MARLIN_24:
        # Half of the weights, and two bits for the place of each (`marlin_24.py`; `B_24` and `B_meta` in vLLM's `gptq_marlin_24.py`).
        kept, zero = bits / 2 + 1, 0
    scale = _scale_bits(weights, FLOAT16) + zero
    if inputs is None or inputs >= FLOAT16:
        precision = "w8a16" if bits == EIGHT else "w4a16"
        return stored(precision, bits=kept, group_size=size, scale_bits=scale)
    narrow = _COMPRESSED.get(("int", bits, inputs))
    if narrow is None:
        raise UnknownQuantizationError(f"int weights of {bits} bits with activations of {inputs} are not known")
    return stored(narrow, bits=kept, group_size=size, scale_bits=scale)


def _input_bits(arguments: Any) -> int | None:
    return number(mapping(arguments, "input_activations"), "num_bits", default=EIGHT) if arguments else None


_SCALE_TYPES = {
    "torch.uint8": 8,
    "torch.float8_e4m3fn": 8,
    "torch.float8_e8m0fnu": 8,
    "torch.bfloat16": 16,
    "torch.float16": 16,
    "torch.float32": 32,
}


def _scale_bits(weights: Block, default: int) -> int:
    kind = text(weights, "scale_dtype")
    return default if kind is None else _SCALE_TYPES[one_of(kind, _SCALE_TYPES, "scale_dtype") or ""]


def _group_elements(weights: Block) -> tuple[int, bool]:
    """Return how many weights share a scale, 0 for a channel or more, and whether they are a tile."""
    strategy = one_of(text(weights, "strategy"), _STRATEGIES, "strategy")
    if strategy == "block":
        structure = weights.get("block_structure")
        sides = structure.split("x") if isinstance(structure, str) else structure
        if isinstance(sides, list) and all(isinstance(side, str) and side.isdecimal() for side in sides):
            sides = [int(side[:9]) for side in sides]
        return tile_elements({"block_structure": sides}, "block_structure"), True
    weights.get("block_structure")
    size = number(weights, "group_size", default=-1, least=-1)
    if strategy in ("group", "tensor_group") and size < 1:
        raise UnknownQuantizationError(f"strategy {strategy!r} needs a group_size, the weights that share a scale")
    return max(size, 0), False
