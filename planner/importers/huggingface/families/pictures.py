"""Decoders that get pictures or sound from a tower: Kosmos, GIT, Moshi, Kyutai; IDEFICS, whose further layers attend to it.

A tower gives a decoder embeddings in place of tokens: it is no encoder, and not counted here. Nor are the parts of Moshi that make
sound of what its decoder says, and the codec that makes tokens of sound.
"""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.bert import Bert, bert_ffn, bert_self, crossed_like
from planner.importers.huggingface.families.encoder_decoder import BART_NAMES, bart_self
from planner.importers.huggingface.families.family import LAYER, Family
from planner.importers.huggingface.families.t5 import stack_length
from planner.importers.huggingface.parts.basics import build, each, flag, layer_count
from planner.importers.huggingface.parts.networks import dense, half_of
from planner.importers.huggingface.parts.softmax import shared_out, softmax, window_everywhere
from planner.model import CrossAttention, Table

# ---- Kosmos ----------------------------------------------------------------------------------------------------------

_KOSMOS_NAMES = {"hidden_size": "embed_dim", "num_attention_heads": "attention_heads", "num_hidden_layers": "layers"}
_KOSMOS: dict[str, Any] = {
    "attention": softmax(bias=True, output_bias=True),
    "ffn": dense(kind="plain", bias=True, width="ffn_dim"),
    "norm": LAYER,
    "tied": True,
    "aliases": _KOSMOS_NAMES,
}


def _inner_norm(config: Config, index: int) -> dict[str, Any]:  # the signature of every reader
    """Kosmos-2.5: a norm within the network."""
    return {"other_parameters": 2 * config.integer("ffn_dim")}


def _inner_norms(config: Config, index: int) -> dict[str, Any]:
    """Kosmos-2: norms within the network, and before attention's projection back."""
    return {"other_parameters": 2 * (config.integer("ffn_dim") + config.integer("hidden_size"))}


def _segments(config: Config) -> dict[str, Any]:
    """Kosmos-2.5: an embedding that tells tokens of text from those of the image."""
    return {"tables": (Table(name="segment_emb", rows=2, width=config.integer("hidden_size")),)}


# ---- GIT -------------------------------------------------------------------------------------------------------------


def _git_model(config: Config) -> dict[str, Any]:
    """GIT: the image's tokens stand before those of the text."""
    kind = Bert(segments=False)
    return {
        "tables": kind.tables(config),
        "other_parameters": kind.vectors(config),
        "lm_head_bias": True,
        "final_norm": False,
    }


# ---- Moshi, Kyutai ---------------------------------------------------------------------------------------------------


def _moshi_model(config: Config) -> dict[str, Any]:
    """Moshi: a row of the embedding for the start; the sound that goes with each token is made by another decoder."""
    return {"embedding_rows": config.integer("vocab_size") + 1}


def _kyutai_model(config: Config) -> dict[str, Any]:
    """Kyutai: each step reads a token of text and one of each codebook, whose rows stand in the same table, and writes text."""
    codes = config.integer("num_codebooks", 32) * config.integer("codebook_vocab_size", 2049)
    return {"embedding_rows": config.integer("vocab_size") + codes + 1}


_MOSHI: dict[str, Any] = {
    "attention": softmax(window=window_everywhere),
    "ffn": dense(width=half_of("ffn_dim")),
    "towers": True,
}
_SOUND = ("audio_encoder_config", "codec_config", "depth_decoder_config", "audio_vocab_size", "frame_size")


# ---- IDEFICS ---------------------------------------------------------------------------------------------------------


def _idefics_kinds(config: Config) -> tuple[bool, ...]:
    """IDEFICS: one further layer, which attends to the image, before each run of `cross_layer_interval` layers."""

    def read() -> tuple[bool, ...]:
        length, interval = layer_count(config), config.integer("cross_layer_interval", 1)
        crossed = length // interval
        found: list[bool] = []
        for index in range(length):
            if index % interval == 0 and index // interval < crossed:
                found.append(True)
            found.append(False)
        return tuple(found)

    return config.derived("idefics", read)


_idefics_self = softmax(derived_dim=True)


def _idefics_attention(config: Config, index: int) -> Any:
    if not _idefics_kinds(config)[index]:
        return _idefics_self(config, index)
    heads = config.integer("num_attention_heads")
    return build(
        config,
        CrossAttention,
        kind="cross",
        num_attention_heads=heads,
        head_dim=shared_out(config, heads),
        source_size=config.part("vision_config").integer("embed_dim", 768),
        qk_norm="head" if flag(config, "qk_layer_norms") else None,
    )


def _idefics_layer(config: Config, index: int) -> dict[str, Any]:
    """IDEFICS: gates on both halves of a layer that attends to the image; it is skipped where there is none."""
    if not _idefics_kinds(config)[index]:
        return {}
    width = config.integer("hidden_size") if config.text("alpha_type", "float") == "vector" else 1
    return {"needs_source": True, "other_parameters": 2 * width}


def _idefics_model(config: Config) -> dict[str, Any]:
    """IDEFICS: further rows of embedding and LM head, for tokens that tell of images."""
    rows = config.integer("vocab_size") + config.integer("additional_vocab_size", 0, least=0)
    return {"vocab_size": rows}


# ---- TrOCR -----------------------------------------------------------------------------------------------------------


def _trocr_attention(config: Config, index: int) -> Any:
    """TrOCR: a decoder of BART's kind, which always has cross-attention."""
    own = bart_self("decoder")(config, index)
    return (own, crossed_like(config, own, config.optional("cross_attention_hidden_size")))


def _trocr_model(config: Config) -> dict[str, Any]:
    learned = config.flag("use_learned_position_embeddings", default=True)
    normed = config.flag("layernorm_embedding", default=True)
    return {
        "learned_positions": config.integer("max_position_embeddings") + 2 if learned else None,
        "other_parameters": 2 * config.integer("hidden_size") if normed else 0,
        "final_norm": False,
    }


FAMILIES: dict[str, Family] = {
    "kosmos-2": Family(text="kosmos_2_text_model", tie="either", tied=True),
    "kosmos_2_text_model": Family(**_KOSMOS, layer=_inner_norms),
    "kosmos-2.5": Family(text="kosmos_2_5_text_model", tie="text"),
    "kosmos_2_5_text_model": Family(**_KOSMOS, layer=_inner_norm, model=_segments),
    "git": Family(
        attention=each(bert_self),
        ffn=bert_ffn,
        norm=LAYER,
        model=_git_model,
        towers=True,
        ignored=("num_image_with_embedding",),
    ),
    "moshi": Family(**_MOSHI, model=_moshi_model, tied="never", ignored=(*_SOUND, "num_codebooks")),
    "kyutai_speech_to_text": Family(
        **_MOSHI, model=_kyutai_model, ignored=(*_SOUND, "audio_bos_token_id", "audio_pad_token_id")
    ),
    "idefics": Family(
        attention=_idefics_attention,
        ffn=dense(),
        layer=_idefics_layer,
        layers=lambda config: len(_idefics_kinds(config)),
        model=_idefics_model,
        towers=True,
        ignored=(
            "alpha_initializer",
            "alphas_initializer_range",
            "freeze_lm_head",
            "freeze_text_layers",
            "freeze_text_module_exceptions",
            "freeze_vision_layers",
            "freeze_vision_module_exceptions",
            "perceiver_config",
            "use_resampler",
        ),
    ),
    "trocr": Family(
        attention=_trocr_attention,
        ffn=dense(kind="plain", bias=True, width="decoder_ffn_dim"),
        norm=LAYER,
        norms=3,
        layers=lambda config: stack_length(config, "decoder_layers"),
        model=_trocr_model,
        tied=True,
        aliases=BART_NAMES,
    ),
}
