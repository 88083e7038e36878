"""The quantisation blocks of MLX: a width for all matrices, the embedding and the head included, and other ones for modules by name.

Modes, group sizes, widths and scales are those of the documentation of `mlx.core.quantize`; that a module's name stands for settings of
its own, or false for none, is what `mlx_lm.utils.load_model` does. Routers count in 16 bits unless they are named: whether they are
matrices to MLX depends on the model's class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.importers.huggingface.quantization.patterns import Patterns
from planner.importers.huggingface.quantization.schemes import (
    EIGHT,
    FLOAT16,
    FOUR,
    Block,
    Groups,
    Plan,
    UnknownQuantizationError,
    number,
    stored,
    text,
)
from planner.model.quantization import AnyStored


@dataclass(frozen=True, slots=True)
class _Mode:
    """What a mode stores.

    Attributes
    ----------
    bits : tuple of int
        Widths, the usual one first.
    groups : tuple of int
        Weights that share a scale, the usual number first.
    scale_bits : int
        Bits of a group's scale, and of its bias where it has one.
    """

    bits: tuple[int, ...]
    groups: tuple[int, ...]
    scale_bits: int


_MODES: Mapping[str, _Mode] = {
    "affine": _Mode((4, 2, 3, 5, 6, 8), (64, 32, 128), 2 * FLOAT16),
    "mxfp4": _Mode((FOUR,), (32,), EIGHT),
    "mxfp8": _Mode((EIGHT,), (32,), EIGHT),
    "nvfp4": _Mode((FOUR,), (16,), EIGHT),
}


def is_mlx(block: object) -> bool:
    """Whether a block without a method is one of MLX: a width and a group size."""
    return isinstance(block, Mapping) and "quant_method" not in block and "bits" in block and "group_size" in block


def read_mlx(block: Block) -> Plan:
    """Read a block of MLX."""
    how = _scheme(block)
    own = [(name, block[name]) for name in block if name not in ("bits", "group_size", "mode")]
    odd = [name for name, value in own if not isinstance(value, Mapping | bool)]
    if odd:
        raise UnknownQuantizationError(
            f"field {odd[0][:60]!r} of MLX is not known (bits, group_size, mode, or a module's name)"
        )
    # What others call experts is a `SwitchLinear` of MLX.
    named: Groups = tuple(
        (
            Patterns([name.replace("switch_mlp", "experts")]),
            _scheme(value) if isinstance(value, Mapping) else how if value else None,
        )
        for name, value in own
    )
    groups: Groups = (*named, (None, how))
    return Plan(groups=groups, ignored=Patterns([]), head=groups, embedding=groups, routers=named)


def _scheme(fields: Block) -> AnyStored:
    name = text(fields, "mode", "affine") or ""
    if name not in _MODES:
        raise UnknownQuantizationError(f"mode {name!r} of MLX is not known ({', '.join(_MODES)})")
    mode = _MODES[name]
    bits = number(fields, "bits", default=mode.bits[0])
    group = number(fields, "group_size", default=mode.groups[0])
    for what, value, known in (("bits", bits, mode.bits), ("group_size", group, mode.groups)):
        if value not in known:
            numbers = ", ".join(str(one) for one in sorted(known))
            raise UnknownQuantizationError(f"{what} {value} of MLX mode {name} is not known ({numbers})")
    return stored("w8a16" if bits == EIGHT else "w4a16", bits=bits, group_size=group, scale_bits=mode.scale_bits)
