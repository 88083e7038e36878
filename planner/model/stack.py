"""A whole transformer: embeddings, a stack of layer groups, and the LM head."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.model.attention import AnyAttention
from planner.model.feedforward import AnyFeedForward, MixtureOfExperts
from planner.model.tensor import Count, Description, Flag, Tensor, Vector
from planner.op import Axis, FullSpan
from planner.precision import NEVER_QUANTIZED, Precision, Role, policy

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


class Quantization(Description):
    """How the checkpoint stores its weights. Precision names are those of `--precision`."""

    linear: str = "bf16"
    """Dense linear layers."""
    experts: str | None = None
    """Routed experts, where they differ."""
    unquantized: tuple[Role, ...] = ()
    """Further tensor classes that stay in 16 bits, beside embeddings, LM head, routers, norms and state."""
    source: str = ""
    """Where this is written down."""

    @model_validator(mode="after")
    def _check(self) -> Quantization:
        self.precision("bf16")
        return self

    def precision(self, kv: str) -> Precision:
        """Return the policy that runs the checkpoint as stored."""
        return policy(self.linear, experts=self.experts, kv=kv, unquantized=NEVER_QUANTIZED | set(self.unquantized))


class LayerGroup(Description):
    """Layers of one kind, or a pattern of kinds, repeated."""

    repeat: Annotated[int, Field(strict=True, ge=1, le=MAX_LAYERS)] = 1
    """How many times."""
    attention: AnyAttention | None = None
    """The layer's attention; null for none."""
    ffn: AnyFeedForward | None = None
    """The layer's feed-forward network; null for none."""
    norms: Annotated[int, Field(strict=True, ge=0, le=16)] | None = None
    """Norms of the hidden width in a layer; one before attention and one before the FFN where not given."""
    pattern: tuple[LayerGroup, ...] | None = None
    """Instead of one kind: a sequence of groups that is repeated as a whole."""

    @model_validator(mode="after")
    def _check(self) -> LayerGroup:
        if self.pattern is not None:
            if self.attention or self.ffn or self.norms is not None:
                raise ValueError("a group has either a pattern, or attention, ffn and norms of its own")
            if not self.pattern:
                raise ValueError("pattern is empty, it needs at least one group")
        elif not (self.attention or self.ffn):
            raise ValueError("a layer needs attention, ffn or both")
        return self

    @property
    def norm_count(self) -> int:
        """Norms of the hidden width in one layer."""
        return (bool(self.attention) + bool(self.ffn)) if self.norms is None else self.norms

    @property
    def layer_count(self) -> int:
        """Layers in the group, repeats included."""
        return self.repeat * (1 if self.pattern is None else sum(g.layer_count for g in self.pattern))

    def kinds(self) -> Iterator[tuple[LayerGroup, int]]:
        """Yield each kind of layer with its count, in order of first appearance within a repeat."""
        if self.pattern is None:
            yield self.model_copy(update={"repeat": 1}), self.repeat
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
        """Return the weights of one layer, norms included."""
        tensors: list[Tensor | Vector] = []
        for block in (self.layer.attention, self.layer.ffn):
            if block is not None:
                tensors += block.tensors(model.hidden_size)
        width = model.hidden_size * model.norm.parameters_per_element
        tensors.append(Vector("norms", Role.NORM, self.layer.norm_count * width))
        return tuple(tensors)

    def active_share(self, tensor: Tensor | Vector) -> tuple[int, int]:
        """Return the share of a tensor that a token uses, as numerator and denominator."""
        ffn = self.layer.ffn
        if tensor.role is Role.EXPERTS and isinstance(ffn, MixtureOfExperts):
            return ffn.num_experts_per_tok, ffn.num_experts
        return 1, 1


class Model(Description):
    """A transformer language model."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Name in tables and reports."""
    source: str = ""
    """Where the figures come from."""
    published_parameters: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Parameters as published, to check the description against."""
    hidden_size: Count
    """Elements of the residual stream."""
    vocab_size: Count
    """Rows of the embedding."""
    tie_word_embeddings: Flag
    """The LM head is the embedding matrix, counted once."""
    lm_head_bias: Flag = False
    """A bias for each token of the vocabulary."""
    max_position_embeddings: Count | None = None
    """Longest context that the model was made for."""
    learned_positions: Count | None = None
    """Rows of a learned position embedding, where there is one."""
    norm: Norm = Norm()
    """The kind of norm, everywhere of the hidden width."""
    final_norm: Flag = True
    """A norm before the LM head."""
    layers: Annotated[tuple[LayerGroup, ...], Field(min_length=1)]
    """The stack, in order."""
    quantization: Quantization = Quantization()
    """How the checkpoint stores its weights."""
    vision_parameters: Annotated[int, Field(strict=True, ge=0)] | None = None
    """Parameters of towers and projectors that are not part of the text model; null where not known."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers should know."""

    @model_validator(mode="after")
    def _check(self) -> Model:
        count = sum(g.layer_count for g in self.layers)
        if count > MAX_LAYERS:
            raise ValueError(f"layers: {count} layers, at most {MAX_LAYERS} make sense")
        return self

    @property
    def num_hidden_layers(self) -> int:
        """Layers in the stack."""
        return sum(g.layer_count for g in self.layers)

    @property
    def layer_kinds(self) -> tuple[LayerKind, ...]:
        """The kinds of layer, in order of first appearance."""
        counts: dict[LayerGroup, int] = {}
        for group in self.layers:
            for layer, count in group.kinds():
                counts[layer] = counts.get(layer, 0) + count
        kinds: dict[str, LayerKind] = {}
        for layer, count in counts.items():
            label = base = " + ".join(block.label for block in (layer.attention, layer.ffn) if block is not None)
            number = 1
            while label in kinds:
                number += 1
                label = f"{base} #{number}"
            kinds[label] = LayerKind(label, layer, count)
        return tuple(kinds.values())

    @property
    def embedding(self) -> Tensor:
        """The token embedding, as the matrix that the LM head multiplies by."""
        return Tensor(
            "embed_tokens", Role.EMBEDDING, Axis("hidden", self.hidden_size), (Axis("vocab", self.vocab_size),)
        )

    @property
    def lm_head(self) -> Tensor:
        """The LM head; with tied embeddings the same matrix as `embedding`."""
        hidden, vocab = Axis("hidden", self.hidden_size), Axis("vocab", self.vocab_size)
        return Tensor("lm_head", Role.LM_HEAD, hidden, (vocab,), bias=self.lm_head_bias)

    def outer_tensors(self) -> tuple[Tensor | Vector, ...]:
        """Return the weights that stand outside the layers, each stored tensor once."""
        width = self.hidden_size * self.norm.parameters_per_element
        tensors: list[Tensor | Vector] = [self.embedding]
        if self.learned_positions:
            tensors.append(Vector("embed_positions", Role.EMBEDDING, self.learned_positions * self.hidden_size))
        if self.final_norm:
            tensors.append(Vector("final_norm", Role.NORM, width))
        if not self.tie_word_embeddings:
            tensors.append(self.lm_head)
        elif self.lm_head_bias:
            tensors.append(Vector("lm_head.bias", Role.LM_HEAD, self.vocab_size))
        return tuple(tensors)

    @property
    def parameters(self) -> int:
        """Parameters of the text model, a tied LM head once."""
        return sum(t.parameters for t in self.outer_tensors()) + sum(
            kind.count * t.parameters for kind in self.layer_kinds for t in kind.tensors(self)
        )

    @property
    def active_parameters(self) -> int:
        """`parameters` with routed experts scaled by the share of them that a token uses."""
        total = sum(t.parameters for t in self.outer_tensors())
        for kind in self.layer_kinds:
            for tensor in kind.tensors(self):
                used, of = kind.active_share(tensor)
                total += kind.count * tensor.parameters * used // of
        return total

    @property
    def kv_elements_per_token(self) -> int:
        """Cached elements for each token, of the layers whose cache grows with every token."""
        caches = ((kind.count, kind.layer.attention.cache) for kind in self.layer_kinds if kind.layer.attention)
        return sum(count * cache.width for count, cache in caches if isinstance(cache.span, FullSpan))
