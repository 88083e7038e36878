"""Reads a ``config.json`` into a `Model`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from planner.errors import CatalogueError, nearest
from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families import FAMILIES, Family
from planner.importers.huggingface.quantization import UnknownQuantizationError, read_quantization
from planner.importers.huggingface.stack import group_layers
from planner.model import LayerGroup, Model
from planner.model.stack import MAX_LAYERS


def read_config(data: Mapping[str, Any], *, name: str, where: str) -> Model:
    """Return the model that a Hugging Face config describes.

    Parameters
    ----------
    data : mapping
        The parsed file.
    name : str
        What to call the model.
    where : str
        The file, for messages.

    Raises
    ------
    CatalogueError
        If the architecture is not known, or a field is missing or wrong; all faults at once.
    """
    family = _family(data, where)
    config = Config(data, where, aliases=family.aliases, defaults=family.defaults)
    quantization = config.get("quantization_config")
    try:
        stored = read_quantization(quantization)
    except UnknownQuantizationError as error:
        config.fault("quantization_config", str(error))
    layers = _layers(config, family)
    hidden_size, vocab_size = config.integer("hidden_size"), config.integer("vocab_size")
    tied = config.flag("tie_word_embeddings", default=family.tied)
    longest = config.optional("max_position_embeddings")
    config.raise_faults()
    try:
        return Model(
            name=name,
            source=f"{where}, a Hugging Face config of type {data['model_type']}",
            hidden_size=hidden_size,
            vocab_size=vocab_size,
            tie_word_embeddings=tied,
            max_position_embeddings=longest,
            norm=family.norm,
            layers=group_layers(layers),
            quantization=stored,
        )
    except ValidationError as error:
        raise CatalogueError(where, [str(detail["msg"]) for detail in error.errors()]) from None


def _family(data: Mapping[str, Any], where: str) -> Family:
    model_type = data.get("model_type")
    if not isinstance(model_type, str):
        raise CatalogueError(where, [f"model_type: {'is missing' if model_type is None else 'is not text'}"])
    if model_type not in FAMILIES:
        hint = nearest(model_type, FAMILIES)
        known = ", ".join(sorted(FAMILIES))
        raise CatalogueError(
            where, [f"model_type: unknown architecture {model_type!r}, {hint or f'known are {known}'}"]
        )
    return FAMILIES[model_type]


def _layers(config: Config, family: Family) -> list[LayerGroup]:
    count = config.integer("num_hidden_layers")
    if count > MAX_LAYERS:
        config.fault("num_hidden_layers", f"{count} layers are more than make sense (at most {MAX_LAYERS})")
        count = 1
    layers = []
    for index in range(count):
        attention, ffn = family.attention(config, index), family.ffn(config, index)
        config.raise_faults()
        layers.append(LayerGroup(attention=attention, ffn=ffn, norms=family.norms))
    return layers
