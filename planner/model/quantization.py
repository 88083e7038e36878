"""How a checkpoint stores its weights: a precision for each tensor class, and what differs from it by tensor or by share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from planner.errors import InputError
from planner.precision import NEVER_QUANTIZED, SCHEMES, Part, Precision, Role, Scheme, find_scheme, policy_of, stored_as
from planner.sourced import Description
from planner.units import LARGEST_COUNT

Number = Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True)]
"""A number, which no text and no truth value stands for."""

Bits = Annotated[Number, Field(gt=0, le=64)]
"""Bits of a stored element or of a scale."""


PrecisionName = Annotated[str, Field(json_schema_extra={"enum": list(SCHEMES)})]
"""A name of `--precision`."""


class Stored(Description):
    """A precision whose weights are stored in other widths than the name stands for: a group size, three bits, a mean of several."""

    precision: PrecisionName
    """What the arithmetic and the activations are: one of the names of `--precision`."""
    bits: Bits | None = None
    """Bits of one stored weight, where they are not the precision's own."""
    group_size: Annotated[int, Field(strict=True, ge=0, le=LARGEST_COUNT)] = 0
    """Weights that share a scale; 0: too many for the scale to count."""
    scale_bits: Annotated[Number, Field(ge=0, le=1000)] = 0
    """Bits of the scale, and of the zero-point where there is one, of one group."""

    @property
    def scheme(self) -> Scheme:
        """The scheme that it stands for."""
        usual = find_scheme(self.precision)
        return stored_as(usual, bits=self.bits, group_size=self.group_size, scale_bits=self.scale_bits)


AnyStored = PrecisionName | Stored
"""A name of `--precision`, or one with widths of its own."""


def scheme_of(stored: AnyStored) -> Scheme:
    """Return the scheme that a description stands for."""
    return find_scheme(stored) if isinstance(stored, str) else stored.scheme


class StoredPart(Description):
    """A tensor, or a tensor class, that is stored in another precision than the rest, or a share of it that is."""

    of: Annotated[str, Field(min_length=1)]
    """Name of a tensor (such as `qkv_proj` or `experts.down_proj`), or of a tensor class."""
    stored: AnyStored
    """How it is stored."""
    share: Annotated[Number, Field(gt=0, le=1)] = 1
    """Share of its elements, over all layers together; the rest is stored as without this entry."""


class Quantization(Description):
    """How the checkpoint stores its weights. Precision names are those of `--precision`."""

    linear: AnyStored = "bf16"
    """Dense linear layers."""
    experts: AnyStored | None = None
    """Routed experts, where they differ."""
    unquantized: tuple[Role, ...] = ()
    """Further tensor classes that stay in 16 bits, beside embeddings, LM head, routers, norms and state."""
    parts: tuple[StoredPart, ...] = ()
    """Tensors and tensor classes that differ from all this."""
    source: str = ""
    """Where this is written down."""

    @model_validator(mode="after")
    def _check(self) -> Quantization:
        try:
            self.precision("bf16")
        except InputError as error:
            raise ValueError(str(error)) from None
        shares: dict[str, float] = {}
        for part in self.parts:
            shares[part.of] = shares.get(part.of, 0.0) + part.share
        crowded = [name for name, share in shares.items() if share > 1 + ROUNDING]
        if crowded:
            raise ValueError(f"parts: the shares of {', '.join(crowded)} add up to more than 1")
        return self

    def precision(self, kv: str, *, experts: str | None = None) -> Precision:
        """Return the policy that runs the checkpoint as stored, with routed experts in another precision if one is named."""
        routed = find_scheme(experts) if experts else None if self.experts is None else scheme_of(self.experts)
        parts = tuple(Part(part.of, scheme_of(part.stored), part.share) for part in self.parts)
        return policy_of(
            scheme_of(self.linear),
            experts=routed,
            kv=kv,
            unquantized=NEVER_QUANTIZED | set(self.unquantized),
            parts=tuple(part for part in parts if not (experts and part.of.startswith(Role.EXPERTS))),
        )


ROUNDING = 1e-6
"""Shares are written with so much rounding."""
