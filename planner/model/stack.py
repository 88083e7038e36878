"""A whole transformer: embeddings, a stack of layer groups, and the LM head."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Annotated

from pydantic import Field, model_validator

from planner.model.checkpoint import Checkpoint
from planner.model.feedforward import MixtureOfExperts
from planner.model.layer import MAX_LAYERS, LayerGroup, LayerKind, Norm, layer_kinds, layer_tensors
from planner.model.quantization import Quantization
from planner.model.tensor import Count, CountOrZero, Projection, Tensor, Vector
from planner.op import Axis, FullSpan
from planner.precision import Role
from planner.sourced import Description, Flag

__all__ = [
    "MAX_LAYERS",
    "Encoder",
    "LayerGroup",
    "LayerKind",
    "Model",
    "MultiTokenPrediction",
    "Norm",
    "Table",
    "layer_kinds",
    "layer_tensors",
]


class Table(Description):
    """A stored table that tokens look a row up in, beside the token embedding."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    """What it is called."""
    rows: Count
    """Rows."""
    width: Count
    """Elements of a row."""
    lookups: Count = 1
    """Rows that each token looks up."""
    quantized: Flag = False
    """Stored in the format of linear layers, unlike the token embedding (the n-gram tables of DeepSeek-V4.1)."""

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
    """Parameters as published, to check the description against; with towers, modules for multi-token prediction or corrections of routers
    where the checkpoint is counted with them."""
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
    head_size: Count | None = None
    """Elements of the LM head's input, where they are not those of the embedding."""
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
        inner = Axis("hidden", self.head_size) if self.head_size else self._embedded
        return Tensor("lm_head", Role.LM_HEAD, inner, (vocab,), bias=self.lm_head_bias)

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

    def accounts_for(self, published: int) -> bool:
        """Whether a published number of parameters is the model's, alone or with what else its checkpoint holds.

        Publishers count a checkpoint: with its towers, with modules for multi-token prediction, and with the corrections that
        routers learn without gradients, one for each expert, which are no parameters of the model.
        """
        modules = self.mtp.layers if self.mtp else ()
        own, more = (_routed_experts(groups) for groups in (self.layers, modules))
        extras = {
            (0, 0),
            (0, own),
            (self.mtp_parameters, 0),
            (self.mtp_parameters, own),
            (self.mtp_parameters, own + more),
        }
        totals = {self.parameters + modules + corrections for modules, corrections in extras}
        return published in totals | {total + (self.vision_parameters or 0) for total in totals}

    @cached_property
    def active_parameters(self) -> int:
        """`parameters` with routed experts scaled by the share of them that a token uses."""
        return sum(count * tensor.active_parameters for tensor, count in self.stored_tensors)

    @property
    def kv_elements_per_token(self) -> float:
        """Cached elements for each token, of the layers whose cache grows with every token."""
        caches = ((k.count, cache) for k in self.layer_kinds if not k.layer.needs_source for cache in k.layer.caches)
        return sum(
            count * cache.width * cache.entries_per_token for count, cache in caches if isinstance(cache.span, FullSpan)
        )


def _routed_experts(groups: Iterable[LayerGroup]) -> int:
    """Return the experts that routers choose from, of all layers."""
    blocks = ((kind.count, block) for kind in layer_kinds(groups) for block in kind.layer.networks)
    return sum(count * block.num_experts for count, block in blocks if isinstance(block, MixtureOfExperts))
