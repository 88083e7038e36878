"""A whole transformer: embeddings, a stack of layer groups, and the LM head."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from planner.model.attention import AnyAttention, AttentionBlock
from planner.model.checkpoint import Checkpoint
from planner.model.feedforward import AnyFeedForward, FeedForwardBlock
from planner.model.quantization import Quantization
from planner.model.tensor import Count, CountOrZero, Description, Flag, Projection, Tensor, Vector
from planner.op import Axis, FullSpan
from planner.precision import Role

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
    """Return the weights that a layer stores, norms included; not those that it shares with an earlier one."""
    if layer.shared_weights:
        return ()
    tensors: list[Tensor | Vector] = []
    for block in layer.blocks:
        if not block.shared_weights:
            tensors += block.tensors(hidden_size)
    tensors += [projection.tensor for projection in layer.projections]
    norms = layer.norm_count * hidden_size * norm.parameters_per_element
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


class Table(Description):
    """A stored table that tokens look a row up in, beside the token embedding."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    """What it is called."""
    rows: Count
    """Rows."""
    width: Count
    """Elements of a row."""

    @property
    def tensor(self) -> Vector:
        """The stored table."""
        return Vector(self.name, Role.EMBEDDING, self.rows * self.width)


class Encoder(Description):
    """The encoder of an encoder-decoder: it reads the source once, and the decoder's cross-attention reads its output."""

    layers: Annotated[tuple[LayerGroup, ...], Field(min_length=1)]
    """The stack, in order."""
    hidden_size: Count | None = None
    """Elements of its residual stream, where it is not the decoder's."""
    source_positions: Count | None = None
    """Tokens of every source, where they are fixed (30 s of audio); else a source is as long as the prompt."""
    norms: Annotated[int, Field(strict=True, ge=0, le=4)] = 1
    """Norms of its width outside the layers."""
    tables: tuple[Table, ...] = ()
    """Position embeddings, and token embeddings where it has its own."""
    projections: tuple[Projection, ...] = ()
    """Matrices that each source token is multiplied by, outside the layers."""
    other_parameters: CountOrZero = 0
    """Further parameters outside the layers."""

    @property
    def layer_kinds(self) -> tuple[LayerKind, ...]:
        """The kinds of layer, in order of first appearance."""
        return layer_kinds(self.layers)

    def tensors(self, hidden_size: int, norm: Norm) -> tuple[tuple[Tensor | Vector, int], ...]:
        """Return every weight with the number of layers that it is in; `hidden_size` and `norm` are the decoder's."""
        width = self.hidden_size or hidden_size
        norms = self.norms * width * norm.parameters_per_element
        outer: list[Tensor | Vector] = [table.tensor for table in self.tables]
        outer += [projection.tensor for projection in self.projections]
        outer.append(Vector("encoder.norm", Role.NORM, norms + self.other_parameters))
        inner = ((t, k.count) for k in self.layer_kinds for t in layer_tensors(k.layer, width, norm))
        return (*((tensor, 1) for tensor in outer), *inner)


class MultiTokenPrediction(Description):
    """Modules that predict tokens beyond the next one: stored with the checkpoint, loaded for speculative decoding alone.

    Their parameters are not among the model's.
    """

    layers: Annotated[tuple[LayerGroup, ...], Field(min_length=1)]
    """Their layers, all modules together."""
    projections: Annotated[int, Field(strict=True, ge=0, le=1000)] = 1
    """Matrices that join the hidden state and the embedding of the next token: twice the hidden size to once."""
    norms: Annotated[int, Field(strict=True, ge=0, le=1000)] = 3
    """Norms of the hidden width outside their layers."""
    embeddings: Annotated[int, Field(strict=True, ge=0, le=1000)] = 0
    """Stored copies of the token embedding."""
    heads: Annotated[int, Field(strict=True, ge=0, le=1000)] = 0
    """Stored copies of the LM head."""


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
    embedding_size: Count | None = None
    """Elements of a token's embedding and of the LM head's input, where they are not the hidden size."""
    embedding_rows: Count | None = None
    """Rows of the embedding, where they are not the vocabulary that the LM head scores."""
    tables: tuple[Table, ...] = ()
    """Further tables that each token looks a row up in."""
    projections: tuple[Projection, ...] = ()
    """Matrices that each token is multiplied by, outside the layers."""
    other_parameters: CountOrZero = 0
    """Further parameters outside the layers that take part in no matmul."""
    norm: Norm = Norm.model_construct()  # construct: a default needs no validator, which would be built on import
    """The kind of norm, everywhere of the hidden width."""
    final_norm: Flag = True
    """A norm before the LM head."""
    layers: Annotated[tuple[LayerGroup, ...], Field(min_length=1)]
    """The stack, in order."""
    encoder: Encoder | None = None
    """The encoder of an encoder-decoder."""
    quantization: Quantization = Quantization.model_construct()
    """How the checkpoint stores its weights."""
    mtp: MultiTokenPrediction | None = None
    """Modules for multi-token prediction that the checkpoint holds beside the model."""
    checkpoint: Checkpoint | None = None
    """What the checkpoint's files take, where they were at hand."""
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
        """Layers in the stack; of the decoder, where there is an encoder."""
        return sum(g.layer_count for g in self.layers)

    @cached_property
    def layer_kinds(self) -> tuple[LayerKind, ...]:
        """The kinds of layer, in order of first appearance."""
        return layer_kinds(self.layers)

    @property
    def embedding(self) -> Tensor:
        """The token embedding, as the matrix that the LM head multiplies by."""
        rows = Axis("vocab", self.embedding_rows or self.vocab_size)
        return Tensor("embed_tokens", Role.EMBEDDING, self._embedded, (rows,))

    @property
    def lm_head(self) -> Tensor:
        """The LM head; with tied embeddings the same matrix as `embedding`."""
        vocab = Axis("vocab", self.vocab_size)
        return Tensor("lm_head", Role.LM_HEAD, self._embedded, (vocab,), bias=self.lm_head_bias)

    @property
    def _embedded(self) -> Axis:
        return Axis("hidden", self.embedding_size or self.hidden_size)

    def outer_tensors(self) -> tuple[Tensor | Vector, ...]:
        """Return the weights that stand outside the layers and outside the encoder, each stored tensor once."""
        width = self.hidden_size * self.norm.parameters_per_element
        tensors: list[Tensor | Vector] = [self.embedding]
        if self.learned_positions:
            tensors.append(Vector("embed_positions", Role.EMBEDDING, self.learned_positions * self.hidden_size))
        tensors += [table.tensor for table in self.tables]
        tensors += [projection.tensor for projection in self.projections]
        if self.final_norm:
            tensors.append(Vector("final_norm", Role.NORM, width))
        if self.other_parameters:
            tensors.append(Vector("other", Role.NORM, self.other_parameters))
        if not self.tie_word_embeddings:
            tensors.append(self.lm_head)
        elif self.lm_head_bias:
            tensors.append(Vector("lm_head.bias", Role.LM_HEAD, self.vocab_size))
        return tuple(tensors)

    @cached_property
    def stored_tensors(self) -> tuple[tuple[Tensor | Vector, int], ...]:
        """Every stored weight, with the number of layers that it is in (1 outside the layers)."""
        outer = ((tensor, 1) for tensor in self.outer_tensors())
        inner = ((tensor, kind.count) for kind in self.layer_kinds for tensor in kind.tensors(self))
        encoder = self.encoder.tensors(self.hidden_size, self.norm) if self.encoder else ()
        return (*outer, *inner, *encoder)

    def mtp_tensors(self) -> tuple[tuple[Tensor | Vector, int], ...]:
        """Return the weights for multi-token prediction, each with its number."""
        if self.mtp is None:
            return ()
        hidden = self.hidden_size
        width = self.mtp.norms * hidden * self.norm.parameters_per_element
        joined = Tensor("mtp.proj", Role.EMBEDDING, Axis("hidden", 2 * hidden), (Axis("hidden", hidden),))
        found: list[tuple[Tensor | Vector, int]] = [
            (joined, self.mtp.projections),
            (Vector("mtp.norms", Role.NORM, width), 1),
            (self.embedding, self.mtp.embeddings),
            (self.lm_head, self.mtp.heads),
        ]
        for group in self.mtp.layers:
            for layer, count in group.kinds():
                found += [(tensor, count) for tensor in layer_tensors(layer, hidden, self.norm)]
        return tuple(pair for pair in found if pair[1])

    @property
    def mtp_parameters(self) -> int:
        """Parameters for multi-token prediction: stored, but not among `parameters`."""
        return sum(count * tensor.parameters for tensor, count in self.mtp_tensors())

    @cached_property
    def parameters(self) -> int:
        """Parameters of the text model, a tied LM head once; of the encoder too, where there is one."""
        return sum(count * tensor.parameters for tensor, count in self.stored_tensors)

    @cached_property
    def active_parameters(self) -> int:
        """`parameters` with routed experts scaled by the share of them that a token uses."""
        return sum(count * tensor.active_parameters for tensor, count in self.stored_tensors)

    @property
    def kv_elements_per_token(self) -> int:
        """Cached elements for each token, of the layers whose cache grows with every token."""
        caches = (
            (k.count, block.cache) for k in self.layer_kinds if not k.layer.needs_source for block in k.layer.mixers
        )
        return sum(count * cache.width for count, cache in caches if isinstance(cache.span, FullSpan))
