"""Layers: groups of them that are alike, and the weights that one stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from planner.model.attention import AnyAttention, AttentionBlock, Cache
from planner.model.feedforward import AnyFeedForward, FeedForwardBlock
from planner.model.tensor import Count, CountOrZero, Projection, Tensor, Vector
from planner.precision import Role
from planner.sourced import Description, Flag

if TYPE_CHECKING:
    from planner.model.stack import Model

MAX_LAYERS = 10_000
"""More layers than this are a slip in the file; the deepest models served have a few hundred."""


class Norm(Description):
    """The norms of a model; a norm of the hidden width has so many parameters for each element."""

    kind: Literal["rms_norm", "layer_norm"] = "rms_norm"
    weight: Flag = True
    """A learned scale for each element."""
    bias: Flag = False
    """A learned offset for each element."""

    @property
    def parameters_per_element(self) -> int:
        """Parameters for each element normalised: 0, 1 or 2."""
        return self.weight + self.bias


def _number(value: object) -> str:
    return "several" if isinstance(value, list | tuple) else "one"


Attentions = Annotated[
    Annotated[AnyAttention, Tag("one")] | Annotated[tuple[AnyAttention, ...], Tag("several")],
    Discriminator(_number),
]
FeedForwards = Annotated[
    Annotated[AnyFeedForward, Tag("one")] | Annotated[tuple[AnyFeedForward, ...], Tag("several")],
    Discriminator(_number),
]


class LayerGroup(Description):
    """Layers of one kind, or a pattern of kinds, repeated."""

    repeat: Annotated[int, Field(strict=True, ge=1, le=MAX_LAYERS)] = 1
    """How many times."""
    attention: Attentions | None = None
    """The layer's attention, or what stands in its place; several in a list where a layer has more; null for none."""
    ffn: FeedForwards | None = None
    """The layer's feed-forward network; several in a list where a layer has more; null for none."""
    norms: Annotated[int, Field(strict=True, ge=0, le=16)] | None = None
    """Norms of the hidden width in a layer; one before attention and one before the FFN where not given."""
    projections: tuple[Projection, ...] = ()
    """Further matrices that each token is multiplied by."""
    other_parameters: CountOrZero = 0
    """Further parameters that take part in no matmul: norms of other widths, scales, position biases."""
    shared_weights: Flag = False
    """Every weight is an earlier layer's, and stored there: the layer runs again."""
    hidden_size: Count | None = None
    """Elements of its residual stream, where it is not the model's."""
    tokens_per_patch: Annotated[float, Field(ge=1, le=10_000, allow_inf_nan=False)] | None = None
    """The layer runs once for so many tokens, in the mean: it works on patches of them (byte latent transformer)."""
    needs_source: Flag = False
    """The layer runs only where there is an image, and is skipped for text (Llama 3.2 Vision)."""
    pattern: tuple[LayerGroup, ...] | None = None
    """Instead of one kind: a sequence of groups that is repeated as a whole."""

    @model_validator(mode="after")
    def _check(self) -> LayerGroup:
        if self.pattern is not None:
            if self.attention or self.ffn or self.norms is not None:
                raise ValueError("a group has either a pattern, or attention, ffn and norms of its own")
            if not self.pattern:
                raise ValueError("pattern is empty, it needs at least one group")
        elif not (self.attention or self.ffn or self.projections) and self.norms != 0:
            raise ValueError("a layer needs attention, ffn or both; one that does nothing has norms: 0")
        return self

    @property
    def mixers(self) -> tuple[AttentionBlock, ...]:
        """Attention and what stands in its place, in order."""
        if self.attention is None:
            return ()
        return self.attention if isinstance(self.attention, tuple) else (self.attention,)

    @property
    def caches(self) -> tuple[Cache, ...]:
        """What each of them keeps of a sequence."""
        found = tuple(block.cache for block in self.mixers)
        rate = self.tokens_per_patch
        return found if rate is None else tuple(replace(cache, tokens_per_entry=rate) for cache in found)

    @property
    def networks(self) -> tuple[FeedForwardBlock, ...]:
        """Feed-forward networks, in order."""
        if self.ffn is None:
            return ()
        return self.ffn if isinstance(self.ffn, tuple) else (self.ffn,)

    @property
    def blocks(self) -> tuple[AttentionBlock | FeedForwardBlock, ...]:
        """Everything in the layer that has weights, in order."""
        return (*self.mixers, *self.networks)

    @property
    def norm_count(self) -> int:
        """Norms of the hidden width in one layer."""
        return (bool(self.mixers) + bool(self.networks)) if self.norms is None else self.norms

    @property
    def layer_count(self) -> int:
        """Layers in the group, repeats included."""
        return self.repeat * (1 if self.pattern is None else sum(g.layer_count for g in self.pattern))

    def kinds(self) -> Iterator[tuple[LayerGroup, int]]:
        """Yield each kind of layer with its count, in order of first appearance within a repeat."""
        if self.pattern is None:
            yield (self if self.repeat == 1 else self.model_copy(update={"repeat": 1})), self.repeat
            return
        for group in self.pattern:
            for kind, count in group.kinds():
                yield kind, count * self.repeat


@dataclass(frozen=True, slots=True)
class LayerKind:
    """All layers of a model that are alike.

    Attributes
    ----------
    label : str
        The kind in words, unique within the model.
    layer : LayerGroup
        One such layer.
    count : int
        How many there are.
    """

    label: str
    layer: LayerGroup
    count: int

    def tensors(self, model: Model) -> tuple[Tensor | Vector, ...]:
        """Return the weights that one layer stores, norms included."""
        return layer_tensors(self.layer, model.hidden_size, model.norm)


def layer_tensors(layer: LayerGroup, hidden_size: int, norm: Norm) -> tuple[Tensor | Vector, ...]:
    """Return the weights that a layer stores, norms included; not those that it shares with an earlier one.

    `hidden_size` is the model's, which a layer may have its own of.
    """
    if layer.shared_weights:
        return ()
    width = layer.hidden_size or hidden_size
    tensors: list[Tensor | Vector] = []
    for block in layer.blocks:
        if not block.shared_weights:
            tensors += block.tensors(width)
    tensors += [projection.tensor for projection in layer.projections]
    norms = layer.norm_count * width * norm.parameters_per_element
    tensors.append(Vector("norms", Role.NORM, norms + layer.other_parameters))
    return tuple(tensors)


def layer_kinds(groups: Iterable[LayerGroup]) -> tuple[LayerKind, ...]:
    """Return the kinds of layer in a stack, in order of first appearance."""
    counts: dict[LayerGroup, int] = {}
    for group in groups:
        for layer, count in group.kinds():
            counts[layer] = counts.get(layer, 0) + count
    kinds: dict[str, LayerKind] = {}
    numbers: dict[str, int] = {}
    for layer, count in counts.items():
        base = " + ".join(block.label for block in layer.blocks) or ("linear" if layer.projections else "nothing")
        numbers[base] = numbers.get(base, 0) + 1
        label = base if numbers[base] == 1 else f"{base} #{numbers[base]}"
        kinds[label] = LayerKind(label, layer, count)
    return tuple(kinds.values())
