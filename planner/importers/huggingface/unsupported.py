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

_CLASSES: Mapping[str, str] = {
    _ENCODER: "ErnieModel ErnieForSequenceClassification ErnieForTokenClassification",
    "has a second network in each layer for tokens of images, which is not described": "InternLM2VEForCausalLM",
    "tells languages apart, and generates no text": "FireRedLIDForConditionalGeneration",
    "is an encoder of satellite images, which generates no text": "PrithviGeoSpatialMAE",
    "is a transducer, which is not described": "Nemotron3_5AsrForRNNT",
}

UNSUPPORTED: Mapping[str, str] = {name: reason for reason, names in _TYPES.items() for name in names.split()}
"""The reason by ``model_type``."""

REFUSED_CLASSES: Mapping[str, str] = {name: reason for reason, names in _CLASSES.items() for name in names.split()}
"""The reason by class, for those whose ``model_type`` may be one that is read."""
