"""Encoder-decoders: T5, BART, Whisper and their relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, Family
from planner.importers.huggingface.parts.basics import Fact, build, each, flag, layer_count
from planner.importers.huggingface.parts.networks import Experts, dense
from planner.importers.huggingface.parts.softmax import shared_out
from planner.importers.huggingface.stack import group_layers
from planner.model import (
    CrossAttention,
    Encoder,
    FeedForward,
    LayerGroup,
    MixtureOfExperts,
    Projection,
    SoftmaxAttention,
    Table,
)
from planner.model.stack import MAX_LAYERS

Extra = Callable[[Config], dict[str, Any]]


def _stack(config: Config, field: str, default: str = "") -> int:
    """Return the number of layers of one of the stacks."""
    count = config.integer(field, config.integer(default) if default else None or config.integer(field))
    if count > MAX_LAYERS:
        config.fault(field, f"{count} layers are more than make sense (at most {MAX_LAYERS})")
        config.raise_faults()
    return count


# ---- T5 --------------------------------------------------------------------------------------------------------------


def _t5_self(config: Config) -> SoftmaxAttention:
    return build(
        config,
        SoftmaxAttention,
        kind="mha",
        num_attention_heads=config.integer("num_attention_heads"),
        head_dim=config.integer("d_kv"),
    )


def _t5_cross(config: Config) -> CrossAttention:
    heads, dim = config.integer("num_attention_heads"), config.integer("d_kv")
    return build(config, CrossAttention, kind="cross", num_attention_heads=heads, head_dim=dim)


def _t5_ffn(config: Config) -> FeedForward:
    """T5: `feed_forward_proj` names the activation, with a prefix where it is gated."""
    gated = config.text("feed_forward_proj", "relu").startswith("gated")
    kind = "gated" if gated else "plain"
    return build(config, FeedForward, kind=kind, intermediate_size=config.integer("d_ff"))


def _buckets(config: Config, index: int) -> int:
    """Return the parameters of the relative position bias, which the first layer of a stack holds."""
    if index and not config.derived("bias_everywhere", lambda: False):
        return 0
    return config.integer("relative_attention_num_buckets", 32) * config.integer("num_attention_heads")


def _t5_encoder(config: Config) -> dict[str, Any]:
    layers = [
        build(config, LayerGroup, attention=_t5_self(config), ffn=_t5_ffn(config), other_parameters=_buckets(config, i))
        for i in range(_stack(config, "num_layers"))
    ]
    config.raise_faults()
    return {"encoder": Encoder(layers=group_layers(layers))}


def _t5_bias(config: Config, index: int) -> dict[str, Any]:
    return {"norms": 3, "other_parameters": _buckets(config, index)}


def _everywhere(config: Config, index: int) -> dict[str, Any]:
    """UMT5: every layer has a relative position bias of its own."""
    config.derived("bias_everywhere", lambda: True)
    return _t5_bias(config, index)


def _t5_layers(config: Config) -> int:
    return _stack(config, "num_decoder_layers", "num_layers")


def _t5_attention(config: Config, index: int) -> tuple[Any, ...]:  # noqa: ARG001 - the signature of every reader
    return (_t5_self(config), _t5_cross(config))


T5_NAMES = {
    "hidden_size": "d_model",
    "num_attention_heads": "num_heads",
    "d_kv": "head_dim",
}
T5 = Family(
    attention=_t5_attention,
    ffn=each(_t5_ffn),
    layer=_t5_bias,
    model=_t5_encoder,
    layers=_t5_layers,
    tied="always",
    aliases=T5_NAMES,
    ignored=(
        "num_hidden_layers",
        "is_encoder_decoder",
        "dense_act_fn",
        "is_gated_act",
        "relative_attention_max_distance",
    ),
)


def _switch_ffn(config: Config, index: int, *, decoder: bool) -> FeedForward | MixtureOfExperts:
    """Switch: every n-th layer of a stack has experts, of which a token is sent to one."""
    side = "decoder" if decoder else "encoder"
    layers = _t5_layers(config) if decoder else _stack(config, "num_layers")
    sparse = config.integer(f"num_sparse_{side}_layers", 3, least=0)
    step = layers // sparse if sparse else layers
    if step < 1 or not (index % step == 1 or step == 1):
        return build(config, FeedForward, kind="plain", intermediate_size=config.integer("d_ff"))
    return build(
        config,
        MixtureOfExperts,
        kind="moe",
        num_experts=config.integer("num_experts"),
        num_experts_per_tok=1,
        moe_intermediate_size=config.integer("d_ff"),
        gated=False,
        router_bias=config.flag("router_bias", default=False),
    )


def _switch_encoder(config: Config) -> dict[str, Any]:
    layers = [
        build(
            config,
            LayerGroup,
            attention=_t5_self(config),
            ffn=_switch_ffn(config, i, decoder=False),
            other_parameters=_buckets(config, i),
        )
        for i in range(_stack(config, "num_layers"))
    ]
    config.raise_faults()
    return {"encoder": Encoder(layers=group_layers(layers), tables=_own_embeddings(config, 2))}


# ---- BART, mBART, Pegasus, M2M-100, Marian, Whisper ------------------------------------------------------------------


def _heads(config: Config, side: str) -> tuple[int, int]:
    heads = config.integer(f"{side}_attention_heads")
    return heads, shared_out(config, heads)


def bart_self(side: str, *, bias: Fact = True, key_bias: bool = True) -> Callable[[Config, int], SoftmaxAttention]:
    """Return a reader of one side's self-attention."""

    def read(config: Config, index: int) -> SoftmaxAttention:  # noqa: ARG001
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
        for i in range(_stack(config, "encoder_layers"))
    ]
    config.raise_faults()
    return Encoder(layers=group_layers(layers), norms=norms, **more)


def _own_embeddings(config: Config, copies: int) -> tuple[Table, ...]:
    """Return the token embeddings that the sides have of their own where nothing is tied; else they are one."""
    if config.flag("tie_word_embeddings", default=True):
        return ()
    rows, width = config.integer("vocab_size"), config.integer("hidden_size")
    return tuple(Table(name=f"embed_tokens.{i}", rows=rows, width=width) for i in range(copies))


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
                config, norms=norms, tables=(*_positions(config, extra), *_own_embeddings(config, copies))
            ),
        }

    return read


def _m2m_model(config: Config) -> dict[str, Any]:
    """M2M-100: positions are computed, not learned."""
    return {"encoder": bart_encoder(config, norms=1, tables=_own_embeddings(config, 2))}


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
        config, norms=1, bias="use_bias", tables=(*_positions(config, 0), *_own_embeddings(config, 2))
    )
    return fields | {"encoder": encoder}


def _pegasus_x_model(config: Config) -> dict[str, Any]:
    """Pegasus-X: global tokens with an embedding and, in each encoder layer, a norm of their own."""
    hidden = config.integer("hidden_size")
    tokens = Table(name="embed_global", rows=config.integer("num_global_tokens"), width=hidden)
    own = (tokens, *_own_embeddings(config, 2))
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
            config, norms=1, tables=(positions, *_own_embeddings(config, 2)), layer={"projections": extra}
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
    return {"encoder": bart_encoder(config, norms=1, ffn=_nllb_ffn("encoder"), tables=_own_embeddings(config, 2))}


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
            # The first convolution runs before the length is halved: twice for each source token.
            Projection(name="conv1", input_size=3 * bins, output_size=hidden, bias=True),
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
)


def _bart_layers(config: Config) -> int:
    return _stack(config, "decoder_layers")


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
    "t5": T5,
    "mt5": T5,
    "umt5": Family(
        attention=_t5_attention,
        ffn=each(_t5_ffn),
        layer=_everywhere,
        model=_t5_encoder,
        layers=_t5_layers,
        tied="always",
        aliases=T5_NAMES,
        ignored=T5.ignored,
    ),
    "longt5": Family(
        attention=_t5_attention,
        ffn=each(_t5_ffn),
        layer=_t5_bias,
        model=_t5_encoder,
        layers=_t5_layers,
        tied="always",
        aliases=T5_NAMES,
        ignored=(*T5.ignored, "local_radius", "global_block_size", "encoder_attention_type"),
    ),
    "switch_transformers": Family(
        attention=_t5_attention,
        ffn=lambda config, index: _switch_ffn(config, index, decoder=True),
        layer=_t5_bias,
        model=_switch_encoder,
        layers=_t5_layers,
        tied=True,
        aliases=T5_NAMES,
        ignored=(*T5.ignored, "encoder_sparse_step", "decoder_sparse_step", "expert_capacity"),
    ),
    "bart": bart_like(bart_model()),
    "mvp": bart_like(bart_model()),
    "plbart": bart_like(bart_model()),
    "mbart": bart_like(bart_model(final_norm=True)),
    "blenderbot-small": bart_like(bart_model(extra=0)),
    "pegasus": bart_like(bart_model(extra=0, embedding_norm=False, final_norm=True)),
    "blenderbot": bart_like(bart_model(extra=0, embedding_norm=False, final_norm=True)),
    "m2m_100": bart_like(_m2m_model),
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
