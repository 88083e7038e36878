"""Reads a ``quantization_config`` block: in which formats the checkpoint stores its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planner.model import Quantization

Block = Mapping[str, Any]


class UnknownQuantizationError(ValueError):
    """The block names a scheme that the planner does not know."""


def read_quantization(block: Any) -> Quantization:
    """Return how the weights are stored.

    Raises
    ------
    UnknownQuantizationError
        If the method, or a combination of widths, is not known: sizes guessed from it would be wrong.
    """
    if not block:
        return Quantization()
    if not isinstance(block, Mapping):
        raise UnknownQuantizationError(f"is a {type(block).__name__}, a mapping is expected")
    method = str(block.get("quant_method", "")).lower()
    if method not in METHODS:
        raise UnknownQuantizationError(f"method {method!r} is not known ({', '.join(sorted(METHODS))})")
    return METHODS[method](block).model_copy(update={"source": f"quantization_config, {method}"})


def _fp8(block: Block) -> Quantization:
    return Quantization(linear="fp8_block" if block.get("weight_block_size") else "fp8")


def _weight_only(block: Block) -> Quantization:
    bits = block.get("bits", block.get("w_bit"))
    names = {4: "w4a16", 8: "w8a16"}
    if bits not in names:
        raise UnknownQuantizationError(f"{bits!r} bits are not known (4 or 8)")
    return Quantization(linear=names[bits])


def _mxfp4(block: Block) -> Quantization:  # noqa: ARG001 - the signature of every method
    return Quantization(linear="bf16", experts="mxfp4_w4a16")


def _modelopt(block: Block) -> Quantization:
    algorithm = str(block.get("quant_algo", "")).upper()
    names = {"FP8": "fp8", "NVFP4": "nvfp4", "W4A16_AWQ": "w4a16"}
    if algorithm not in names:
        raise UnknownQuantizationError(f"quant_algo {algorithm!r} is not known ({', '.join(names)})")
    return Quantization(linear=names[algorithm])


_COMPRESSED = {
    # (weight type, weight bits, activation bits or None): precision
    ("int", 8, 8): "int8",
    ("int", 8, None): "w8a16",
    ("int", 4, None): "w4a16",
    ("int", 4, 8): "w4a8",
    ("float", 8, 8): "fp8",
    ("float", 4, 4): "nvfp4",
}


def _compressed_tensors(block: Block) -> Quantization:
    groups = block.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise UnknownQuantizationError("config_groups is missing, it says how weights are stored")
    found = {_compressed_scheme(group) for group in groups.values()}
    if len(found) != 1:
        raise UnknownQuantizationError("config_groups mix several schemes, which is not known how to split")
    return Quantization(linear=found.pop())


def _compressed_scheme(group: Any) -> str:
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        raise UnknownQuantizationError("a config group has no weights")
    inputs = group.get("input_activations")
    key = (
        weights.get("type"),
        weights.get("num_bits"),
        inputs.get("num_bits") if isinstance(inputs, Mapping) else None,
    )
    if key not in _COMPRESSED:
        raise UnknownQuantizationError(f"{key[0]} weights of {key[1]} bits with activations of {key[2]} are not known")
    return _COMPRESSED[key]


METHODS: dict[str, Callable[[Block], Quantization]] = {
    "awq": _weight_only,
    "gptq": _weight_only,
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "mxfp4": _mxfp4,
    "modelopt": _modelopt,
    "compressed-tensors": _compressed_tensors,
}
