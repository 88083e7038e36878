"""The quantisation methods of the transformers library: what each block says about widths, groups, scales, and modules left alone.

A table from ``quant_method`` to a reader. Facts are those of the configuration classes in transformers 5.24.0
(`utils/quantization_config.py`), of GPTQModel, HQQ (`core/quantize.py`) and the converters of ExLlama (`doc/convert.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    everywhere,
    flag,
    mapping,
    modules,
    number,
    one_of,
    stored,
    text,
    tile_elements,
    weight_only,
    width,
)
from planner.model.quantization import AnyStored

MX_BLOCK = 32
"""Weights in a row that share a scale in the microscaling formats."""

# ---- floating point --------------------------------------------------------------------------------------------------


def _fp8(block: Block) -> Plan:
    """Read FP8: a scale for each tile where there is a block size, else for each tensor; experts may be narrower."""
    how: AnyStored = "fp8"
    tables: AnyStored = "fp8"
    # Both kinds of eight bits take as many bytes.
    one_of(text(block, "fmt"), (None, "e4m3", "float8_e4m3fn", "e5m2"), "fmt")
    if block.get("weight_block_size") is not None:
        tile = tile_elements(block, "weight_block_size")
        # Tiles of the microscaling formats have a power of two for a scale, in one byte (OCP MX, section 5.2).
        micro = tile == MX_BLOCK**2
        how = stored("fp8_block", group_size=tile, scale_bits=EIGHT if micro else 32)
        tables = stored("fp8_block", group_size=MX_BLOCK, scale_bits=EIGHT) if micro else how
    experts = one_of(text(block, "expert_dtype"), (None, "fp8", "fp4"), "expert_dtype")
    narrow: Groups = ((Patterns(["experts"]), "mxfp4_w4a8"),) if experts == "fp4" else ()
    named = modules(block, "modules_to_convert")
    everything = Patterns(named) if named else None
    return Plan(groups=(*narrow, (everything, how)), ignored=Patterns(modules(block, *SKIPPED)), tables=tables)


def _mxfp4(block: Block) -> Plan:
    """Read MXFP4 with 16-bit arithmetic, of routed experts alone.

    The transformers library replaces no other module (`integrations/mxfp4.py`), and vLLM falls back to 16 bits in every other layer
    (`quantization/mxfp4.py`), whether the block lists them or not.
    """
    return _experts(block, "mxfp4_w4a16")


def _experts(block: Block, how: AnyStored) -> Plan:
    return Plan(groups=((Patterns(["experts"]), how),), ignored=Patterns(modules(block, *SKIPPED)))


# ---- whole numbers ---------------------------------------------------------------------------------------------------


def _awq(block: Block) -> Plan:
    """Read AWQ: a 16-bit scale and, unless told otherwise, a zero-point of a weight's width for each group."""
    bits = number(block, "bits", "w_bit", default=FOUR)
    group = number(block, "group_size", "q_group_size", default=128, least=-1)
    zero = bits if flag(block, "zero_point", default=True) else 0
    return everywhere(weight_only(width(bits), max(group, 0), FLOAT16 + zero), block)


# How GPTQ's checkpoints are packed: bits of a weight and of a zero-point by those of the method, both in its own width by default.
# Marlin keeps no zero-points; with 2:4 sparsity it keeps half of the weights, and two bits for the place of each
# (`B_24`, `B_meta` and `s` in vLLM's `gptq_marlin_24.py`).
_PACKED: Mapping[str | None, Callable[[int], tuple[float, int]]] = {
    None: lambda bits: (bits, bits),
    "gptq": lambda bits: (bits, bits),
    "gptq_v2": lambda bits: (bits, bits),
    "marlin": lambda bits: (bits, 0),
    "marlin_24": lambda bits: (bits / 2 + 1, 0),
}


def _gptq(block: Block) -> Plan:
    """Read GPTQ: the same layout as AWQ's, symmetric or not; `dynamic` makes exceptions by regular expression."""
    bits, group = number(block, "bits"), number(block, "group_size", default=128, least=-1)
    packed = _PACKED[one_of(text(block, "checkpoint_format"), _PACKED, "checkpoint_format")]
    groups: list[tuple[Patterns | None, AnyStored | None]] = []
    for pattern, other in mapping(block.get("dynamic") or {}, "dynamic").items():
        if pattern.startswith("-:"):
            groups.append((Patterns([f"re:{pattern[2:]}"]), None))
            continue
        own = number(mapping(other, "dynamic"), "bits", default=bits)
        how = _gptq_scheme(own, number(other, "group_size", default=group, least=-1), packed)
        groups.append((Patterns([f"re:{pattern.removeprefix('+:')}"]), how))
    inside = [name for names in modules(block, "modules_in_block_to_quantize") for name in modules({"n": names}, "n")]
    how = _gptq_scheme(bits, group, packed)
    groups.append((Patterns(inside) if inside else None, how))
    head: Groups = ((None, how),) if flag(block, "lm_head", default=False) else ()
    return Plan(groups=tuple(groups), ignored=Patterns(modules(block, *SKIPPED)), head=head)


def _gptq_scheme(bits: int, group: int, packed: Callable[[int], tuple[float, int]]) -> AnyStored:
    weight, zero = packed(width(bits))
    precision = "w8a16" if bits == EIGHT else "w4a16"
    return stored(precision, bits=weight, group_size=max(group, 0), scale_bits=FLOAT16 + zero)


def _marlin(block: Block) -> Plan:
    """Read GPTQ in the layout of the kernel that first had one of its own."""
    bits, group = number(block, "bits", default=FOUR), number(block, "group_size", default=128, least=-1)
    how = _gptq_scheme(bits, group, _PACKED["marlin"])
    return everywhere(how, block, head=((None, how),) if flag(block, "lm_head", default=False) else ())


def _bitsandbytes(block: Block) -> Plan:
    """Read LLM.int8() with a scale for each row, or 4 bits with an fp32 scale for 64 weights, which may itself be quantised."""
    asked = {name for name in ("load_in_8bit", "load_in_4bit") for key in (name, f"_{name}") if block.get(key)}
    if not asked:
        if not any(block.get(name) is False for name in ("load_in_8bit", "load_in_4bit")):
            raise UnknownQuantizationError(
                "neither load_in_4bit nor load_in_8bit is there, they say how weights are stored"
            )
        return _plain(block, "load_in_4bit and load_in_8bit are both false")
    if len(asked) > 1:
        raise UnknownQuantizationError("load_in_4bit and load_in_8bit are both true, keep one")
    if "load_in_8bit" in asked:
        if flag(block, "llm_int8_has_fp16_weight", default=False):
            return _plain(block, "llm_int8_has_fp16_weight is true")
        return everywhere("int8", block)
    one_of(text(block, "bnb_4bit_quant_type"), (None, "fp4", "nf4"), "bnb_4bit_quant_type")
    # Double quantisation (QLoRA, arXiv 2305.14314, section 3): 8 bits for a scale, and an fp32 for 256 of those.
    scale = EIGHT + 32 / 256 if flag(block, "bnb_4bit_use_double_quant", default=False) else 32
    return everywhere(stored("w4a16", group_size=64, scale_bits=scale), block)


def _plain(block: Block, reason: str) -> Plan:
    modules(block, *SKIPPED)  # Read, and without an effect: there is nothing to be left out of.
    note = f"quantization_config: {reason}, so the weights count in 16 bits"
    return Plan(groups=((None, None),), ignored=Patterns([]), notes=(note,))


def _hqq(block: Block) -> Plan:
    """Read HQQ: a scale and a zero-point for each group, 16 bits each unless they are quantised; settings may be for modules by name."""
    inner = mapping(block.get("quant_config", block), "quant_config")
    ignored = Patterns(modules(block, *SKIPPED))
    if any(name in inner for name in ("weight_quant_params", "nbits", "bits")):
        return Plan(groups=((None, _hqq_scheme(inner)),), ignored=ignored)
    named: Groups = tuple((Patterns([name]), _hqq_scheme(mapping(inner[name], name))) for name in inner)
    return Plan(groups=named, ignored=ignored)


# Ten weights of three bits share 32 (`pack_3bit_32` in `hqq/core/quantize.py`).
_HQQ_BITS: Mapping[int, float] = {8: 8, 4: 4, 3: 3.2, 2: 2, 1: 1}


def _hqq_scheme(fields: Block) -> AnyStored:
    weights = mapping(fields.get("weight_quant_params", fields), "weight_quant_params")
    bits = number(weights, "nbits", "bits")
    if bits not in _HQQ_BITS:
        raise UnknownQuantizationError(f"{bits} bits are not known ({', '.join(str(known) for known in _HQQ_BITS)})")
    is_one = "group_size" in weights and weights["group_size"] is None
    group = 0 if is_one else number(weights, "group_size", default=64)
    scale = sum(_hqq_constant(fields.get(name), name) for name in ("scale_quant_params", "zero_quant_params"))
    return stored("w8a16" if bits == EIGHT else "w4a16", bits=_HQQ_BITS[bits], group_size=group, scale_bits=scale)


def _hqq_constant(fields: Any, name: str) -> float:
    """Return the bits of a scale or zero-point, with its own scale and zero-point where it is quantised."""
    if not fields:
        return FLOAT16
    bits = number(mapping(fields, name), "nbits", "bits")
    group = number(fields, "group_size", default=0, least=0)
    return width(bits) + (2 * FLOAT16 / group if group else 0)


# ---- other widths ----------------------------------------------------------------------------------------------------


def _exl(block: Block) -> Plan:
    """Read EXL2 and EXL3: a mean width over the layers, scales included, and one of the head, 6 bits unless told otherwise."""
    bits = block.get("bits")
    if isinstance(bits, bool) or not isinstance(bits, int | float) or not 1 <= bits <= FLOAT16:
        raise UnknownQuantizationError(f"bits {bits!r} are not known (1 to 16)")
    head_bits = number(block, "head_bits", default=6)
    if head_bits > FLOAT16:
        raise UnknownQuantizationError(f"head_bits {head_bits!r} are not known (1 to 16)")
    head = None if head_bits == FLOAT16 else stored("w4a16", bits=head_bits)
    return everywhere(stored("w4a16", bits=float(bits)), block, head=((None, head),))


def _bitnet(block: Block) -> Plan:
    """Read BitNet: four weights in a byte where they are packed beforehand, 16 bits each where engines do so in every pass."""
    mode = one_of(text(block, "quantization_mode", "offline"), ("offline", "online"), "quantization_mode")
    if mode == "online":
        return _plain(block, "quantization_mode is online")
    one_of(str(block.get("bits", 2)), ("2", "1.58"), "bits")
    return everywhere(stored("w4a16", bits=2), block)


def _int8(block: Block) -> Plan:
    """Read EETQ: int8 weights with a scale for each channel."""
    one_of(text(block, "weights", "int8"), ("int8",), "weights")
    return everywhere("w8a16", block)


METHODS: dict[str, Callable[[Block], Plan]] = {
    "awq": _awq,
    "bitnet": _bitnet,
    "bitsandbytes": _bitsandbytes,
    "eetq": _int8,
    "exl2": _exl,
    "exl3": _exl,
    "experts_int8": lambda block: _experts(block, "w8a16"),
    "fbgemm_fp8": _fp8,
    "fp8": _fp8,
    "gptq": _gptq,
    "hqq": _hqq,
    "marlin": _marlin,
    "mxfp4": _mxfp4,
}
"""Readers by ``quant_method``; the exporters' formats, AutoRound, MLX and torchao have modules of their own."""
