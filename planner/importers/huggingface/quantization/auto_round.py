"""The quantisation blocks of AutoRound: a data type for all, and other ones for modules by name or regular expression.

Facts are those of AutoRound's exporters (`auto_round/export`) and of vLLM's reader of them (`quantization/auto_round.py`, `inc.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.importers.huggingface.quantization.patterns import Patterns
from planner.importers.huggingface.quantization.schemes import (
    EIGHT,
    FLOAT16,
    FOUR,
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
    text,
    tile_elements,
    width,
)
from planner.model.quantization import AnyStored

_REGEX = re.compile(r"[*+?^$()\[\]{}|\\]")
"""What makes a name a regular expression, which may match anywhere in a module's path."""

_FIELDS = ("bits", "group_size", "data_type", "act_bits")

_INT: Mapping[tuple[bool, bool], str] = {
    # (weights of 8 bits, activations of at most 8 bits): precision
    (True, True): "int8",
    (True, False): "w8a16",
    (False, True): "w4a8",
    (False, False): "w4a16",
}

_MICROSCALED: Mapping[tuple[str, int, int], str] = {
    # (kind, bits of weights, bits of activations): precision
    ("mx_fp", 4, 4): "mxfp4",
    ("mx_fp", 4, 8): "mxfp4_w4a8",
    ("mx_fp", 4, 16): "mxfp4_w4a16",
    ("mx_fp", 8, 8): "fp8",
    ("mx_fp", 8, 16): "w8a16",
    ("nv_fp", 4, 4): "nvfp4",
    ("nv_fp", 4, 16): "w4a16",
}
_GROUPS = {"mx_fp": 32, "nv_fp": 16}
"""Weights that share an 8-bit scale, unless told otherwise."""


def read_auto_round(block: Block) -> Plan:
    """Read a block of AutoRound; the head is quantised where `extra_config` names it, or `lm_head` says so."""
    usual = {name: block.get(name) for name in _FIELDS}
    block.get("act_data_type")
    # The width of activations of other types than the weights' follows from `act_bits` too.
    how = _scheme(usual)
    if how is None:
        raise UnknownQuantizationError(f"bits {usual['bits']!r} are not known (1 to 8)")
    extra = mapping(block.get("extra_config") or {}, "extra_config")
    named = [(name, _scheme(_merged(usual, mapping(own, name)))) for name, own in extra.items()]
    # Names go before regular expressions.
    named.sort(key=lambda pair: bool(_REGEX.search(pair[0])))
    groups: Groups = tuple((Patterns([_pattern(name)]), own) for name, own in named)
    everything: Groups = (*groups, (None, how))
    head = everything if flag(block, "lm_head", default=False) else groups
    return Plan(groups=everything, ignored=Patterns(modules(block, *SKIPPED)), head=head)


def _merged(usual: Mapping[str, Any], own: Block) -> dict[str, Any]:
    own.get("act_data_type")
    return {name: usual[name] if own.get(name) is None else own[name] for name in _FIELDS}


def _pattern(name: str) -> str:
    if not _REGEX.search(name):
        return name
    is_whole = name.startswith((".*", "^")) and "|" not in name
    return f"re:{name}" if is_whole else f"re:.*(?:{name})"


def _scheme(fields: Mapping[str, Any]) -> AnyStored | None:
    """Return how modules with these fields are stored; None for 16 bits."""
    bits = number(fields, "bits", default=FOUR)
    if bits >= FLOAT16:
        return None
    kind = (text(fields, "data_type", "int") or "").lower()
    activations = min(number(fields, "act_bits", default=FLOAT16), FLOAT16)
    for name, size in _GROUPS.items():
        if kind.startswith(name):
            key = (name, bits, activations)
            if key not in _MICROSCALED:
                raise UnknownQuantizationError(
                    f"{kind} weights of {bits} bits with activations of {activations} are not known"
                )
            return stored(_MICROSCALED[key], bits=bits, group_size=_group(fields, size), scale_bits=EIGHT)
    if kind.startswith("int"):
        precision = _INT[bits == EIGHT, activations <= EIGHT]
        return stored(precision, bits=width(bits), group_size=_group(fields, 128), scale_bits=FLOAT16 + bits)
    if kind.startswith("fp") and bits == EIGHT:
        precision = "fp8" if activations <= EIGHT else "w8a16"
        if isinstance(fields.get("group_size"), list):
            return stored(
                "fp8_block" if precision == "fp8" else precision,
                group_size=tile_elements(fields, "group_size"),
                scale_bits=32,
            )
        return stored(precision, group_size=_group(fields, -1), scale_bits=FLOAT16)
    raise UnknownQuantizationError(f"data_type {kind!r} of {bits} bits is not known (int, mx_fp, nv_fp, fp)")


def _group(fields: Mapping[str, Any], default: int) -> int:
    return max(number(fields, "group_size", default=default, least=-1), 0)
