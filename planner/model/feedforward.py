"""Kinds of feed-forward network: dense or a mixture of experts, gated or plain."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.model.tensor import Count, CountOrZero, Tensor, Vector
from planner.op import Axis
from planner.precision import Role
from planner.sourced import Description, Flag


class FeedForwardBlock(Description):
    """What every kind of feed-forward network answers."""

    shared_weights: Flag = False
    """The weights are those of an earlier layer, and stored there."""

    @abstractmethod
    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """Return the weights of one layer."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The kind in a few words, for tables."""


def projections(hidden: Axis, width: int, role: Role, *, gated: bool, bias: bool, prefix: str = "") -> list[Tensor]:
    """Return the projections into and out of an FFN of `width` elements; gate and up are fused."""
    ffn = Axis("ffn", width)
    into = (ffn, ffn) if gated else (ffn,)
    name = "gate_up_proj" if gated else "up_proj"
    return [
        Tensor(f"{prefix}{name}", role, hidden, into, bias=bias),
        Tensor(f"{prefix}down_proj", role, ffn, (hidden,), bias=bias),
    ]


class FeedForward(FeedForwardBlock):
    """A dense network: up, activation, down; `gated` has a gate beside up (SwiGLU and the like)."""

    kind: Literal["gated", "plain"]
    intermediate_size: Count
    """Width between the projections."""
    bias: Flag = False
    """Biases on the projections."""

    @property
    def label(self) -> str:
        """See `FeedForwardBlock.label`."""
        return f"{self.kind} ffn"

    def tensors(self, hidden_size: int) -> tuple[Tensor, ...]:
        """See `FeedForwardBlock.tensors`."""
        hidden = Axis("hidden", hidden_size)
        return tuple(projections(hidden, self.intermediate_size, Role.FFN, gated=self.kind == "gated", bias=self.bias))


class MixtureOfExperts(FeedForwardBlock):
    """A router that sends each token to some of the experts, and experts that every token passes."""

    kind: Literal["moe"]
    num_experts: Count
    """Routed experts."""
    num_experts_per_tok: Count
    """Experts that a token is sent to."""
    moe_intermediate_size: Count
    """Width of one expert."""
    gated: Flag = True
    """Experts have a gate beside their up projection."""
    expert_bias: Flag = False
    """Biases on the experts' projections."""
    router_bias: Flag = False
    """Bias on the router."""
    router_parameters: CountOrZero = 0
    """Further parameters of the router that take part in no matmul: learned corrections and scales."""
    router_size: Count | None = None
    """Elements of what the router reads, where it is not the hidden size."""
    router_outputs: Count | None = None
    """Scores of the router, where it has not one for each expert: those of two lists whose pairs are the experts (product keys)."""
    zero_experts: CountOrZero = 0
    """Further experts that a token may be sent to and that compute nothing (LongCat)."""
    latent_size: Count | None = None
    """Experts work on a projection of the token to so many elements."""
    latent_bias: Flag = False
    """Biases on the projections to and from that size."""
    shared_intermediate_size: Count | None = None
    """Width of the shared experts together, which every token passes."""
    shared_bias: Flag = False
    """Biases on the shared experts' projections."""
    shared_gate: Flag = False
    """A learned scalar gate on the shared experts."""
    needs_source: Flag = False
    """Only tokens of images are sent to these experts, and none of text."""

    @model_validator(mode="after")
    def _check(self) -> MixtureOfExperts:
        if self.num_experts_per_tok > self.num_experts + self.zero_experts:
            raise ValueError(
                f"num_experts_per_tok {self.num_experts_per_tok} is more than num_experts {self.num_experts}"
            )
        if self.shared_gate and not self.shared_intermediate_size:
            raise ValueError("shared_gate needs shared_intermediate_size")
        return self

    @property
    def label(self) -> str:
        """See `FeedForwardBlock.label`."""
        return f"moe {self.num_experts_per_tok}/{self.num_experts}"

    @property
    def experts_used(self) -> int:
        """Experts with weights that a token is sent to, zero experts taken off in proportion (rounded up)."""
        total = self.num_experts + self.zero_experts
        return -(-self.num_experts_per_tok * self.num_experts // total)

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `FeedForwardBlock.tensors`."""
        hidden = Axis("hidden", hidden_size)
        routed_by = Axis("router_hidden", self.router_size) if self.router_size else hidden
        choices = (Axis("router", self.router_outputs or self.num_experts + self.zero_experts),)
        return (
            Tensor("router", Role.ROUTER, routed_by, choices, bias=self.router_bias),
            *([Vector("router.scales", Role.ROUTER, self.router_parameters)] if self.router_parameters else []),
            *self._latent(hidden),
            *self._routed(hidden),
            *self._shared(hidden),
        )

    def _latent(self, hidden: Axis) -> Iterator[Tensor]:
        if self.latent_size:
            latent = Axis("expert_latent", self.latent_size)
            yield Tensor("latent_in_proj", Role.FFN, hidden, (latent,), bias=self.latent_bias)
            yield Tensor("latent_out_proj", Role.FFN, latent, (hidden,), bias=self.latent_bias)

    def _routed(self, hidden: Axis) -> tuple[Tensor, Tensor]:
        inner = Axis("expert_latent", self.latent_size) if self.latent_size else hidden
        ffn, experts = Axis("expert_ffn", self.moe_intermediate_size), Axis("experts", self.num_experts)
        bias, used, role = self.expert_bias, self.experts_used, Role.EXPERTS
        into, name = ((ffn, ffn), "gate_up_proj") if self.gated else ((ffn,), "up_proj")
        return (
            Tensor(f"experts.{name}", role, inner, into, bias=bias, copies=experts, used=used),
            Tensor("experts.down_proj", role, ffn, (inner,), bias=bias, copies=experts, used=used),
        )

    def _shared(self, hidden: Axis) -> Iterator[Tensor]:
        if not self.shared_intermediate_size:
            return
        if self.shared_gate:
            yield Tensor("shared_experts.gate", Role.ROUTER, hidden, (Axis("gate", 1),))
        yield from projections(
            hidden,
            self.shared_intermediate_size,
            Role.SHARED_EXPERTS,
            gated=self.gated,
            bias=self.shared_bias,
            prefix="shared_experts.",
        )


AnyFeedForward = Annotated[FeedForward | MixtureOfExperts, Field(discriminator="kind")]
