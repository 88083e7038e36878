"""Readers of feed-forward networks: dense, and mixtures of experts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.parts.basics import (
    Fact,
    FeedForwardReader,
    Rule,
    Test,
    build,
    count,
    flag,
    is_kind,
    kinds,
    layer_count,
)
from planner.model import FeedForward, MixtureOfExperts


def dense(
    *,
    kind: Literal["gated", "plain"] = "gated",
    width: str | Callable[[Config, int], int] = "intermediate_size",
    bias: Fact = False,
) -> Callable[[Config, int], FeedForward]:
    """Return a reader of a dense network."""

    def read(config: Config, index: int) -> FeedForward:
        size = width(config, index) if callable(width) else config.at_layer(width, index, layer_count(config))
        return build(config, FeedForward, kind=kind, intermediate_size=size, bias=flag(config, bias, index))

    return read


def four_times(field: str) -> Callable[[Config, int], int]:
    """Return a width reader: `field`, or four times the hidden size where it is null or absent."""

    def read(config: Config, index: int) -> int:
        return config.optional(field) or 4 * config.integer("hidden_size")

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A reader of a mixture of experts: its fields are the facts of the architecture.

    Attributes
    ----------
    number, chosen, width : str
        The fields that state the experts, those that a token is sent to, and their width.
    gated, bias, router_bias, router_parameters, router_size, zero_experts, shared, shared_bias, shared_gate, latent, latent_bias : Fact
        See `planner.model.MixtureOfExperts`; `shared` is the width of the shared experts together.
    sparse : callable, optional
        Whether a layer has experts; every one where not given.
    otherwise : callable
        Reads the network of the other layers.
    """

    number: str = "num_experts"
    chosen: str = "num_experts_per_tok"
    width: str = "moe_intermediate_size"
    gated: bool = True
    bias: Fact = False
    router_bias: Fact = False
    router_parameters: Fact = None
    router_size: Fact = None
    zero_experts: Fact = None
    shared: Fact = None
    shared_bias: Fact = False
    shared_gate: Fact = False
    latent: Fact = None
    latent_bias: Fact = False
    sparse: Test | None = None
    otherwise: FeedForwardReader = dense()

    def __call__(self, config: Config, index: int) -> Any:
        """Read one layer's network."""
        if self.sparse is not None and not self.sparse(config, index):
            return self.otherwise(config, index)
        total, top = config.integer(self.number), config.integer(self.chosen)
        if top > total:
            config.conflict(self.chosen, f"{top} is more than the {total} experts")
            top = total
        shared = count(config, self.shared, index) or None
        return build(
            config,
            MixtureOfExperts,
            kind="moe",
            num_experts=total,
            num_experts_per_tok=top,
            moe_intermediate_size=config.integer(self.width),
            gated=self.gated,
            expert_bias=flag(config, self.bias),
            router_bias=flag(config, self.router_bias),
            router_parameters=count(config, self.router_parameters, index) or 0,
            router_size=count(config, self.router_size, index) or None,
            zero_experts=count(config, self.zero_experts, index) or 0,
            shared_intermediate_size=shared,
            shared_bias=flag(config, self.shared_bias),
            shared_gate=flag(config, self.shared_gate) and shared is not None,
            latent_size=count(config, self.latent, index) or None,
            latent_bias=flag(config, self.latent_bias),
        )


def half_of(field: str = "intermediate_size") -> Callable[[Config, int], int]:
    """Return a reader of the width of a gated network, where a field counts gate and up together."""
    return lambda config, index: max(config.integer(field) // 2, 1)  # the signature of every reader


def several(number: str, width: str = "moe_intermediate_size", default: int = 0) -> Callable[[Config, int], int]:
    """Return a reader of the width of shared experts: so many of one width."""

    def read(config: Config, index: int) -> int:
        shared = config.optional(number, default, least=0) or 0
        return shared * config.integer(width) if shared else 0

    return read


def after_dense(field: str = "first_k_dense_replace", default: int = 0, frequency: str = "moe_layer_freq") -> Test:
    """Return a test: experts from the layer that `field` counts on, or where the list in `frequency` says so."""

    def test(config: Config, index: int) -> bool:
        first = config.integer(field, default, least=0)
        if isinstance(config.get(frequency), list):
            listed = config.integers(frequency) or ()
            if len(listed) < layer_count(config):
                config.fault(frequency, f"has {len(listed)} items, one for each layer is expected")
                config.raise_faults()
            return bool(listed[index])
        return index >= first and index % config.integer(frequency, 1) == 0

    return test


MLP_KINDS = ("dense", "sparse")


def sparse_by_type(rule: Rule) -> Test:
    """Return a test: experts where `mlp_layer_types` says so, or a rule where there is no such list."""
    return is_kind(kinds(rule, "mlp_layer_types", MLP_KINDS), "sparse")


def sparse_where(test: Test) -> Test:
    """Return a test: experts where `mlp_layer_types` says so, or another test where there is no such list."""
    return sparse_by_type(lambda config, index: "sparse" if test(config, index) else "dense")


def sparse_listed(*fields: str, first: int = 1) -> Test:
    """Return a test: experts in the layers that one of some fields lists, as text between commas or not; where none does, from `first` on."""

    def test(config: Config, index: int) -> bool:
        for field in fields:
            listed = config.get(field)
            if listed is not None:
                names = listed.split(",") if isinstance(listed, str) else (config.listed(field) or ())
                return str(index) in {str(name).strip() for name in names}
        return index >= first

    return test


def qwen_sparse(config: Config, index: int) -> bool:
    """Qwen: every `decoder_sparse_step`-th layer has experts, unless `mlp_only_layers` lists it."""
    step = config.integer("decoder_sparse_step", 1)
    only = config.derived("mlp_only", lambda: frozenset(config.integers("mlp_only_layers") or ()))
    config.get("intermediate_size")
    return index not in only and (index + 1) % step == 0
