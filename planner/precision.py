"""Precision is a policy: the format of weights by tensor class, of activations, of the KV cache, and of the arithmetic.

``int8`` is int8 weights *and* int8 arithmetic and keeps the critical batch of bf16 where the int8 peak is twice as high;
``w8a16`` is int8 weights with bf16 arithmetic, and halves it. Embeddings, the LM head, routers, norms and recurrent state stay in
16 bits under every quantised policy, as checkpoints and engines keep them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from planner.errors import InputError, nearest
from planner.units import FORMATS, Format


class Role(StrEnum):
    """What a tensor is for: precision is chosen by role."""

    ATTENTION = "attention"
    FFN = "ffn"
    EXPERTS = "experts"
    SHARED_EXPERTS = "shared_experts"
    ROUTER = "router"
    LM_HEAD = "lm_head"
    EMBEDDING = "embedding"
    NORM = "norm"
    STATE = "state"


NEVER_QUANTIZED = frozenset({Role.ROUTER, Role.LM_HEAD, Role.EMBEDDING, Role.NORM, Role.STATE})
"""Roles that quantised checkpoints and engines leave in 16 bits."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How one linear layer is stored and computed.

    Attributes
    ----------
    name : str
        The name users type.
    weights, activations, output : Format
        Stored weights, the matmul's other operand as read, and its result as written.
    arithmetic : str
        Whose peak the arithmetic runs at: a key of ``peak`` in a hardware file.
    """

    name: str
    weights: Format
    activations: Format
    output: Format
    arithmetic: str


def _scheme(name: str, weights: str, activations: str, arithmetic: str, output: str = "bf16") -> Scheme:
    return Scheme(name, FORMATS[weights], FORMATS[activations], FORMATS[output], arithmetic)


SCHEMES: dict[str, Scheme] = {
    s.name: s
    for s in (
        #       name           weights      activations arithmetic output
        _scheme("fp32", "fp32", "fp32", "fp32", "fp32"),
        _scheme("tf32", "fp32", "fp32", "tf32", "fp32"),
        _scheme("bf16", "bf16", "bf16", "bf16"),
        _scheme("fp16", "fp16", "fp16", "fp16", "fp16"),
        _scheme("fp8", "fp8", "fp8", "fp8"),
        _scheme("fp8_block", "fp8_block", "fp8_run", "fp8"),
        _scheme("int8", "int8", "int8", "int8"),
        _scheme("w8a16", "int8", "bf16", "bf16"),
        _scheme("w4a16", "int4", "bf16", "bf16"),
        _scheme("w4a8", "int4", "int8", "int8"),
        _scheme("mxfp4_w4a16", "mxfp4", "bf16", "bf16"),
        _scheme("mxfp4_w4a8", "mxfp4", "fp8", "fp8"),
        _scheme("nvfp4", "nvfp4", "nvfp4", "nvfp4"),
    )
}

KV_FORMATS = ("bf16", "fp8", "int8", "int4", "fp4")

# Kernels that read an fp8 cache multiply in fp8; those that read an integer cache convert it to 16 bits first.
_ATTENTION_ARITHMETIC = {"fp8": "fp8", "fp4": "fp8"}


@dataclass(frozen=True, slots=True)
class Precision:
    """A precision policy: one `Scheme` for each role, and the format of the KV cache.

    Attributes
    ----------
    name : str
        The policy as the user named it, or as the checkpoint stores it.
    linear, experts, base : Scheme
        For dense linear layers, routed experts, and everything that is not quantised.
    kv : Format
        Stored keys and values.
    unquantized : frozenset of Role
        Roles that take `base`.
    """

    name: str
    linear: Scheme
    experts: Scheme
    base: Scheme
    kv: Format
    unquantized: frozenset[Role] = field(default=NEVER_QUANTIZED)

    def scheme(self, role: Role) -> Scheme:
        """Return the scheme of a tensor class."""
        if role in self.unquantized:
            return self.base
        return self.experts if role is Role.EXPERTS else self.linear

    @property
    def attention_arithmetic(self) -> str:
        """The format that scores and their weighted sum are computed in."""
        if self.base.arithmetic in ("bf16", "fp16"):
            return _ATTENTION_ARITHMETIC.get(self.kv.name, self.base.arithmetic)
        return self.base.arithmetic

    @property
    def formats(self) -> Mapping[str, str]:
        """What runs in which format, in words for reports and JSON."""
        return {
            "linear": self.linear.name,
            "experts": self.experts.name,
            "unquantized": self.base.name,
            "attention_arithmetic": self.attention_arithmetic,
            "kv_cache": self.kv.name,
        }


def find_scheme(name: str) -> Scheme:
    """Return the scheme called `name`, or raise `InputError` with the names that exist."""
    if name not in SCHEMES:
        hint = nearest(name, SCHEMES)
        raise InputError(f"precision: unknown name {name!r}, {hint or 'one of'} ({', '.join(SCHEMES)})")
    return SCHEMES[name]


def policy(
    name: str,
    *,
    experts: str | None = None,
    kv: str = "bf16",
    unquantized: frozenset[Role] = NEVER_QUANTIZED,
) -> Precision:
    """Build the policy that a name stands for.

    Parameters
    ----------
    name : str
        One of `SCHEMES`, for dense linear layers.
    experts : str, optional
        Another of `SCHEMES` for routed experts; the same where not given.
    kv : str
        One of `KV_FORMATS`.
    unquantized : frozenset of Role
        Roles that stay in 16 bits under a quantised scheme.

    Raises
    ------
    InputError
        If a name is not known.
    """
    if kv not in KV_FORMATS:
        raise InputError(f"kv-precision: unknown name {kv!r}, one of {', '.join(KV_FORMATS)}")
    linear = find_scheme(name)
    routed = find_scheme(experts) if experts else linear
    is_plain = linear.weights.bits >= 16  # noqa: PLR2004 - 16 bits and more are not quantised
    return Precision(
        name=name if routed is linear else f"{name}, experts {routed.name}",
        linear=linear,
        experts=routed,
        base=linear if is_plain else SCHEMES["bf16"],
        kv=FORMATS[kv],
        unquantized=unquantized,
    )
