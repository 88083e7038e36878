"""Files of two models: an encoder and a decoder, each of a type of its own, the decoder with cross-attention.

Where their widths differ, a matrix stands between them. The encoder is one, whatever it reads, since every layer of the decoder attends
to what it makes; a picture always has as many tokens, a text or a recording as many as it is long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families import bert, encoder_decoder, encoders, gpt_like, pictures
from planner.importers.huggingface.families.family import Family, ModelFields
from planner.importers.huggingface.parts.basics import nothing
from planner.model import Encoder, Projection

ENCODER = "encoder"
"""What files call the part that describes the encoder."""


def _flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the decoder's part, with the encoder's in it; a decoder has cross-attention, where it does not say."""
    decoder = data.get("decoder")
    part = dict(decoder) if isinstance(decoder, Mapping) else {}
    shared = {name: data[name] for name in (ENCODER, "tie_encoder_decoder") if name in data}
    return {"is_decoder": True, "add_cross_attention": True, **part, **shared}


def _encoder(config: Config, readers: Mapping[str, encoders.EncoderReader], usual: str) -> Encoder:
    """Return the encoder, with the matrix from its width to the decoder's."""
    if not config.given(ENCODER):
        config.fault(ENCODER, "is missing, the architecture needs it")
        config.raise_faults()
    stated = config.part(ENCODER).text("model_type", usual)
    if stated not in readers:
        config.fault(ENCODER, f"model_type {stated[:40]!r} is not one of {', '.join(sorted(readers))}")
        config.raise_faults()
    part = config.typed_part(ENCODER, usual)
    found = readers[stated](part)
    hidden, width = config.integer("hidden_size"), found.hidden_size or 0
    result = part.optional("output_hidden_size") or width
    if result == hidden or config.given("cross_attention_hidden_size"):
        return found
    between = Projection(name="enc_to_dec_proj", input_size=width, output_size=hidden, bias=True)
    return found.model_copy(update={"projections": (*found.projections, between)})


def _require_cross(config: Config) -> None:
    """Add a fault where the file says that the decoder is none, or attends to nothing; or that both share weights."""
    for field in ("is_decoder", "add_cross_attention"):
        if not config.flag(field, default=True):
            config.fault(field, "is false, the decoder of two models attends to the encoder: set it to true")
    if config.flag("tie_encoder_decoder", default=False):
        config.fault("tie_encoder_decoder", "is true, weights that encoder and decoder share are not supported")


def _with_encoder(own: ModelFields | None, readers: Mapping[str, encoders.EncoderReader], usual: str) -> ModelFields:
    def read(config: Config) -> dict[str, Any]:
        _require_cross(config)
        fields = own(config) if own else {}
        return {**fields, "encoder": _encoder(config, readers, usual)}

    return read


def _bart_decoder(*, final_norm: bool = False, embedding_norm: bool = True, extra: int = 2) -> Family:
    """Return the decoder of BART's kind alone: it always has cross-attention."""

    def model(config: Config) -> dict[str, Any]:
        return {
            "learned_positions": config.integer("max_position_embeddings") + extra,
            "other_parameters": 2 * config.integer("hidden_size") if embedding_norm else 0,
            "final_norm": final_norm,
        }

    return encoder_decoder.bart_like(model)


DECODERS: Mapping[str, Family] = {
    **bert.FAMILIES,
    "gpt2": gpt_like.FAMILIES["gpt2"],
    "trocr": pictures.FAMILIES["trocr"],
    "bart": _bart_decoder(),
    "mbart": _bart_decoder(final_norm=True),
    "plbart": _bart_decoder(),
    "pegasus": _bart_decoder(final_norm=True, embedding_norm=False, extra=0),
}
"""How decoders are read."""


def _pair(readers: Mapping[str, encoders.EncoderReader], usual: str) -> Family:
    """Return a family of files of two models."""
    decoders = {
        name: replace(family, model=_with_encoder(family.model, readers, usual)) for name, family in DECODERS.items()
    }
    return Family(attention=nothing, flat=_flat, decoders=decoders)


FAMILIES: dict[str, Family] = {
    "encoder-decoder": _pair(encoders.TEXT, "bert"),
    "vision-encoder-decoder": _pair(encoders.PICTURES, "vit"),
    "speech-encoder-decoder": _pair(encoders.SOUND, "wav2vec2"),
}
