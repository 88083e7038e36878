"""Turns a GGUF file into a model: its metadata into a config, its tensors into exact sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.errors import CatalogueError, InputError, nearest, printable, shown
from planner.importers.gguf.architecture import Architecture
from planner.importers.gguf.architectures import KNOWN, architecture_of
from planner.importers.gguf.config import config_of, in_own_words, unread
from planner.importers.gguf.header import Header, read_header
from planner.importers.gguf.source import Source
from planner.importers.gguf.tensors import checkpoint, counted, disagreement
from planner.importers.huggingface import read_config
from planner.importers.huggingface.quantization import condense
from planner.importers.huggingface.quantization.modules import unfolded
from planner.importers.huggingface.stack import group_layers
from planner.model import FeedForward, LatentAttention, LayerGroup, Model, SoftmaxAttention

SPLIT = re.compile(r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$")
"""How the parts of a split file are called."""

MOST_PARTS = 1000
"""More parts than this are a slip in the name."""

MOST_VARIED = 64
"""Combinations of heads and widths in one model: the most varied that is known has half as many."""

NO_MODELS = {
    "clip": "holds towers for pictures or sound, no text model: name the text model's file",
    "adapter": "holds an adapter, no model: name the file of the model that it adapts",
    "imatrix": "holds statistics for quantising, no model",
}
"""Files that are no models, by ``general.architecture`` or ``general.type``."""


def read_gguf(path: Path) -> Model:
    """Return the model that a GGUF file holds, with its exact size.

    Raises
    ------
    InputError
        If the gguf library is not installed, the file or one of its parts cannot be read, or its architecture is not known.
    """
    header = _whole(path)
    source = Source(_architecture(header, str(path)), header, str(path))
    architecture = architecture_of(source)
    model = _corrected(_read(source, architecture, _name(header, path)), source)
    quantization = condense(counted(header.tensors)).model_copy(update={"source": f"tensor types of {path.name}"})
    told = (
        *unread(source, architecture),
        *_parts_missing(header, path),
        *disagreement(header.tensors, header.metadata, model),
    )
    return model.model_copy(
        update={
            "source": f"{path}, a GGUF file of architecture {source.architecture}",
            "quantization": quantization,
            "checkpoint": checkpoint(header.tensors),
            "notes": (*model.notes, *told),
        }
    )


def _name(header: Header, path: Path) -> str:
    label, found = header.metadata.get("general.name"), SPLIT.match(path.name)
    usual = found["stem"] if found else path.stem
    return printable(label if isinstance(label, str) and label.strip() else usual)[:200]


def parts_of(path: Path) -> Sequence[Path]:
    """Return all parts of the split file that a file is one of; the file alone where it is whole.

    Raises
    ------
    CatalogueError
        If the name claims more parts than make sense.
    """
    found = SPLIT.match(path.name)
    if found is None:
        return (path,)
    count = int(found["parts"])
    if not 1 <= count <= MOST_PARTS:
        raise CatalogueError(str(path), [f"claims to be one of {count} parts"])
    return [path.with_name(f"{found['stem']}-{part:05d}-of-{count:05d}.gguf") for part in range(1, count + 1)]


def first_part(path: Path) -> Path:
    """Return the first part of the split file that a file is one of, if it is there; else the file itself."""
    found = SPLIT.match(path.name)
    if found is None:
        return path
    first = path.with_name(f"{found['stem']}-{1:05d}-of-{found['parts']}.gguf")
    return first if first.is_file() else path


def _whole(path: Path) -> Header:
    """Return the header of a file, or of all parts of a split one together."""
    headers = [read_header(part) for part in parts_of(path)]
    return Header(headers[0].metadata, [tensor for header in headers for tensor in header.tensors])


def _parts_missing(header: Header, path: Path) -> tuple[str, ...]:
    """Return a note if the file is a part of several by its metadata, but not by its name."""
    count = header.metadata.get("split.count")
    if not isinstance(count, int) or count <= len(parts_of(path)):
        return ()
    return (f"split.count: the file is one of {count} parts, the others are not found by its name and not counted",)


def _architecture(header: Header, where: str) -> str:
    name, kind = header.metadata.get("general.architecture"), header.metadata.get("general.type")
    for field, value in (("general.type", kind), ("general.architecture", name)):
        if isinstance(value, str) and value in NO_MODELS:
            raise CatalogueError(where, [f"{field}: {NO_MODELS[value]}"])
    if not isinstance(name, str) or name not in KNOWN:
        hint = nearest(str(name), KNOWN) or f"known are {', '.join(KNOWN)}"
        raise CatalogueError(where, [f"general.architecture: unknown architecture {shown(name)}, {hint}"])
    return name


# ---- layers ----------------------------------------------------------------------------------------------------------


def _read(source: Source, architecture: Architecture, name: str) -> Model:
    """Return the model that the metadata describe; where they differ from layer to layer, each kind of layer is read by itself."""
    model = _read_layer(source, architecture, name)
    keys = sorted(source.varied)
    if not keys:
        return model
    varied = [tuple(source.fields[key][layer] for key in keys) for layer in range(source.layers)]
    if len(set(varied)) > MOST_VARIED:
        problem = f"has more than {MOST_VARIED} kinds of layer"
        raise CatalogueError(source.where, [f"{source.prefix}{keys[0]}: {problem}"])
    stacks: dict[tuple[Any, ...], list[LayerGroup]] = {}
    for source.layer, key in enumerate(varied):
        if key not in stacks:
            stacks[key] = list(unfolded(_read_layer(source, architecture, name).layers))
    layers = [_present(stacks[key][index], dict(zip(keys, key, strict=True))) for index, key in enumerate(varied)]
    return model.model_copy(update={"layers": group_layers(layers)})


def _read_layer(source: Source, architecture: Architecture, name: str) -> Model:
    """Return the model as if all its layers were like the present one."""
    data, origins = config_of(source, architecture)

    def own(texts: Sequence[str]) -> list[str]:
        return in_own_words(texts, source, architecture.model_type, origins)

    try:
        model = read_config(data, name=name, where=source.where)
    except CatalogueError as error:
        raise CatalogueError(error.where, own(error.faults)) from None
    except InputError as error:
        raise CatalogueError(source.where, own([str(error)])) from None
    return model.model_copy(update={"notes": tuple(own(model.notes))})


def _present(layer: LayerGroup, stated: dict[str, Any]) -> LayerGroup:
    """Return a layer without what its item in a list says it has not: 0 heads, or a network 0 wide."""
    heads = [value for key, value in stated.items() if key.startswith("attention.head_count")]
    changes: dict[str, Any] = {}
    if 0 in heads and isinstance(layer.attention, SoftmaxAttention | LatentAttention):
        changes["attention"] = None
    if stated.get("feed_forward_length") == 0 and isinstance(layer.ffn, FeedForward):
        changes["ffn"] = None
    return layer.model_copy(update=changes) if changes else layer


def _corrected(model: Model, source: Source) -> Model:
    """Return the model with what the tensors say for certain: the LM head, its bias, and what multi-token prediction brings."""
    changes: dict[str, Any] = {
        "tie_word_embeddings": "output.weight" not in source.shapes,
        "lm_head_bias": "output.bias" in source.shapes,
    }
    if model.mtp is not None:
        ends = [name.partition("nextn.")[2] for name in source.shapes]
        copies = {"embeddings": ends.count("embed_tokens.weight"), "heads": ends.count("shared_head_head.weight")}
        changes["mtp"] = model.mtp.model_copy(update=copies) if any(ends) else None
    return model.model_copy(update=changes)
