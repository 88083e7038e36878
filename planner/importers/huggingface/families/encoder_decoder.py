"""Encoder-decoders: BART, Whisper and their relatives; T5 stands beside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families import t5
from planner.importers.huggingface.families.family import LAYER, Family
from planner.importers.huggingface.families.t5 import own_embeddings, stack_length
from planner.importers.huggingface.parts.basics import Fact, build, flag, layer_count
from planner.importers.huggingface.parts.networks import Experts, dense
from planner.importers.huggingface.parts.softmax import shared_out
from planner.importers.huggingface.stack import group_layers
from planner.model import (
    CrossAttention,
    Encoder,
    LayerGroup,
    Projection,
    SoftmaxAttention,
    Table,
)

Extra = Callable[[Config], dict[str, Any]]


def _heads(config: Config, side: str) -> tuple[int, int]:
    heads = config.integer(f"{side}_attention_heads")
    return heads, shared_out(config, heads)


def bart_self(side: str, *, bias: Fact = True, key_bias: bool = True) -> Callable[[Config, int], SoftmaxAttention]:
    """Return a reader of one side's self-attention."""

    def read(config: Config, index: int) -> SoftmaxAttention:
        heads, dim = _heads(config, side)
        return build(
            config,
            SoftmaxAttention,
            kind="mha",
            num_attention_heads=heads,
            head_dim=dim,
            qkv_bias=flag(config, bias),
            key_bias=key_bias,
            output_bias=flag(config, bias),
        )

    return read


def bart_decoder(*, bias: Fact = True, key_bias: bool = True) -> Callable[[Config, int], tuple[Any, ...]]:
    """Return a reader of a decoder layer's two kinds of attention."""
    self_attention = bart_self("decoder", bias=bias, key_bias=key_bias)

    def read(config: Config, index: int) -> tuple[Any, ...]:
        heads, dim = _heads(config, "decoder")
        cross = build(
            config,
            CrossAttention,
            kind="cross",
            num_attention_heads=heads,
            head_dim=dim,
            qkv_bias=flag(config, bias),
            key_bias=key_bias,
            output_bias=flag(config, bias),
        )
        return (self_attention(config, index), cross)

    return read


def bart_encoder(
    config: Config, *, norms: int, ffn: Callable[[Config, int], Any] | None = None, bias: Fact = True, **more: Any
) -> Encoder:
    """Return an encoder of BART's kind; `more` are further fields of it."""
    attention = bart_self("encoder", bias=bias, key_bias=more.pop("key_bias", True))
    network = ffn or dense(kind="plain", bias=True, width="encoder_ffn_dim")
    own = more.pop("layer", {})
    layers = [
        build(config, LayerGroup, attention=attention(config, i), ffn=network(config, i), **own)
        for i in range(stack_length(config, "encoder_layers"))
    ]
    config.raise_faults()
    return Encoder(layers=group_layers(layers), norms=norms, **more)


def _positions(config: Config, extra: int) -> tuple[Table, ...]:
    rows = config.integer("max_position_embeddings") + extra
    return (Table(name="embed_positions", rows=rows, width=config.integer("hidden_size")),)


def bart_model(*, extra: int = 2, embedding_norm: bool = True, final_norm: bool = False, copies: int = 2) -> Extra:
    """Return what stands outside the layers: learned positions, a norm of the embedding, a norm after the stack."""

    def read(config: Config) -> dict[str, Any]:
        norms = embedding_norm + final_norm
        return {
            "learned_positions": config.integer("max_position_embeddings") + extra,
            "other_parameters": 2 * config.integer("hidden_size") if embedding_norm else 0,
            "final_norm": final_norm,
            "encoder": bart_encoder(
                config, norms=norms, tables=(*_positions(config, extra), *own_embeddings(config, copies))
            ),
        }

    return read


def _mvp_model(config: Config) -> dict[str, Any]:
    """MVP: with `use_prompt`, each stack of attention has a prompt that a small network turns into keys and values of every layer."""
    fields = bart_model()(config)
    if not config.flag("use_prompt", default=False):
        return fields
    hidden, rows, middle = (config.integer(name) for name in ("hidden_size", "prompt_length", "prompt_mid_dim"))

    def prompt(layers: int) -> int:
        made = 2 * layers * hidden
        return rows * hidden + (hidden + 1) * middle + (middle + 1) * made

    before = prompt(stack_length(config, "encoder_layers"))
    fields["other_parameters"] += 2 * prompt(stack_length(config, "decoder_layers"))
    encoder: Encoder = fields["encoder"]
    fields["encoder"] = encoder.model_copy(update={"other_parameters": encoder.other_parameters + before})
    fields["notes"] = (
        f"use_prompt: the {rows} positions that prompts add to attention are counted as parameters alone",
    )
    return fields


def m2m_model(config: Config) -> dict[str, Any]:
    """M2M-100: positions are computed, not learned."""
    return {"encoder": bart_encoder(config, norms=1, tables=own_embeddings(config, 2))}


def _marian_model(config: Config) -> dict[str, Any]:
    """Marian: positions are computed but stored; the two sides may have vocabularies of their own."""
    shared = config.flag("share_encoder_decoder_embeddings", default=True)
    fields = bart_model(extra=0, embedding_norm=False, copies=2 if shared else 1)(config)
    if not shared:
        fields["vocab_size"] = config.integer("decoder_vocab_size", config.integer("vocab_size"))
    if not shared and config.flag("tie_word_embeddings", default=True):
        own = Table(name="encoder.embed_tokens", rows=config.integer("vocab_size"), width=config.integer("hidden_size"))
        fields["tables"] = (own,)
    return fields


def _bigbird_model(config: Config) -> dict[str, Any]:
    """BigBird-Pegasus: the encoder looks at blocks, with the same weights; attention has no biases."""
    fields = bart_model(extra=0)(config)
    encoder = bart_encoder(
        config, norms=1, bias="use_bias", tables=(*_positions(config, 0), *own_embeddings(config, 2))
    )
    return fields | {"encoder": encoder}


def _pegasus_x_model(config: Config) -> dict[str, Any]:
    """Pegasus-X: global tokens with an embedding and, in each encoder layer, a norm of their own."""
    hidden = config.integer("hidden_size")
    tokens = Table(name="embed_global", rows=config.integer("num_global_tokens"), width=hidden)
    own = (tokens, *own_embeddings(config, 2))
    return {"encoder": bart_encoder(config, norms=1, bias=False, tables=own, layer={"norms": 3})}


def _led_model(config: Config) -> dict[str, Any]:
    """LED: windows and global attention in the encoder, each with projections of its own."""
    hidden = config.integer("hidden_size")
    extra = tuple(
        Projection(name=f"{name}_global", input_size=hidden, output_size=hidden, bias=True)
        for name in ("query", "key", "value")
    )
    positions = Table(name="embed_positions", rows=config.integer("max_encoder_position_embeddings"), width=hidden)
    return {
        "learned_positions": config.integer("max_decoder_position_embeddings"),
        "other_parameters": 2 * hidden,
        "final_norm": False,
        "encoder": bart_encoder(
            config, norms=1, tables=(positions, *own_embeddings(config, 2)), layer={"projections": extra}
        ),
    }


def _fsmt_model(config: Config) -> dict[str, Any]:
    """FSMT: two vocabularies, nothing tied, computed positions that are stored."""
    hidden = config.integer("hidden_size")
    source = Table(name="encoder.embed_tokens", rows=config.integer("src_vocab_size"), width=hidden)
    encoder = bart_encoder(config, norms=0, tables=(source, *_positions(config, 2)))
    rows = config.integer("max_position_embeddings") + 2
    return {"learned_positions": rows, "final_norm": False, "encoder": encoder}


def _nllb_ffn(side: str) -> Callable[[Config, int], Any]:
    """Return a reader: every n-th layer has experts, of which a token is sent to two."""
    width = f"{side}_ffn_dim"
    routed = Experts(width=width, gated=False, bias=True, router_bias="router_bias", chosen="top_k")
    plain = dense(kind="plain", bias=True, width=width)

    def read(config: Config, index: int) -> Any:
        step = config.integer(f"{side}_sparse_step", 4, least=0)
        return routed(config, index) if step and (index + 1) % step == 0 else plain(config, index)

    return read


def _nllb_model(config: Config) -> dict[str, Any]:
    return {"encoder": bart_encoder(config, norms=1, ffn=_nllb_ffn("encoder"), tables=own_embeddings(config, 2))}


def _whisper_model(config: Config) -> dict[str, Any]:
    """Whisper: two convolutions make the source from the spectrum; the second halves its length."""
    hidden, bins = config.integer("hidden_size"), config.integer("num_mel_bins")
    source = config.integer("max_source_positions")
    encoder = bart_encoder(
        config,
        norms=1,
        key_bias=False,
        source_positions=source,
        tables=(Table(name="embed_positions", rows=source, width=hidden),),
        projections=(
            # The first convolution runs before the length is halved.
            Projection(name="conv1", input_size=3 * bins, output_size=hidden, bias=True, times=2),
            Projection(name="conv2", input_size=3 * hidden, output_size=hidden, bias=True),
        ),
    )
    positions = config.integer("max_target_positions")
    return {"encoder": encoder, "learned_positions": positions, "max_position_embeddings": positions}


BART_NAMES = {
    "hidden_size": "d_model",
    "num_attention_heads": "decoder_attention_heads",
    "num_hidden_layers": "decoder_layers",
}
_IGNORED = (
    "is_encoder_decoder",
    "num_hidden_layers",
    "static_position_embeddings",
    "normalize_before",
    "normalize_embedding",
    "add_bias_logits",
    "add_final_layer_norm",
)


def _bart_layers(config: Config) -> int:
    return stack_length(config, "decoder_layers")


def bart_like(model: Extra, **more: Any) -> Family:
    """Return a family of BART's kind."""
    fields: dict[str, Any] = {
        "attention": bart_decoder(),
        "ffn": dense(kind="plain", bias=True, width="decoder_ffn_dim"),
        "model": model,
        "layers": _bart_layers,
        "norm": LAYER,
        "norms": 3,
        "tied": True,
        "aliases": BART_NAMES,
        "ignored": _IGNORED,
    }
    return Family(**fields | more)


FAMILIES: dict[str, Family] = {
    **t5.FAMILIES,
    "bart": bart_like(bart_model()),
    "mvp": bart_like(_mvp_model),
    "plbart": bart_like(bart_model()),
    "mbart": bart_like(bart_model(final_norm=True)),
    "blenderbot-small": bart_like(bart_model(extra=0)),
    "pegasus": bart_like(bart_model(extra=0, embedding_norm=False, final_norm=True)),
    "blenderbot": bart_like(bart_model(extra=0, embedding_norm=False, final_norm=True)),
    "m2m_100": bart_like(m2m_model),
    "marian": bart_like(_marian_model),
    "bigbird_pegasus": bart_like(
        _bigbird_model,
        attention=bart_decoder(bias="use_bias"),
        ignored=(*_IGNORED, "attention_type", "num_random_blocks", "block_size"),
    ),
    "pegasus_x": bart_like(
        _pegasus_x_model, attention=bart_decoder(bias=False), ignored=(*_IGNORED, "stagger_local_blocks", "block_size")
    ),
    "led": bart_like(_led_model, ignored=(*_IGNORED, "attention_window")),
    "fsmt": bart_like(
        _fsmt_model,
        tied=False,
        aliases={**BART_NAMES, "vocab_size": "tgt_vocab_size"},
        ignored=(*_IGNORED, "langs", "decoder"),
    ),
    "nllb-moe": bart_like(_nllb_model, ffn=_nllb_ffn("decoder"), defaults={"top_k": 2}),
    "whisper": bart_like(_whisper_model, attention=bart_decoder(key_bias=False)),
}

__all__ = ["FAMILIES", "bart_like", "layer_count"]
