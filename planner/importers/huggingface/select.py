"""Finds the part of a config that describes the text model, and the architecture that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.errors import CatalogueError, InputError, nearest, shown
from planner.importers.huggingface.architectures import sole_class, stated_architecture
from planner.importers.huggingface.config import SYNONYMS
from planner.importers.huggingface.families import FAMILIES, Family
from planner.importers.huggingface.unsupported import REFUSED_CLASSES, UNSUPPORTED

NESTED = ("text_config", "language_config", "llm_config", "thinker_config", "lm_config", "vlm_config", "decoder")
"""Where files of models with several towers keep the text part."""

ASSUMPTIONS = {"llama-like": "llama"}
"""How to read an unknown architecture, if the user says so: as which known one."""

ASKED = "as you asked; check the parameter count"
"""How a note ends that says what was assumed."""

MARKS = ("hidden_size", "num_hidden_layers", "num_attention_heads")
"""Fields by which a description of a text model is recognised."""


@dataclass(slots=True, kw_only=True)
class Selection:
    """The text part of a config.

    Attributes
    ----------
    family, model_type : Family, str
        How the part is read.
    part : mapping
        Its fields.
    prefix : str
        Its path within the file, with a final dot; empty for the whole.
    wrapper, wrapper_type : Family or None, str
        The architecture of the whole, where the part is only one of its towers.
    notes : list of str
        What a reader of the numbers should know.
    """

    family: Family
    model_type: str
    part: Mapping[str, Any]
    prefix: str = ""
    wrapper: Family | None = None
    wrapper_type: str = ""
    notes: list[str] = field(default_factory=list)


def select(data: Mapping[str, Any], where: str, assume: str | None = None) -> Selection:
    """Return the text part of a config.

    Raises
    ------
    CatalogueError
        If the ``model_type`` is missing or not known, and nothing is assumed.
    """
    if assume is not None and assume not in ASSUMPTIONS:
        raise InputError(f"--assume: unknown choice {assume!r}, one of {', '.join(ASSUMPTIONS)}")
    found = _select(data, where, assume)
    if assume is not None and not any(note.endswith(ASKED) for note in found.notes):
        found.notes.append(f"--assume {assume} was not needed: the file says what the model is")
    return found


def _select(data: Mapping[str, Any], where: str, assume: str | None) -> Selection:
    _refuse(data, where, "architectures")
    model_type = _model_type(data, where, "model_type", assume)
    family, notes = FAMILIES[model_type], _assumed(data, model_type)
    if family.flat is not None:
        return _flattened(data, where, model_type, notes)
    found = _nested(data, family)
    if found is None and family.text is None:
        return Selection(family=family, model_type=model_type, part=data, notes=notes)
    prefix = ""
    if found is None:
        text = family.text or model_type
        if not _is_flat(data, FAMILIES[text]):
            raise CatalogueError(
                where, [f"text_config: is missing, model_type {model_type} keeps its text model there"]
            )
        if not family.at_top:
            notes.append(
                f"model_type {model_type} keeps its text model in text_config, but this file has it at the top"
            )
        part = data
    else:
        key, part = found
        _refuse(part, where, f"{key}.architectures")
        text, prefix = _text_type(part, model_type, where, key, assume), f"{key}."
        if assume is not None and _is_assumed(part, model_type):
            notes += _assumed(part, text)
        inner = _nested(part, FAMILIES[text])
        if inner is not None:
            prefix, part = f"{prefix}{inner[0]}.", inner[1]
        text = FAMILIES[text].text or text
    return Selection(
        family=FAMILIES[text],
        model_type=text,
        part=part,
        prefix=prefix,
        wrapper=family,
        wrapper_type=model_type,
        notes=notes,
    )


def _flattened(data: Mapping[str, Any], where: str, model_type: str, notes: list[str]) -> Selection:
    """Return the decoder of a file of nested parts that is read as if it stood at the top."""
    family = FAMILIES[model_type]
    part = family.flat(data) if family.flat is not None else data
    if family.decoders is None:
        text, prefix = family.text or model_type, family.flat_prefix
        return Selection(family=family, model_type=text, part=part, prefix=prefix, notes=notes)
    decoder, known = data.get("decoder"), family.decoders
    stated = decoder.get("model_type") if isinstance(decoder, Mapping) else None
    if not isinstance(stated, str) or stated not in known:
        problem = "is missing" if stated is None else f"{shown(stated)} is not known as a decoder of two models"
        raise CatalogueError(where, [f"decoder.model_type: {problem}, one of {', '.join(sorted(known))}"])
    return Selection(family=known[stated], model_type=stated, part=part, prefix="decoder.", notes=notes)


def _refuse(data: Mapping[str, Any], where: str, path: str) -> None:
    """Raise `CatalogueError` if a file names a class that cannot be described, though its ``model_type`` may be known."""
    name = sole_class(data)
    if name is not None and name in REFUSED_CLASSES:
        raise CatalogueError(where, [f"{path}: {name} {REFUSED_CLASSES[name]}"])


def _text_type(part: Mapping[str, Any], model_type: str, where: str, key: str, assume: str | None) -> str:
    """Return the type of a nested text part: its own, or the one that goes with the type of the whole."""
    stated = part.get("model_type")
    if stated in (None, "", model_type) or _is_of(stated, model_type):
        return FAMILIES[model_type].text or model_type
    return _model_type(part, where, f"{key}.model_type", assume)


def _is_of(stated: Any, model_type: str) -> bool:
    """Whether a type that is not known is that of a part of another, by its name."""
    return isinstance(stated, str) and stated not in FAMILIES and stated.startswith(model_type)


def _is_assumed(part: Mapping[str, Any], model_type: str) -> bool:
    """Whether the type of a nested part is not known, nor that of the whole's usual part."""
    stated = part.get("model_type")
    is_name = isinstance(stated, str) and stated in FAMILIES
    known = stated in (None, "", model_type) or is_name or _is_of(stated, model_type)
    return not known and stated_architecture(part) is None


def _nested(data: Mapping[str, Any], family: Family) -> tuple[str, Mapping[str, Any]] | None:
    """Return the nested text part: of a type that has one, or of a flat type whose own fields are not there."""
    found = next(((key, data[key]) for key in NESTED if isinstance(data.get(key), Mapping) and data[key]), None)
    if found is None or family.text is not None:
        return found
    return None if _is_flat(data, family) else found


def _is_flat(data: Mapping[str, Any], family: Family) -> bool:
    """Whether a mapping has fields of a text model itself."""
    return any(
        name in data for mark in MARKS for name in (mark, family.aliases.get(mark), *SYNONYMS.get(mark, ())) if name
    )


def _model_type(data: Mapping[str, Any], where: str, path: str, assume: str | None) -> str:
    found = data.get("model_type")
    if isinstance(found, str) and found in FAMILIES:
        return found
    named = stated_architecture(data)
    if named in FAMILIES:
        return str(named)
    if assume is not None:
        return ASSUMPTIONS[assume]
    known = next((name for name in (found, named) if isinstance(name, str) and name in UNSUPPORTED), None)
    if known is not None:
        raise CatalogueError(where, [f"{path}: {known} {UNSUPPORTED[known]}"])
    if not isinstance(found, str):
        raise CatalogueError(where, [f"{path}: {'is missing' if found is None else 'is not text'}"])
    hint = nearest(found, FAMILIES)
    advice = "--assume llama-like reads it as a Llama"
    raise CatalogueError(where, [f"{path}: unknown architecture {shown(found)}, {hint + ' ' if hint else ''}{advice}"])


def _assumed(data: Mapping[str, Any], model_type: str) -> list[str]:
    found = data.get("model_type")
    if found == model_type:
        return []
    if stated_architecture(data) == model_type:
        return [f"model_type {shown(found)} is not known: read as {model_type}, which architectures names"]
    return [f"model_type {shown(found)} is not known: read as {model_type}, {ASKED}"]
