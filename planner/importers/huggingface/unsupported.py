"""Architectures that are known and cannot be described, with the reason; an error says it instead of a guess."""

from __future__ import annotations

from collections.abc import Mapping

_ENCODER = "is an encoder, which generates no text"

_TYPES: Mapping[str, str] = {
    _ENCODER: "albert clip deberta deberta-v2 distilbert modernbert new nomic_bert siglip",
    "makes blocks of text by diffusion, which is not described": "diffusion_gemma dream llada",
    "is a draft for another model's tokens, and attends to that model's cache": "gemma4_assistant gemma4_unified_assistant",
    "makes music in several streams of codes, not text": "musicgen musicgen_melody",
    "attends to tokens of one hash, in layers that are run backwards, which is not described": "reformer",
    "reads proteins in layers that are not described": "evolla",
    "moves a robot: what comes out are numbers, not text": "pi0",
}

UNSUPPORTED: Mapping[str, str] = {name: reason for reason, names in _TYPES.items() for name in names.split()}
"""The reason by ``model_type``."""
