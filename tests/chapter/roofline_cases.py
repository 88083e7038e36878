"""What the claims are asked of: matmuls, dot products and attention of given sizes, on chips of the catalogue or of the source."""

from __future__ import annotations

from planner.catalogue import load_hardware
from planner.hardware import Hardware
from planner.op import Attention, Axis, FullSpan, Matmul
from planner.precision import SCHEMES
from planner.roofline import Rating, critical_intensity, rate_op
from planner.solve.crossing import smallest_batch
from planner.units import FORMATS

WIDE = float("inf")
"""A width that does not matter."""


def ridge(chip: str, arithmetic: str = "bf16") -> float:
    """Return the critical intensity of a chip of the catalogue [FLOP/B]."""
    hardware = load_hardware(chip)
    rate, bandwidth = hardware.rate(arithmetic), hardware.memory.bandwidth.value
    assert rate.used == arithmetic
    assert rate.flops_per_s is not None
    assert bandwidth is not None
    return critical_intensity(rate.flops_per_s, bandwidth)


def matmul(rows: float, inner: int, outer: int, scheme: str = "bf16") -> Matmul:
    """Return ``[rows, inner] x [inner, outer]``."""
    axes = {"inner": Axis("inner", inner), "outer": (Axis("outer", outer),)}
    return Matmul(name="matmul", group="chapter", rows=rows, scheme=SCHEMES[scheme], **axes)  # type: ignore[arg-type]


def rated(chip: str, rows: float, inner: int, outer: int, scheme: str = "bf16") -> Rating:
    """Return a matmul against the roofline of a chip of the catalogue."""
    return rate_op(matmul(rows, inner, outer, scheme), load_hardware(chip))


def attention(queries: float, keys: float, heads_per_kv_head: int = 1, *, causal: bool = False) -> Attention:
    """Return one flash-style pass of attention: queries, keys, values and results are moved once."""
    return Attention(
        name="attention",
        group="chapter",
        pairs=FullSpan().pairs(queries, keys - queries, causal=causal),
        rows=queries,
        query_heads=Axis("query_heads", heads_per_kv_head),
        qk_dim=128,
        v_dim=128,
        fresh_tokens=0,
        fresh_heads=Axis("kv_heads", 1),
        fresh_width=0,
        cache_read=keys,
        cache_written=0,
        cache_heads=Axis("kv_heads", 1),
        cache_width=256,
        cache_format=FORMATS["bf16"],
        activation_format=FORMATS["bf16"],
        compute_format="bf16",
    )


def compute_bound_prompt(chip: str, heads_per_kv_head: int = 1, *, causal: bool = False) -> int | None:
    """Return the shortest prompt whose attention is compute-bound on a chip of the catalogue [tokens]."""
    hardware: Hardware = load_hardware(chip)

    def excess(tokens: float) -> float:
        rating = rate_op(attention(tokens, tokens, heads_per_kv_head, causal=causal), hardware)
        assert rating.compute_s is not None
        assert rating.memory_s is not None
        return float(rating.compute_s) - float(rating.memory_s)

    return smallest_batch(excess)
