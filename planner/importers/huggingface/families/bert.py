"""Decoders of BERT's kind: an encoder's layers with a causal mask, read where the file says ``is_decoder``.

With ``add_cross_attention`` each layer attends to an encoder's output as well, which a file of its own does not describe; where a
file of two models does, see `planner.importers.huggingface.families.composite`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, Family
from planner.importers.huggingface.parts.basics import Fact, build, each, flag
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.softmax import shared_out
from planner.model import CrossAttention, Projection, SoftmaxAttention, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Bert:
    """What a model of BERT's kind has outside its layers.

    Attributes
    ----------
    segments : bool
        An embedding of token types.
    embedding_norm, final_norm : Fact
        A norm of the embedding, and one after the stack.
    transform : bool
        A matrix and a norm before the LM head.
    narrow : str or None
        The field of a narrower embedding, which the LM head works on too.
    biases : int
        Biases for each token of the vocabulary that are stored where the LM head is a matrix of its own.
    rotary : bool
        Positions are a stored table of a head's width.
    """

    segments: bool = True
    embedding_norm: Fact = True
    final_norm: Fact = False
    transform: bool = True
    narrow: str | None = None
    biases: int = 2
    rotary: bool = False

    def width(self, config: Config) -> int:
        """Return the elements of a token's embedding."""
        hidden = config.integer("hidden_size")
        return hidden if self.narrow is None else config.integer(self.narrow, hidden)

    def tables(self, config: Config) -> tuple[Table, ...]:
        """Return the embeddings of positions and of token types."""
        width, rows = self.width(config), config.integer("max_position_embeddings")
        heads = config.integer("num_attention_heads")
        tables = [
            Table(name="position_embeddings", rows=rows, width=shared_out(config, heads) if self.rotary else width)
        ]
        if self.segments:
            tables.append(Table(name="token_type_embeddings", rows=config.integer("type_vocab_size", 2), width=width))
        return tuple(tables)

    def inward(self, config: Config) -> tuple[Projection, ...]:
        """Return the projection of a narrower embedding to the hidden size."""
        width, hidden = self.width(config), config.integer("hidden_size")
        if width == hidden:
            return ()
        return (Projection(name="embeddings_project", input_size=width, output_size=hidden, bias=True),)

    def vectors(self, config: Config) -> int:
        """Return the parameters of the norm of the embedding."""
        return 2 * self.width(config) if flag(config, self.embedding_norm) else 0

    def __call__(self, config: Config) -> dict[str, Any]:
        """Return what stands outside the layers."""
        width, hidden = self.width(config), config.integer("hidden_size")
        own_head = not config.flag("tie_word_embeddings", default=True)
        transform = Projection(name="transform.dense", input_size=hidden, output_size=width, bias=True)
        further = (self.biases - 1) * config.integer("vocab_size") if own_head else 0
        return {
            "tables": self.tables(config),
            "projections": (*self.inward(config), *((transform,) if self.transform else ())),
            "other_parameters": self.vectors(config) + (2 * width if self.transform else 0) + further,
            "embedding_size": width if width != hidden else None,
            "lm_head_bias": True,
            "final_norm": flag(config, self.final_norm),
        }


# ---- layers ----------------------------------------------------------------------------------------------------------


def require_decoder(config: Config) -> None:
    """Add a fault unless the file says that it is a decoder's."""
    if not config.flag("is_decoder", default=False):
        config.fault(
            "is_decoder",
            "is not true, so this is an encoder, which generates no text (only a decoder can be planned for)",
        )


def is_crossed(config: Config) -> bool:
    """Whether each layer attends to an encoder's output."""
    return config.flag("add_cross_attention", default=False)


def bert_self(config: Config, *, bias: Fact = True) -> SoftmaxAttention:
    """Return the attention of BERT's layers."""
    heads = config.integer("num_attention_heads")
    return build(
        config,
        SoftmaxAttention,
        kind="mha",
        num_attention_heads=heads,
        head_dim=shared_out(config, heads),
        qkv_bias=flag(config, bias),
        output_bias=True,
    )


def crossed_like(config: Config, own: SoftmaxAttention, source_size: int | None = None) -> CrossAttention:
    """Return cross-attention of the shape of a layer's self-attention, over a source of the model's width or of its own."""
    return build(
        config,
        CrossAttention,
        kind="cross",
        num_attention_heads=own.num_attention_heads,
        head_dim=own.head_dim,
        source_size=source_size,
        qkv_bias=own.qkv_bias,
        output_bias=own.output_bias,
    )


def bert_attention(*, bias: Fact = True) -> Any:
    """Return a reader of a decoder layer's attention, with cross-attention where the file asks for it."""

    def read(config: Config, index: int) -> Any:  # the signature of every reader
        require_decoder(config)
        own = bert_self(config, bias=bias)
        return (own, crossed_like(config, own)) if is_crossed(config) else own

    return read


bert_ffn = dense(kind="plain", bias=True)


def bert_norms(config: Config, index: int) -> int:
    """Return the norms of a layer: one for each part of it."""
    return 3 if is_crossed(config) else 2


# ---- variants --------------------------------------------------------------------------------------------------------


def _big_bird_model(config: Config) -> dict[str, Any]:
    """BigBird: a pooler is stored, which text does not pass."""
    fields, hidden = Bert()(config), config.integer("hidden_size")
    fields["other_parameters"] += hidden * hidden + hidden
    return fields


def _ernie_model(config: Config) -> dict[str, Any]:
    """ERNIE: an embedding of tasks, if used."""
    fields = Bert()(config)
    if flag(config, "use_task_id"):
        rows, width = config.integer("task_type_vocab_size", 3), config.integer("hidden_size")
        fields["tables"] += (Table(name="task_type_embeddings", rows=rows, width=width),)
    return fields


def _rembert_model(config: Config) -> dict[str, Any]:
    """RemBERT: embeddings and LM head have widths of their own, and are never tied."""
    kind = Bert(narrow="input_embedding_size", transform=False)
    hidden, width = config.integer("hidden_size"), config.integer("input_embedding_size", 256)
    head = config.integer("output_embedding_size", 1664)
    return {
        "tables": kind.tables(config),
        "projections": (
            Projection(name="embedding_hidden_mapping_in", input_size=width, output_size=hidden, bias=True),
            Projection(name="predictions.dense", input_size=hidden, output_size=head, bias=True),
        ),
        "other_parameters": 2 * width + 2 * head,
        "embedding_size": width,
        "head_size": head,
        "lm_head_bias": True,
        "final_norm": False,
    }


def _roc_model(config: Config) -> dict[str, Any]:
    """RoCBert: embeddings of a character's sound and shape, which are mapped to the hidden size together with its own."""
    fields, hidden = Bert()(config), config.integer("hidden_size")
    sound, shape = config.integer("pronunciation_embed_dim", 768), config.integer("shape_embed_dim", 512)
    fields["tables"] += (
        Table(name="pronunciation_embed", rows=config.integer("pronunciation_vocab_size", 910), width=sound),
        Table(name="shape_embed", rows=config.integer("shape_vocab_size", 24858), width=shape),
    )
    if config.flag("concat_input", default=True):
        heard = sound if config.flag("enable_pronunciation", default=True) else 0
        seen = shape if config.flag("enable_shape", default=True) else 0
        joined = Projection(name="map_inputs_layer", input_size=hidden + heard + seen, output_size=hidden, bias=True)
        fields["projections"] = (joined, *fields["projections"])
    return fields


def _xmod_layer(config: Config, index: int) -> dict[str, Any]:
    """X-MOD: a pair of matrices for each language, of which a token passes one; the others are only stored."""
    hidden = config.integer("hidden_size")
    narrow = max(hidden // config.integer("adapter_reduction_factor", 2), 1)
    listed = config.listed("languages")
    languages = 1 if listed is None else len(listed)
    pair = (
        Projection(name="adapter.dense1", input_size=hidden, output_size=narrow, bias=True),
        Projection(name="adapter.dense2", input_size=narrow, output_size=hidden, bias=True),
    )
    stored = 2 * hidden * narrow + narrow + hidden
    return {
        "norms": bert_norms(config, index) + flag(config, "adapter_layer_norm"),
        "projections": pair if languages else (),
        "other_parameters": max(languages - 1, 0) * stored,
    }


def _bert_like(model: Any = Bert(), **more: Any) -> Family:
    fields: dict[str, Any] = {
        "attention": bert_attention(),
        "ffn": bert_ffn,
        "norm": LAYER,
        "norms": bert_norms,
        "model": model,
        "tied": True,
    }
    return Family(**fields | more)


KINDS: Mapping[str, Bert] = {
    "bert": Bert(),
    "roberta": Bert(),
    "camembert": Bert(),
    "xlm-roberta": Bert(),
    "data2vec-text": Bert(),
    "roberta-prelayernorm": Bert(final_norm=True),
    "xlm-roberta-xl": Bert(embedding_norm=False, final_norm=True),
    "megatron-bert": Bert(embedding_norm=False, final_norm=True),
    "bert-generation": Bert(segments=False, transform=False),
    "electra": Bert(narrow="embedding_size", biases=1),
    "roformer": Bert(narrow="embedding_size", rotary=True),
}
"""What stands outside the layers, by ``model_type``."""

_PRE_NORM = each(lambda config: config.flag("pre_norm", default=False))

FAMILIES: dict[str, Family] = {
    **{name: _bert_like(kind, ignored=("rotary_value",) if kind.rotary else ()) for name, kind in KINDS.items()},
    "rembert": _bert_like(_rembert_model, tied="never"),
    "ernie": _bert_like(_ernie_model),
    "roc_bert": _bert_like(_roc_model),
    "big_bird": _bert_like(
        _big_bird_model,
        attention=bert_attention(bias="use_bias"),
        ignored=("attention_type", "num_random_blocks", "block_size", "rescale_embeddings"),
        defaults={"use_bias": True},
    ),
    "xmod": _bert_like(
        Bert(final_norm=_PRE_NORM),
        layer=_xmod_layer,
        ignored=("default_language", "adapter_reuse_layer_norm", "ln_before_adapter"),
    ),
}
