"""The quantisation blocks of NVIDIA ModelOpt and AMD Quark, and the table of all exporters.

Unlike the methods of the transformers library they quantise every linear module that their list of exceptions does not name, the LM head
included, and they may mix schemes in one checkpoint. Facts are those of ModelOpt (`export/quant_utils.py`, `convert_hf_config.py`) and of
vLLM's readers (`quantization/modelopt.py`, `quark/quark.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.importers.huggingface.quantization.compressed import (
    CLASSES,
    MXFP4_GROUP,
    NVFP4_GROUP,
    groups_by_target,
    read_compressed_tensors,
)
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
)
from planner.model.quantization import AnyStored

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


def _algorithm(name: Any, group_size: int | None) -> AnyStored | None:
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
    """Read a block of ModelOpt, of config.json or of hf_quant_config.json.

    MIXED_PRECISION lists an algorithm for each module, or a group of modules for each scheme. Without an algorithm, as where only the KV
    cache is quantised, the weights are not.
    """
    inner = mapping(block.get("quantization", block), "quantization")
    groups, notes = _modelopt_groups(inner)
    return Plan(groups=groups, ignored=Patterns(modules(inner, "ignore", "exclude_modules")), head=groups, notes=notes)


def _modelopt_groups(inner: Block) -> tuple[Groups, tuple[str, ...]]:
    algorithm, layers = text(inner, "quant_algo"), inner.get("quantized_layers")
    if layers:
        return _mixed(mapping(layers, "quantized_layers")), ()
    configs = mapping(inner.get("config_groups") or {}, "config_groups")
    mixed = algorithm is not None and algorithm.upper() == "MIXED_PRECISION"
    if mixed and not configs:
        raise UnknownQuantizationError("quantized_layers is missing, it says how weights of MIXED_PRECISION are stored")
    if mixed or len(configs) > 1:
        return groups_by_target(configs, None)[0], ()
    if algorithm is None or algorithm.upper() in NO_ALGORITHM:
        return ((None, None),), (
            f"quantization_config: quant_algo is {algorithm or 'null'}, so the weights count in 16 bits",
        )
    group = mapping(next(iter(configs.values()), {}), "a config group")
    weights = mapping(group.get("weights") or {}, "weights")
    # The algorithm says what the group's weights are.
    for name in ("num_bits", "type"):
        weights.get(name)
    named = [target for target in modules(group, "targets") if target not in CLASSES]
    sizes = (number(fields, "group_size") for fields in (inner, weights) if fields.get("group_size"))
    return ((Patterns(named) if named else None, _algorithm(algorithm, next(sizes, None))),), ()


NO_ALGORITHM = ("NONE", "NO_QUANT", "")


def _mixed(layers: Block) -> Groups:
    named: dict[AnyStored | None, list[str]] = {}
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


_MICROSCALED_BITS = {"fp6_e2m3": 6, "fp6_e3m2": 6}
"""Types that no precision is called after: kept in their width, with an 8-bit scale for each group, and computed in 16 bits."""

_NARROWEST = ("fp4", "int4", "uint4", "fp6_e2m3", "fp6_e3m2", "int8", "fp8_e4m3")
"""Of weights in two stages, such as int4 in fp8, or fp4 with scales in fp8, the narrower type is what is stored."""


def _quark(block: Block) -> Plan:
    """Read a block of Quark: settings by a module's name go before those by its class, and those before the rest."""
    overall = _quark_scheme(mapping(block.get("global_quant_config"), "global_quant_config"))
    layers = mapping(block.get("layer_quant_config") or {}, "layer_quant_config")
    kinds = mapping(block.get("layer_type_quant_config") or {}, "layer_type_quant_config")
    by_kind = {kind.rpartition(".")[2]: _quark_scheme(mapping(fields, kind)) for kind, fields in kinds.items()}
    odd = [kind for kind in by_kind if kind not in (*CLASSES, "Embedding")]
    if odd:
        raise UnknownQuantizationError(
            f"layer_type_quant_config: class {odd[0][:60]!r} is not known (Linear, Embedding)"
        )
    own: Groups = tuple((Patterns([name]), _quark_scheme(mapping(fields, name))) for name, fields in layers.items())
    groups: Groups = (*own, (None, next((by_kind[kind] for kind in by_kind if kind in CLASSES), overall)))
    embedding: Groups = ((None, by_kind["Embedding"]),) if "Embedding" in by_kind else ()
    return Plan(groups=groups, ignored=Patterns(modules(block, "exclude")), head=groups, embedding=embedding)


def _narrowest(tensor: Any) -> Block:
    """Return the description of a tensor: of several stages the one that its elements are stored in."""
    stages = [stage for stage in (tensor if isinstance(tensor, list) else [tensor]) if isinstance(stage, Mapping)]
    for stage in stages:
        stage.get("qscheme")
    known = [stage for stage in stages if stage.get("dtype") in _NARROWEST]
    return min(known, key=lambda stage: _NARROWEST.index(stage["dtype"])) if known else stages[0] if stages else {}


def _quark_scheme(fields: Block) -> AnyStored | None:
    """Return how weights are stored; None where they are not quantised."""
    weights, inputs = _narrowest(fields.get("weight")), _narrowest(fields.get("input_tensors"))
    if not weights:
        return None
    key = (text(weights, "dtype"), text(inputs, "dtype"))
    bits = _MICROSCALED_BITS.get(key[0] or "")
    precision = "w8a16" if bits else _QUARK.get(key)
    if precision is None:
        raise UnknownQuantizationError(f"quark weights of type {key[0]!r} with activations of {key[1]!r} are not known")
    one_of(text(weights, "qscheme"), (None, "per_tensor", "per_channel", "per_group"), "qscheme")
    scale_format = text(weights, "scale_format")
    if weights.get("qscheme") != "per_group":
        return stored(precision, bits=bits)
    size = number(weights, "group_size", default=MXFP4_GROUP if bits else 128)
    if bits or scale_format == "e8m0" or (key[0] == "fp4" and size == NVFP4_GROUP):
        return stored(
            "nvfp4" if key == ("fp4", "fp4") and size == NVFP4_GROUP else precision,
            bits=bits,
            group_size=size,
            scale_bits=EIGHT,
        )
    zero = 0 if flag(weights, "symmetric", default=True) else FOUR
    return stored(precision, group_size=size, scale_bits=FLOAT16 + zero)


EXPORTERS: dict[str, Callable[[Block], Plan]] = {
    "compressed-tensors": read_compressed_tensors,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "modelopt_mixed": _modelopt,
    "quark": _quark,
}
"""Readers of the exporters' blocks, by ``quant_method``."""
