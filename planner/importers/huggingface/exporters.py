"""The quantisation blocks of the exporters: compressed-tensors (LLM Compressor), NVIDIA ModelOpt and AMD Quark.

Unlike the methods of the transformers library they quantise every linear module that their list of exceptions does not name, the LM head
included, and they may mix schemes in one checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.importers.huggingface.patterns import Patterns
from planner.importers.huggingface.schemes import (
    EIGHT,
    FLOAT16,
    FOUR,
    Block,
    Plan,
    UnknownQuantizationError,
    mapping,
    modules,
    number,
    stored,
    text,
    tile_elements,
    weight_only,
)
from planner.model.quantization import AnyStored

# ---- compressed-tensors ----------------------------------------------------------------------------------------------

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

_SPARSE = ("sparse-24-bitmask", "sparse-bitmask", "marlin-24")
"""Storage that leaves zeros out: how many bytes it takes does not follow from the block."""


def _bits_of(arguments: Any) -> int | None:
    return number(mapping(arguments, "input_activations"), "num_bits") if arguments else None


def _compressed_tensors(block: Block) -> Plan:
    groups = block.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise UnknownQuantizationError("config_groups is missing, it says how weights are stored")
    sparse = block.get("sparsity_config")
    formats = [text(block, "format"), text(sparse, "format") if isinstance(sparse, Mapping) else None]
    for kind in formats:
        if kind in _SPARSE:
            raise UnknownQuantizationError(
                f"format {kind!r} leaves out zeros, its size is only in the safetensors files"
            )
    readers = [_compressed_group(mapping(group, "a config group")) for group in groups.values()]
    ignored = Patterns(modules(block, "ignore"))
    return Plan(groups=tuple(readers), ignored=ignored, head=True)


def _compressed_group(group: Block) -> tuple[Patterns | None, AnyStored]:
    weights = group.get("weights")
    if not isinstance(weights, Mapping):
        raise UnknownQuantizationError("a config group has no weights")
    targets = modules(group, "targets")
    # A target that is the name of a class, such as Linear, takes in every module of that class.
    named = [target for target in targets if not (isinstance(target, str) and target[:1].isupper())]
    return Patterns(named) if named and len(named) == len(targets) else None, _compressed_scheme(weights, group)


def _compressed_scheme(weights: Block, group: Block) -> AnyStored:
    kind, bits = text(weights, "type", "int"), number(weights, "num_bits", default=EIGHT)
    inputs = _bits_of(group.get("input_activations"))
    strategy = text(weights, "strategy")
    size = _group_elements(weights, strategy)
    if kind == "float" and bits == FOUR:
        if (size, inputs) not in _FLOAT4:
            raise UnknownQuantizationError(
                f"4-bit floats in groups of {size} with activations of {inputs} bits are not known"
            )
        return stored(_FLOAT4[size, inputs], bits=FOUR, group_size=size, scale_bits=EIGHT)
    if kind == "int" and bits <= EIGHT and (inputs is None or inputs >= FLOAT16):
        zero = 0 if weights.get("symmetric", True) else bits
        return weight_only(bits, size, _scale_bits(weights, FLOAT16) + zero)
    precision = _COMPRESSED.get((kind, bits, inputs))
    if precision is None:
        raise UnknownQuantizationError(f"{kind} weights of {bits} bits with activations of {inputs} are not known")
    if strategy == "block":
        return stored("fp8_block" if precision == "fp8" else precision, group_size=size, scale_bits=32)
    return stored(precision, group_size=size, scale_bits=_scale_bits(weights, FLOAT16))


_SCALE_TYPES = {
    "torch.uint8": 8,
    "torch.float8_e4m3fn": 8,
    "torch.bfloat16": 16,
    "torch.float16": 16,
    "torch.float32": 32,
}


def _scale_bits(weights: Block, default: int) -> int:
    kind = text(weights, "scale_dtype")
    if kind is None:
        return default
    if kind not in _SCALE_TYPES:
        raise UnknownQuantizationError(f"scale_dtype {kind!r} is not known ({', '.join(_SCALE_TYPES)})")
    return _SCALE_TYPES[kind]


def _group_elements(weights: Block, strategy: str | None) -> int:
    if strategy == "block":
        return tile_elements(weights, "block_structure")
    if strategy not in (None, "tensor", "channel", "group", "tensor_group"):
        raise UnknownQuantizationError(f"strategy {strategy!r} is not known")
    size = number(weights, "group_size", default=-1, least=-1)
    return max(size, 0)


# ---- NVIDIA ModelOpt -------------------------------------------------------------------------------------------------

_ALGORITHMS: Mapping[str, str] = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "FP8_PB_WO": "fp8_block",
    "FP8_PB_REAL": "fp8_block",
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "NVFP4_SVDQUANT": "nvfp4",
    "W4A16_NVFP4": "w4a16",
    "W4A8_NVFP4_FP8": "w4a8",
    "W4A8_MXFP4_FP8": "mxfp4_w4a8",
    "W4A16_MXFP4": "mxfp4_w4a16",
    "MXFP4": "mxfp4",
    "MXFP8": "fp8",
    "W4A16_AWQ": "w4a16",
    "W4A8_AWQ": "w4a8",
    "INT4_AWQ": "w4a16",
    "W8A16": "w8a16",
    "W8A8_SQ_PER_CHANNEL": "int8",
    "W8A8_SQ_PER_CHANNEL_PER_TENSOR_PLUGIN": "int8",
    "INT8_SQ": "int8",
}

_FP4_SCALE = {"NVFP4": NVFP4_GROUP, "MXFP4": MXFP4_GROUP, "MXFP8": MXFP4_GROUP}
"""Weights that share an 8-bit scale, by what is in an algorithm's name."""


def _algorithm(name: Any, group_size: int | None) -> AnyStored:
    algorithm = str(name).upper()
    if algorithm not in _ALGORITHMS:
        raise UnknownQuantizationError(f"quant_algo {name!r} is not known ({', '.join(_ALGORITHMS)})")
    precision = _ALGORITHMS[algorithm]
    for mark, group in _FP4_SCALE.items():
        if mark in algorithm:
            return stored(precision, group_size=group_size or group, scale_bits=EIGHT)
    if precision in ("w4a16", "w4a8"):
        # Weights without zero-points (ModelOpt, export/quant_utils.py).
        return stored(precision, group_size=group_size or 128, scale_bits=FLOAT16)
    return precision


def _modelopt(block: Block) -> Plan:
    """Read a block of ModelOpt, of config.json or of hf_quant_config.json; MIXED_PRECISION lists an algorithm for each module."""
    inner = mapping(block.get("quantization", block), "quantization")
    ignored = Patterns(modules(inner, "ignore", "exclude_modules"))
    layers = inner.get("quantized_layers")
    if layers:
        return Plan(groups=_mixed(mapping(layers, "quantized_layers")), ignored=ignored, head=True)
    groups = inner.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    source = inner if inner.get("group_size") else weights if isinstance(weights, Mapping) else {}
    size = number(source, "group_size") if source.get("group_size") else None
    return Plan(groups=((None, _algorithm(inner.get("quant_algo"), size)),), ignored=ignored, head=True)


def _mixed(layers: Block) -> tuple[tuple[Patterns, AnyStored], ...]:
    named: dict[AnyStored, list[str]] = {}
    for module, fields in layers.items():
        own = mapping(fields, module)
        size = number(own, "group_size") if own.get("group_size") else None
        named.setdefault(_algorithm(own.get("quant_algo"), size), []).append(module)
    return tuple((Patterns(names), how) for how, names in named.items())


# ---- AMD Quark -------------------------------------------------------------------------------------------------------

_QUARK: Mapping[tuple[str | None, str | None], str] = {
    # (type of weights, type of activations or None): precision
    ("fp8_e4m3", "fp8_e4m3"): "fp8",
    ("fp8_e4m3", None): "w8a16",
    ("int8", "int8"): "int8",
    ("int8", None): "w8a16",
    ("int4", None): "w4a16",
    ("uint4", None): "w4a16",
    ("int4", "int8"): "w4a8",
    ("int4", "fp8_e4m3"): "w4a8",
    ("fp4", "fp4"): "mxfp4",
    ("fp4", "fp8_e4m3"): "mxfp4_w4a8",
    ("fp4", None): "mxfp4_w4a16",
}


def _quark(block: Block) -> Plan:
    overall = mapping(block.get("global_quant_config"), "global_quant_config")
    layers = mapping(block.get("layer_quant_config") or {}, "layer_quant_config")
    own = tuple((Patterns([name]), _quark_scheme(mapping(fields, name))) for name, fields in layers.items())
    ignored = Patterns(modules(block, "exclude"))
    return Plan(groups=(*own, (None, _quark_scheme(overall))), ignored=ignored, head=True)


def _innermost(tensor: Any) -> Block:
    """Return the description of a tensor; weights of two stages (int4 in fp8) are stored as the last says."""
    if isinstance(tensor, Sequence) and not isinstance(tensor, str) and tensor:
        tensor = tensor[-1]
    return tensor if isinstance(tensor, Mapping) else {}


def _quark_scheme(fields: Block) -> AnyStored:
    weights, inputs = _innermost(fields.get("weight")), _innermost(fields.get("input_tensors"))
    key = (text(weights, "dtype"), text(inputs, "dtype"))
    if key not in _QUARK:
        raise UnknownQuantizationError(f"quark weights of type {key[0]!r} with activations of {key[1]!r} are not known")
    if weights.get("qscheme") != "per_group":
        return stored(_QUARK[key])
    zero = 0 if weights.get("symmetric", True) else FOUR
    scale = EIGHT if weights.get("scale_format") == "e8m0" else FLOAT16 + zero
    return stored(_QUARK[key], group_size=number(weights, "group_size", default=128), scale_bits=scale)


EXPORTERS: dict[str, Callable[[Block], Plan]] = {
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "modelopt_mixed": _modelopt,
    "quark": _quark,
}
"""Readers of the exporters' blocks, by ``quant_method``."""
