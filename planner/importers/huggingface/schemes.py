"""The quantisation methods of checkpoints: what each block says about widths, groups, scales, and the modules it leaves alone.

A table from ``quant_method`` to a reader. Facts are those of the configuration classes in transformers 5.24.0 (`utils/quantization_config.py`),
compressed-tensors 0.12 (`quant_args.py`), NVIDIA ModelOpt (`export/quant_utils.py`), AMD Quark and GPTQModel. Scales of whole tensors
and of channels are too few to count, as are GPTQ's group indices (under 0.1 % together).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.importers.huggingface.patterns import Patterns
from planner.model import Stored
from planner.model.quantization import AnyStored
from planner.precision import SCHEMES
from planner.units import LARGEST_COUNT

Block = Mapping[str, Any]


class UnknownQuantizationError(ValueError):
    """The block names a scheme that the planner does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which modules a method stores how.

    Attributes
    ----------
    groups : tuple
        Modules (None for all) and how they are stored; the first that names a module decides.
    ignored : Patterns
        Modules that stay as they were.
    head : bool
        Whether the LM head is quantised like any other matrix, unless it is ignored.
    """

    groups: tuple[tuple[Patterns | None, AnyStored], ...]
    ignored: Patterns
    head: bool = False
    tables: AnyStored | None = None


# ---- reading values --------------------------------------------------------------------------------------------------


def mapping(value: Any, name: str) -> Block:
    """Return a value that must be a mapping, or raise `UnknownQuantizationError`."""
    if not isinstance(value, Mapping):
        raise UnknownQuantizationError(f"{name} is no mapping of fields")
    return value


def number(block: Block, *names: str, default: int | None = None, least: int = 1) -> int:
    """Return the whole number under the first of the names that is there, or raise `UnknownQuantizationError`."""
    name = next((name for name in names if block.get(name) is not None), names[0])
    value = block.get(name, default)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST_COUNT:
        raise UnknownQuantizationError(f"{name} {value!r} is not known, a whole number from {least} on is expected")
    return value


def text(block: Block, name: str, default: str | None = None) -> str | None:
    """Return the text under a name, `default` where there is none, or raise `UnknownQuantizationError`."""
    value = block.get(name)
    value = default if value is None else value
    if value is not None and not isinstance(value, str):
        raise UnknownQuantizationError(f"{name} {value!r} is not known, a text is expected")
    return value


LONGEST_SIDE = 30_000
"""Weights along a side of a tile that shares a scale, at most."""


def tile_elements(block: Block, name: str) -> int:
    """Return how many weights share a scale by the sides of their tile, or raise `UnknownQuantizationError`."""
    sides = block.get(name)
    if isinstance(sides, list) and len(sides) == 2:  # noqa: PLR2004 - rows and columns
        rows, columns = sides
        if all(type(side) is int and 1 <= side <= LONGEST_SIDE for side in sides):
            return int(rows * columns)
    raise UnknownQuantizationError(f"{name} {sides!r} is not known, two whole numbers are expected")


def modules(block: Block, *names: str) -> list[Any]:
    """Return the modules under the first of the names that is there; a mapping stands for its keys, a text for itself."""
    value = next((block[name] for name in names if block.get(name) is not None), ())
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Mapping | Sequence):
        raise UnknownQuantizationError(f"{names[0]} is no list of modules")
    return list(value)


def stored(precision: str, *, bits: float | None = None, group_size: int = 0, scale_bits: float = 0) -> AnyStored:
    """Return a description of weights stored in so many bits, with a scale for so many of them; short where it is the usual."""
    usual = SCHEMES[precision].weights
    width = usual.bits if bits is None else bits
    scales = scale_bits if group_size else 0
    if (width, group_size, scales) == (usual.bits, usual.block, usual.scale_bits):
        return precision
    own = None if width == usual.bits else width
    return Stored(precision=precision, bits=own, group_size=group_size, scale_bits=scales)


def weight_only(bits: float, group_size: int, scale_bits: float) -> AnyStored:
    """Return integer weights with 16-bit arithmetic."""
    return stored("w8a16" if bits == EIGHT else "w4a16", bits=bits, group_size=group_size, scale_bits=scale_bits)


MX_BLOCK = 32
"""Weights in a row that share a scale in the microscaling formats."""

EIGHT, FOUR = 8, 4
FLOAT16 = 16
"""Bits of the scale of a group where a method does not say otherwise."""


def _all(how: AnyStored, ignored: Iterable[Any] = (), *, head: bool = False) -> Plan:
    return Plan(groups=((None, how),), ignored=Patterns(ignored), head=head)


# ---- methods of the transformers library -----------------------------------------------------------------------------

_SKIPPED = ("modules_to_not_convert", "ignored_layers", "llm_int8_skip_modules", "skip_modules")


def _fp8(block: Block) -> Plan:
    """Read FP8: a scale for each tile where there is a block size, else for each tensor; experts may be narrower."""
    how: AnyStored = "fp8"
    tables: AnyStored = "fp8"
    if block.get("weight_block_size") is not None:
        tile = tile_elements(block, "weight_block_size")
        # Tiles of the microscaling formats have a power of two for a scale, in one byte (OCP MX, section 5.2).
        micro = tile == MX_BLOCK**2
        how = stored("fp8_block", group_size=tile, scale_bits=EIGHT if micro else 32)
        tables = stored("fp8_block", group_size=MX_BLOCK, scale_bits=EIGHT) if micro else how
    experts = text(block, "expert_dtype")
    if experts not in (None, "fp8", "fp4"):
        raise UnknownQuantizationError(f"expert_dtype {experts!r} is not known (fp8 or fp4)")
    narrow = ((Patterns(["experts"]), "mxfp4_w4a8"),) if experts == "fp4" else ()
    return Plan(groups=(*narrow, (None, how)), ignored=Patterns(modules(block, *_SKIPPED)), tables=tables)


def _awq(block: Block) -> Plan:
    """Read AWQ: a 16-bit scale and a zero-point of a weight's width for each group."""
    bits = number(block, "bits", "w_bit", default=FOUR)
    group = number(block, "group_size", "q_group_size", default=128, least=-1)
    return _all(weight_only(_width(bits), max(group, 0), FLOAT16 + bits), modules(block, *_SKIPPED))


def _gptq(block: Block) -> Plan:
    """Read GPTQ: the same layout as AWQ's, symmetric or not; `dynamic` makes exceptions by regular expression."""
    bits, group = number(block, "bits"), number(block, "group_size", default=128, least=-1)
    groups: list[tuple[Patterns | None, AnyStored]] = []
    ignored = modules(block, *_SKIPPED)
    dynamic = block.get("dynamic") or {}
    for pattern, other in mapping(dynamic, "dynamic").items():
        if pattern.startswith("-:"):
            ignored.append(f"re:{pattern[2:]}")
            continue
        other_bits = number(mapping(other, "dynamic"), "bits", default=bits)
        other_group = number(other, "group_size", default=group, least=-1)
        how = weight_only(_width(other_bits), max(other_group, 0), FLOAT16 + other_bits)
        groups.append((Patterns([f"re:{pattern.removeprefix('+:')}"]), how))
    inside = [name for names in modules(block, "modules_in_block_to_quantize") for name in modules({"n": names}, "n")]
    everything = Patterns(inside) if inside else None
    groups.append((everything, weight_only(_width(bits), max(group, 0), FLOAT16 + bits)))
    return Plan(groups=tuple(groups), ignored=Patterns(ignored), head=block.get("lm_head") is True)


def _width(bits: int) -> int:
    if not 1 <= bits <= EIGHT:
        raise UnknownQuantizationError(f"{bits!r} bits are not known (1 to 8)")
    return bits


def _auto_round(block: Block) -> Plan:
    """Read AutoRound: GPTQ's layout, with exceptions for single modules."""
    extra = mapping(block.get("extra_config") or {}, "extra_config")
    widths = {name: number(mapping(other, name), "bits", default=FLOAT16) for name, other in extra.items()}
    plan = _gptq({**block, "modules_to_not_convert": [name for name, bits in widths.items() if bits >= FLOAT16]})
    group = number(block, "group_size", default=128, least=-1)
    own = {name: bits for name, bits in widths.items() if bits < FLOAT16}
    others = tuple((Patterns([n]), weight_only(_width(b), max(group, 0), FLOAT16 + b)) for n, b in own.items())
    return Plan(groups=(*others, *plan.groups), ignored=plan.ignored)


def _bitsandbytes(block: Block) -> Plan:
    """Read LLM.int8() with a scale for each row, or 4 bits with an fp32 scale for 64 weights, which may itself be quantised."""
    skipped = modules(block, *_SKIPPED)
    if block.get("load_in_8bit") or block.get("_load_in_8bit"):
        return _all("int8", skipped)
    # Double quantisation (QLoRA, arXiv 2305.14314, section 3): 8 bits for a scale, and an fp32 for 256 of those.
    scale = EIGHT + 32 / 256 if block.get("bnb_4bit_use_double_quant") else 32
    return _all(stored("w4a16", group_size=64, scale_bits=scale), skipped)


def _mxfp4(block: Block) -> Plan:
    """Read MXFP4 with 16-bit arithmetic."""
    return _all("mxfp4_w4a16", modules(block, *_SKIPPED))


def _hqq(block: Block) -> Plan:
    """Read HQQ: a 16-bit scale and a 16-bit zero-point for each group."""
    inner = mapping(block.get("quant_config", block), "quant_config")
    weights = mapping(inner.get("weight_quant_params", inner), "weight_quant_params")
    group = number(weights, "group_size", default=64, least=0)
    return _all(weight_only(_width(number(weights, "nbits", "bits")), group, 2 * FLOAT16), modules(block, *_SKIPPED))


# Names of torchao's configurations, old and new, and what they store.
_TORCHAO: Mapping[str, str] = {
    "int4weightonly": "w4a16",
    "int8weightonly": "w8a16",
    "float8weightonly": "w8a16",
    "int8dynamicactivationint8weight": "int8",
    "int8dynamicactivationint4weight": "w4a8",
    "float8dynamicactivationfloat8weight": "fp8",
    "float8staticactivationfloat8weight": "fp8",
}


def _torchao(block: Block) -> Plan:
    """Read torchao: the name of a configuration, or a serialised one; int4 has a 16-bit scale and zero-point for each group."""
    kind = block.get("quant_type")
    arguments = block.get("quant_type_kwargs") or {}
    if isinstance(kind, Mapping):
        inner = mapping(kind.get("default", kind), "quant_type")
        kind, arguments = inner.get("_type"), inner.get("_data") or {}
    name = str(kind).lower().replace("_", "").removesuffix("config")
    if name not in _TORCHAO:
        raise UnknownQuantizationError(f"torchao type {kind!r} is not known ({', '.join(_TORCHAO)})")
    precision = _TORCHAO[name]
    is_four = SCHEMES[precision].weights.bits == FOUR
    group = number(mapping(arguments, "quant_type_kwargs"), "group_size", default=128) if is_four else 0
    return _all(stored(precision, group_size=group, scale_bits=2 * FLOAT16), modules(block, *_SKIPPED))


def _exl(block: Block) -> Plan:
    """Read EXL2 and EXL3: a mean width, scales included."""
    bits = block.get("bits")
    if isinstance(bits, bool) or not isinstance(bits, int | float) or not 1 <= bits <= FLOAT16:
        raise UnknownQuantizationError(f"bits {bits!r} are not known (1 to 16)")
    return _all(stored("w4a16", bits=float(bits)), modules(block, *_SKIPPED))


def _fixed(how: AnyStored) -> Callable[[Block], Plan]:
    """Return the reader of a method that has one width, and scales too few to count."""
    return lambda block: _all(how, modules(block, *_SKIPPED))


def _experts_int8(block: Block) -> Plan:
    """Read int8 weights of experts alone."""
    return Plan(groups=((Patterns(["experts"]), "w8a16"),), ignored=Patterns(modules(block, *_SKIPPED)))


METHODS: dict[str, Callable[[Block], Plan]] = {
    "auto-round": _auto_round,
    "awq": _awq,
    "bitnet": _fixed(stored("w4a16", bits=2)),
    "bitsandbytes": _bitsandbytes,
    "eetq": _fixed("w8a16"),
    "exl2": _exl,
    "exl3": _exl,
    "experts_int8": _experts_int8,
    "fbgemm_fp8": _fp8,
    "fp8": _fp8,
    "gptq": _gptq,
    "hqq": _hqq,
    "mxfp4": _mxfp4,
    "torchao": _torchao,
}
"""Readers of the methods that are told by ``quant_method``; `planner.importers.huggingface.exporters` has more."""
