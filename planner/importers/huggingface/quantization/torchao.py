"""The quantisation blocks of torchao: the name of a configuration, a serialised one, or one for each module.

Facts are those of torchao's `quantization/quant_api.py` and of the documentation of its configurations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.importers.huggingface.quantization.patterns import Patterns
from planner.importers.huggingface.quantization.schemes import (
    EIGHT,
    FLOAT16,
    SKIPPED,
    Block,
    Groups,
    Plan,
    UnknownQuantizationError,
    flag,
    mapping,
    modules,
    number,
    stored,
)
from planner.model.quantization import AnyStored


def _int4(arguments: Block) -> AnyStored:
    """Return packed weights with a 16-bit scale and zero-point for each group."""
    return stored("w4a16", group_size=number(arguments, "group_size", default=128), scale_bits=2 * FLOAT16)


def _unpacked(arguments: Block, precision: str) -> AnyStored:
    """Return narrow weights that are kept in a byte each, with a 16-bit scale and an 8-bit zero-point for each group."""
    group = arguments.get("weight_granularity", arguments.get("granularity"))
    if isinstance(group, Mapping):
        inner = mapping(group.get("_data") or {}, "granularity")
        kind = group.get("_type")
        if kind not in ("PerGroup", "PerAxis"):
            raise UnknownQuantizationError(f"granularity {kind!r} is not known (PerGroup, PerAxis)")
        size = number(inner, "group_size") if kind == "PerGroup" else 0
    else:
        size = number(arguments, "group_size", default=32)
    return stored(precision, bits=EIGHT, group_size=size, scale_bits=FLOAT16 + EIGHT)


_TYPES: Mapping[str, Callable[[Block], AnyStored]] = {
    "int4weightonly": _int4,
    "int8weightonly": lambda _: "w8a16",
    "float8weightonly": lambda _: "w8a16",
    "intxweightonly": lambda arguments: _unpacked(arguments, "w8a16"),
    "int8dynamicactivationint8weight": lambda _: "int8",
    "int8dynamicactivationint4weight": lambda arguments: _unpacked(arguments, "int8"),
    "int8dynamicactivationintxweight": lambda arguments: _unpacked(arguments, "int8"),
    "float8dynamicactivationfloat8weight": lambda _: "fp8",
    "float8staticactivationfloat8weight": lambda _: "fp8",
}
"""How the weights of each configuration are stored, by its name, old or new."""

_BY_MODULE = ("modulefqnto", "fqnto")
"""Names of the configurations that hold one for each module."""


def _named(kind: Any) -> str:
    return str(kind).lower().replace("_", "").removesuffix("config")


def _scheme(kind: Any, arguments: Any) -> AnyStored:
    name = _named(kind)
    if name not in _TYPES:
        raise UnknownQuantizationError(f"torchao type {str(kind)[:60]!r} is not known ({', '.join(_TYPES)})")
    return _TYPES[name](mapping(arguments or {}, "quant_type_kwargs"))


def read_torchao(block: Block) -> Plan:
    """Read a block of torchao; the head is quantised where it is named, or where the block includes input and output embeddings."""
    kind, arguments = block.get("quant_type"), block.get("quant_type_kwargs")
    if isinstance(kind, Mapping):
        inner = mapping(kind.get("default", kind), "quant_type")
        kind, arguments = inner.get("_type"), inner.get("_data")
    groups = _by_module(arguments) if _named(kind) in _BY_MODULE else ((None, _scheme(kind, arguments)),)
    single: Groups = tuple(pair for pair in groups if pair[0] is not None)
    with_head = flag(block, "include_input_output_embeddings", default=False)
    return Plan(
        groups=groups,
        ignored=Patterns(modules(block, *SKIPPED)),
        head=groups if with_head else single,
        embedding=groups if with_head else single,
    )


def _by_module(arguments: Any) -> Groups:
    """Read a configuration for each module, by its name, or by a regular expression after ``re:``; `_default` is for all others."""
    fields = mapping(arguments, "_data")
    inner = mapping(fields.get("module_fqn_to_config") or fields.get("fqn_to_config"), "module_fqn_to_config")
    inner = mapping(inner.get("_data", inner), "module_fqn_to_config")
    found: list[tuple[Patterns | None, AnyStored | None]] = []
    for name, one in inner.items():
        how = None if one is None else _scheme(mapping(one, name).get("_type"), one.get("_data"))
        found.append((None if name == "_default" else Patterns([name]), how))
    # Names go before the default, wherever it stands.
    return tuple(sorted(found, key=lambda pair: pair[0] is None))
