"""Precision is a policy: the format of weights by tensor class, of activations, of the KV cache, and of the arithmetic.

``int8`` is int8 weights *and* int8 arithmetic and keeps the critical batch of bf16 where the int8 peak is twice as high;
``w8a16`` is int8 weights with bf16 arithmetic, and halves it. Embeddings, the LM head, routers, norms and recurrent state stay in
16 bits under every quantised policy, as checkpoints and engines keep them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
        _scheme("mxfp4", "mxfp4", "mxfp4", "mxfp4"),
        _scheme("nvfp4", "nvfp4", "nvfp4", "nvfp4"),
    )
}

KV_FORMATS = ("bf16", "fp8", "int8", "int4", "fp4")

# Kernels that read an fp8 cache multiply in fp8; those that read an integer cache convert it to 16 bits first.
_ATTENTION_ARITHMETIC = {"fp8": "fp8", "fp4": "fp8"}


def stored_as(scheme: Scheme, *, bits: float | None = None, group_size: int = 0, scale_bits: float = 0) -> Scheme:
    """Return a scheme whose weights are stored with other widths than usual.

    Parameters
    ----------
    scheme : Scheme
        What the arithmetic and the activations are.
    bits : float, optional
        Bits of one stored weight; the scheme's where not given.
    group_size : int
        Weights that share a scale; 0 for none, or too few to count.
    scale_bits : float
        Bits of the scale (and zero-point) of one group.

    Examples
    --------
    >>> stored_as(SCHEMES["w4a16"], bits=3, group_size=64, scale_bits=19).weights.bytes_per_element * 8
    3.296875
    """
    usual = scheme.weights
    width = usual.bits if bits is None else bits
    if (width, group_size, scale_bits) == (usual.bits, usual.block, usual.scale_bits):
        return scheme
    stored = Format(usual.name if width == usual.bits else f"{width:.4g}-bit", width, group_size, scale_bits)
    name = scheme.name if width == usual.bits else f"{scheme.name} at {width:.4g} bits"
    return replace(scheme, name=name, weights=stored)


@dataclass(frozen=True, slots=True)
class Part:
    """A tensor, or a tensor class, that is stored in another scheme than the policy's own, or a share of it that is.

    Attributes
    ----------
    of : str
        Name of a tensor (``qkv_proj``), or else of a `Role`. A part of a tensor goes before one of its role.
    scheme : Scheme
        How it is stored and computed.
    share : float
        Share of its elements, over all layers together.
    """

    of: str
    scheme: Scheme
    share: float = 1.0


def blended(own: Scheme, parts: Sequence[Part]) -> Scheme:
    """Return one scheme for a tensor that is stored in several: bytes are exact on average, arithmetic is the largest share's.

    Parameters
    ----------
    own : Scheme
        Of what the parts leave over.
    parts : sequence of Part
        Their shares add up to at most 1.

    Examples
    --------
    >>> half = blended(SCHEMES["fp8"], [Part("qkv_proj", SCHEMES["bf16"], 0.25)])
    >>> half.arithmetic, half.weights.bytes_per_element
    ('fp8', 1.25)
    """
    shares = [(part.scheme, part.share) for part in parts]
    rest = 1 - sum(share for _, share in shares)
    if rest > SHARE_TOLERANCE:
        shares.append((own, rest))
    if len(shares) == 1:
        return shares[0][0]
    largest = max(shares, key=lambda pair: pair[1])[0]
    bits = sum(scheme.weights.bytes_per_element * 8 * share for scheme, share in shares)
    names = " and ".join(dict.fromkeys(scheme.name for scheme, _ in shares))
    return replace(largest, name=names, weights=Format(names, bits))


SHARE_TOLERANCE = 1e-9
"""Shares that add up to 1 within this leave nothing over."""


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
    parts : tuple of Part
        Tensors, tensor classes and shares of them that differ.
    """

    name: str
    linear: Scheme
    experts: Scheme
    base: Scheme
    kv: Format
    unquantized: frozenset[Role] = field(default=NEVER_QUANTIZED)
    parts: tuple[Part, ...] = ()

    def scheme(self, role: Role, tensor: str = "") -> Scheme:
        """Return the scheme of a tensor class, or of one tensor of it by its name."""
        own = self.experts if role is Role.EXPERTS else self.linear
        own = self.base if role in self.unquantized else own
        if not self.parts:
            return own
        found = [part for part in self.parts if part.of == tensor] or [part for part in self.parts if part.of == role]
        return blended(own, found) if found else own

    def vector_scheme(self, role: Role, tensor: str) -> Scheme:
        """Return the scheme of parameters that are no matrix: they stay unquantised in classes of which matrices are."""
        return self.scheme(role, tensor) if role in self.unquantized else self.base

    @property
    def attention_arithmetic(self) -> str:
        """The format that scores and their weighted sum are computed in."""
        if self.base.arithmetic in ("bf16", "fp16"):
            return _ATTENTION_ARITHMETIC.get(self.kv.name, self.base.arithmetic)
        return self.base.arithmetic

    @property
    def arithmetics(self) -> frozenset[str]:
        """The formats that anything is computed in: keys of ``peak`` in a hardware file."""
        schemes = (self.linear, self.experts, self.base, *(part.scheme for part in self.parts))
        return frozenset({self.attention_arithmetic, *(scheme.arithmetic for scheme in schemes)})

    @property
    def formats(self) -> Mapping[str, str]:
        """What runs in which format, in words for reports and JSON."""
        return {
            "linear": self.linear.name,
            "experts": self.experts.name,
            "unquantized": self.base.name,
            "attention_arithmetic": self.attention_arithmetic,
            "kv_cache": self.kv.name,
            **({"exceptions": self._exceptions} if self._exceptions else {}),
        }

    @property
    def _exceptions(self) -> str:
        """Which tensor classes and tensors differ, in words."""
        roles = [f"{role} {self.base.name}" for role in Role if role in self.unquantized - NEVER_QUANTIZED]
        shares = ((part, "" if part.share == 1 else f" {100 * part.share:.3g} %") for part in self.parts)
        return "; ".join(roles + [f"{part.of}{share} {part.scheme.name}" for part, share in shares])


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
    linear = find_scheme(name)
    return policy_of(linear, experts=find_scheme(experts) if experts else None, kv=kv, unquantized=unquantized)


PLAIN_BITS = 16
"""A format of so many bits or more is not quantised."""


def policy_of(
    linear: Scheme,
    *,
    experts: Scheme | None = None,
    kv: str = "bf16",
    unquantized: frozenset[Role] = NEVER_QUANTIZED,
    parts: tuple[Part, ...] = (),
) -> Precision:
    """Build the policy of schemes that are at hand; see `policy`.

    Raises
    ------
    InputError
        If the format of the KV cache is not known.
    """
    if kv not in KV_FORMATS:
        raise InputError(f"kv-precision: unknown name {kv!r}, one of {', '.join(KV_FORMATS)}")
    routed = linear if experts is None else experts
    return Precision(
        name=linear.name if routed == linear else f"{linear.name}, experts {routed.name}",
        linear=linear,
        experts=routed,
        base=linear if linear.weights.bits >= PLAIN_BITS else SCHEMES["bf16"],
        kv=FORMATS[kv],
        unquantized=unquantized,
        parts=parts,
    )
