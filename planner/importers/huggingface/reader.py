"""Reads a ``config.json`` into a `Model`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from pydantic import ValidationError

from planner.errors import CatalogueError, listing, printable
from planner.importers.huggingface.architectures import stated_architecture
from planner.importers.huggingface.benign import BENIGN, says_no
from planner.importers.huggingface.class_defaults import class_defaults, inert_fields
from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families import FAMILIES, Family
from planner.importers.huggingface.mtp import read_mtp
from planner.importers.huggingface.parts.basics import build
from planner.importers.huggingface.quantization import find_block, read_quantization
from planner.importers.huggingface.quantization.schemes import UnknownQuantizationError
from planner.importers.huggingface.quantization.unstated import plain_source, type_notes
from planner.importers.huggingface.select import Selection, select
from planner.importers.huggingface.stack import group_layers
from planner.importers.huggingface.towers import read_towers
from planner.model import CrossAttention, LayerGroup, Model
from planner.model.stack import MAX_LAYERS


def read_config(data: Mapping[str, Any], *, name: str, where: str, assume: str | None = None) -> Model:
    """Return the model that a Hugging Face config describes.

    Parameters
    ----------
    data : mapping
        The parsed file.
    name : str
        What to call the model.
    where : str
        The file, for messages.
    assume : str, optional
        How to read a ``model_type`` that is not known: one of `planner.importers.huggingface.select.ASSUMPTIONS`.

    Raises
    ------
    CatalogueError
        If the architecture is not known, or a field is missing or wrong; all faults at once.
    """
    model, strange = _read(data, name, where, assume)
    other, stated = stated_architecture(data), data.get("model_type")
    if other is None or other == stated or not isinstance(stated, str) or stated not in FAMILIES:
        return model
    named = f"model_type says {stated}, architectures says {other}"
    # With code of its own a repository may call its class as the library calls another.
    if not strange and "auto_map" in data:
        return model
    try:
        second, stranger = _read({**data, "model_type": other}, name, where, assume)
    except CatalogueError:
        note = f"{named}, which lacks fields here: read as {stated}"
    else:
        if len(stranger) < len(strange):
            note = f"{named}, and the fields are those of the latter: read as {other}"
            model = second
        elif second.parameters == model.parameters or _is_whole(other, stated):
            return model
        else:
            note = f"{named}, which would have {second.parameters:,} parameters: read as {stated}"
    return model.model_copy(update={"notes": (note, *model.notes)})


def _is_whole(other: str, stated: str) -> bool:
    """Whether one type has a text model among its parts, and the other is a text model's: the whole is named, not another model."""
    return FAMILIES[other].text is not None and FAMILIES[stated].text is None


def _read(data: Mapping[str, Any], name: str, where: str, assume: str | None) -> tuple[Model, list[str]]:
    """Return the model, and the names of fields that were not read and are not known to be harmless."""
    chosen = select(data, where, assume)
    family = chosen.family
    config = Config(
        chosen.part,
        where,
        prefix=chosen.prefix,
        aliases=family.aliases,
        defaults={**class_defaults(chosen.model_type), **family.defaults},
        is_part=bool(chosen.prefix),
    )
    config.get("quantization_config")
    try:
        model, strange = _described(config, chosen, data, name, where)
    except ValidationError as error:
        faults = [_fault(detail) for detail in error.errors(include_url=False)]
        raise CatalogueError(where, [*config.faults, *faults]) from None
    beside = {field: value for field, value in data.items() if field not in config.nested}
    return _with_storage(_with_towers(model, beside, chosen, where), data, chosen, where), strange


def _described(
    config: Config, chosen: Selection, data: Mapping[str, Any], name: str, where: str
) -> tuple[Model, list[str]]:
    """Return the model of a config, and the names of fields that were not read; how it is stored comes later."""
    family = chosen.family
    hidden_size, vocab_size = config.integer("hidden_size"), config.integer("vocab_size")
    layers = read_layers(config, family)
    fields: dict[str, Any] = {
        "hidden_size": hidden_size,
        "vocab_size": vocab_size,
        "tie_word_embeddings": _tied(data, chosen, config),
        "max_position_embeddings": config.optional("max_position_embeddings"),
        "norm": family.norm(config) if callable(family.norm) else family.norm,
    }
    fields |= family.model(config) if family.model else {}
    own = fields.pop("notes", ())
    config.raise_faults()
    strange = _strange(config, chosen)
    stated = data.get("model_type")
    of = stated if isinstance(stated, str) and stated else chosen.model_type
    model = Model(
        name=name,
        source=f"{where}, a Hugging Face config of type {of}",
        layers=group_layers(layers),
        notes=(
            *chosen.notes,
            *own,
            *_notes(config, chosen, strange, has_positions=bool(fields.get("learned_positions"))),
            *_sourceless(layers, fields),
        ),
        **fields,
    )
    return model, strange


def _sourceless(layers: Sequence[LayerGroup], fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield a note where layers attend to an encoder that the file does not describe."""
    crossed = any(
        isinstance(block, CrossAttention) for layer in layers if not layer.needs_source for block in layer.mixers
    )
    if crossed and fields.get("encoder") is None:
        yield "layers attend to an encoder that the file does not describe: its source is counted as empty"


def read_layers(config: Config, family: Family) -> list[LayerGroup]:
    """Read every layer of a stack; faults are raised after the first layer that has any."""
    layers, length = [], family.layers(config)
    if length > MAX_LAYERS:
        raise CatalogueError(config.where, [f"{length} layers are more than make sense (at most {MAX_LAYERS})"])
    config.derived(("layers", "num_hidden_layers"), lambda: length)
    for index in range(length):
        attention, ffn = family.attention(config, index), family.ffn(config, index)
        more = family.layer(config, index) if family.layer else {}
        norms = family.norms(config, index) if callable(family.norms) else family.norms
        config.raise_faults()
        layers.append(build(config, LayerGroup, attention=attention, ffn=ffn, **{"norms": norms, **more}))
    return layers


def _strange(config: Config, chosen: Selection) -> list[str]:
    """Return the fields that were not read, and are not known to change nothing."""
    found = _left(config, chosen.model_type, chosen.family.ignored)
    for name, (part, kind) in config.nested.items():
        ignored = FAMILIES[kind].ignored if kind in FAMILIES else ()
        found += [f"{name}.{field}" for field in _left(part, kind, ignored)]
    return found


def _left(config: Config, model_type: str, ignored: tuple[str, ...]) -> list[str]:
    # Cross-attention changes shapes wherever it is asked for, though it is off in the class.
    inert = {*ignored, *(set(inert_fields(model_type)) - {"add_cross_attention"})}
    left = [field for field in config.unread() if field not in BENIGN and field not in inert]
    return [field for field in left if not says_no(field, config.get(field))]


def _with_towers(model: Model, data: Mapping[str, Any], chosen: Selection, where: str) -> Model:
    """Return the model with the parameters of the towers and projectors beside it; `data` lacks parts that were read as encoders."""
    of = chosen.wrapper_type or chosen.model_type
    has_towers = chosen.wrapper is not None or chosen.family.towers or chosen.family.at_top
    count, notes = read_towers(data, where, of, model, is_wrapper=has_towers)
    return model.model_copy(update={"vision_parameters": count, "notes": (*model.notes, *notes)})


def _with_storage(model: Model, data: Mapping[str, Any], chosen: Selection, where: str) -> Model:
    """Return the model with how its checkpoint is stored, and what it holds beside the model."""
    block = find_block(chosen.part) or find_block(data)
    try:
        quantization, notes = read_quantization(block, model, chosen.family.plain)
    except UnknownQuantizationError as error:
        raise CatalogueError(where, [f"quantization_config: {str(error)[:400]}"]) from None
    if not block:
        source = plain_source(PurePath(where).name, chosen.part, data)
        quantization = quantization.model_copy(update={"source": source})
        notes = type_notes(chosen.part, data)
    try:
        mtp, more = read_mtp(chosen.part, chosen.model_type, model)
    except ValidationError as error:
        raise CatalogueError(where, [_fault(detail) for detail in error.errors(include_url=False)]) from None
    told = (*model.notes, *notes, *more)
    return model.model_copy(update={"quantization": quantization, "mtp": mtp, "notes": told})


def _tied(data: Mapping[str, Any], chosen: Selection, config: Config) -> bool:
    """Return whether the LM head is the embedding, as the library resolves it."""
    always = chosen.family.tied
    nested = config.flag("tie_word_embeddings", default=always is True)
    if isinstance(always, str):
        return always == "always"
    if chosen.wrapper is None or chosen.wrapper.text is None:
        return nested
    whole = Config(data, config.where, defaults=class_defaults(chosen.wrapper_type))
    whole.faults = config.faults
    top = whole.flag("tie_word_embeddings", default=chosen.wrapper.tied is True)
    first = top if whole.given("tie_word_embeddings") else nested
    found = {"top": top, "text": nested, "either": top or nested, "first": first, "never": False}[chosen.wrapper.tie]
    said = config.given("tie_word_embeddings") and not whole.given("tie_word_embeddings")
    if said and nested != found:
        chosen.notes.append(
            f"tie_word_embeddings: {config.name('tie_word_embeddings')} in the text part says {nested}, "
            f"but model_type {chosen.wrapper_type} heeds its own, which is {found} by default"
        )
    return found


def _notes(config: Config, chosen: Selection, strange: list[str], *, has_positions: bool) -> list[str]:
    notes = [*config.told]
    if strange:
        notes.append(
            f"not read, and may change shapes: {printable(listing(sorted(strange, key=_is_unlikely)))} "
            f"(model_type {chosen.model_type!r} is not known to have {'them' if len(strange) > 1 else 'it'})"
        )
    for part, kind in ((config, chosen.model_type), *config.nested.values()):
        # The longest context is a size where each position has a stored row.
        uncounted = () if has_positions else part.names("max_position_embeddings")
        sizes = {field: value for field, value in part.supplied_sizes().items() if field not in uncounted}
        if sizes:
            notes.append(f"not in the file, so the class of {kind} says: {_listed(sizes)}")
    return notes


SIZES = re.compile(
    r"(^|_)(num|n|use|is|has|share|shared|cla|moe|mlp|kv|lora)_|size|dim|heads|layers|experts|rank|width|factor|groups|kernel|every"
)
"""Names of fields that change shapes more often than not: a list that is cut begins with them."""


def _is_unlikely(field: str) -> bool:
    return SIZES.search(field) is None


def _listed(sizes: Mapping[str, Any]) -> str:
    words = {field: f"{value:.4g}" if isinstance(value, float) else str(value) for field, value in sizes.items()}
    return ", ".join(f"{field}={word}" for field, word in sorted(words.items()))


def _fault(detail: Any) -> str:
    field = ".".join(str(part) for part in detail["loc"]) or "model"
    reason = detail["ctx"]["error"] if detail["type"] == "value_error" else detail["msg"]
    return f"{field}: {reason}"
