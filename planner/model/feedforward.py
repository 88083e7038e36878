"""Kinds of feed-forward network: dense or a mixture of experts, gated or plain."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.model.tensor import Count, Description, Flag, Tensor, Vector
from planner.op import SINGLE, Axis
from planner.precision import Role


class FeedForwardBlock(Description):
    """What every kind of feed-forward network answers."""

    @abstractmethod
    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """Return the weights of one layer."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The kind in a few words, for tables."""


def projections(
    hidden: Axis, width: int, role: Role, *, gated: bool, bias: bool, copies: Axis = SINGLE, prefix: str = ""
) -> tuple[Tensor, Tensor]:
    """Return the projections into and out of an FFN of `width` elements; gate and up are fused."""
    ffn = Axis("ffn" if copies is SINGLE else "expert_ffn", width)
    into = (ffn, ffn) if gated else (ffn,)
    name = "gate_up_proj" if gated else "up_proj"
    return (
        Tensor(f"{prefix}{name}", role, hidden, into, bias=bias, copies=copies),
        Tensor(f"{prefix}down_proj", role, ffn, (hidden,), bias=bias, copies=copies),
    )


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

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `FeedForwardBlock.tensors`."""
        hidden = Axis("hidden", hidden_size)
        return projections(hidden, self.intermediate_size, Role.FFN, gated=self.kind == "gated", bias=self.bias)


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
    shared_intermediate_size: Count | None = None
    """Width of the shared experts together, which every token passes."""
    shared_gate: Flag = False
    """A learned scalar gate on the shared experts."""

    @model_validator(mode="after")
    def _check(self) -> MixtureOfExperts:
        if self.num_experts_per_tok > self.num_experts:
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

    def tensors(self, hidden_size: int) -> tuple[Tensor | Vector, ...]:
        """See `FeedForwardBlock.tensors`."""
        hidden = Axis("hidden", hidden_size)
        router = Tensor("router", Role.ROUTER, hidden, (Axis("router", self.num_experts),), bias=self.router_bias)
        routed = projections(
            hidden,
            self.moe_intermediate_size,
            Role.EXPERTS,
            gated=self.gated,
            bias=self.expert_bias,
            copies=Axis("experts", self.num_experts),
            prefix="experts.",
        )
        return (router, *routed, *self.shared(hidden))

    def shared(self, hidden: Axis) -> tuple[Tensor, ...]:
        """Return the weights of the shared experts."""
        if not self.shared_intermediate_size:
            return ()
        tensors = projections(
            hidden,
            self.shared_intermediate_size,
            Role.SHARED_EXPERTS,
            gated=self.gated,
            bias=False,
            prefix="shared_experts.",
        )
        gate = (Tensor("shared_experts.gate", Role.ROUTER, hidden, (Axis("gate", 1),)),) if self.shared_gate else ()
        return (*gate, *tensors)


AnyFeedForward = Annotated[FeedForward | MixtureOfExperts, Field(discriminator="kind")]
