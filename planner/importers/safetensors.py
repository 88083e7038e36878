"""Reads what tensors take from the headers of ``.safetensors`` files.

A header is 8 bytes of length, little endian, and so many bytes of JSON: for each tensor its type, shape and place in the file (safetensors
format, README of huggingface/safetensors). It is read here, because the library wants an array framework to open a file, and refuses a
file of which only the header is at hand.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from planner.errors import CatalogueError
from planner.model import ClassBytes
from planner.precision import Role

MAX_HEADER = 100_000_000
"""Longest header, as in the safetensors library [B]."""

BITS: Mapping[str, int] = {
    "F64": 64,
    "I64": 64,
    "U64": 64,
    "C64": 64,
    "F32": 32,
    "I32": 32,
    "U32": 32,
    "F16": 16,
    "BF16": 16,
    "I16": 16,
    "U16": 16,
    "F8_E4M3": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2": 8,
    "F8_E5M2FNUZ": 8,
    "F8_E8M0": 8,
    "I8": 8,
    "U8": 8,
    "BOOL": 8,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F4": 4,
}
"""Bits of an element, by type."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file.

    Attributes
    ----------
    name : str
        Its name.
    bytes : int
        What it takes [B].
    elements : int
        Elements of its shape.
    """

    name: str
    bytes: int
    elements: int


def read_header(path: Path) -> list[StoredTensor]:
    """Return the tensors of a ``.safetensors`` file, from its header alone.

    Raises
    ------
    CatalogueError
        If the file cannot be read, or its header is broken.
    """
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            text = file.read(length) if 0 < length <= MAX_HEADER else b""
    except OSError as error:
        raise CatalogueError(str(path), [f"cannot be read: {error.strerror or error}"]) from None
    if not text or len(text) < length:
        raise CatalogueError(str(path), ["is no safetensors file: its header is cut off or has no sensible length"])
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise CatalogueError(str(path), ["is no safetensors file: its header is no JSON"]) from None
    if not isinstance(header, dict):
        raise CatalogueError(str(path), ["is no safetensors file: its header is no mapping"])
    return [_tensor(name, entry, path) for name, entry in header.items() if name != "__metadata__"]


def _tensor(name: str, entry: Any, path: Path) -> StoredTensor:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    shape = entry.get("shape") if isinstance(entry, dict) else None
    if not _counts(offsets) or len(offsets) != 2 or not _counts(shape) or offsets[0] > offsets[1]:  # a pair
        raise CatalogueError(str(path), [f"{name[:80]}: has no sensible shape and data_offsets"])
    size, elements = offsets[1] - offsets[0], math.prod(shape)
    bits = BITS.get(str(entry.get("dtype")))
    if bits is not None and size != math.ceil(elements * bits / 8):
        raise CatalogueError(
            str(path), [f"{name[:80]}: takes {size} bytes, but has {elements} elements of {bits} bits"]
        )
    return StoredTensor(name, size, elements)


def _counts(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


# ---- classes of tensors ----------------------------------------------------------------------------------------------

OTHER = "other"

# The first pattern that is found in a tensor's name decides.
_CLASSES: Sequence[tuple[re.Pattern[str], str]] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"vision|visual|image|audio|projector|\bmm_|patch_embed|vit\.", "vision"),
        (r"(^|\.)(mtp|nextn|mtp_layers)(\.|$)|eh_proj|shared_head", "mtp"),
        (r"norm(\d|\.|_|$)|layernorm|(^|\.)ln_|sinks?$", Role.NORM),
        (r"shared_experts?\.|shared_mlp\.", Role.SHARED_EXPERTS),
        (r"experts(\.|_|$)", Role.EXPERTS),
        (r"(^|\.)(lm_head|output|embed_out)\.", Role.LM_HEAD),
        (r"embed|wte|wpe|embd", Role.EMBEDDING),
        (r"(^|\.)(gate|router|shared_expert_gate)\.|e_score_correction_bias|(^|\.)gate$", Role.ROUTER),
        (r"(A_log|dt_bias|conv1d|\.D)($|\.)", Role.STATE),
        (r"(self_attn|attn|attention|self_attention|linear_attn|mamba|mixer)(\.|$)", Role.ATTENTION),
        (r"(mlp|feed_forward|ffn|block_sparse_moe)\.", Role.FFN),
    )
)

_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|block)\.(\d+)\.")


def class_of(name: str, layers: int) -> str:
    """Return the class of a tensor by its name: of a role, or ``mtp``, ``vision`` or ``other``.

    Layers beyond those of the model are for multi-token prediction.

    >>> class_of("model.layers.3.mlp.experts.7.down_proj.weight", 61)
    'experts'
    >>> class_of("model.layers.61.self_attn.o_proj.weight", 61)
    'mtp'
    """
    found = next((kind for pattern, kind in _CLASSES if pattern.search(name)), OTHER)
    layer = _LAYER.search(name)
    beyond = layer is not None and int(layer[1]) >= layers and found != "vision"
    return "mtp" if beyond else str(found)


def by_class(tensors: Iterable[StoredTensor], layers: int) -> tuple[ClassBytes, ...]:
    """Return the bytes of each class of tensors, largest first."""
    sums: dict[str, int] = {}
    for tensor in tensors:
        name = class_of(tensor.name, layers)
        sums[name] = sums.get(name, 0) + tensor.bytes
    largest = sorted(sums.items(), key=lambda pair: -pair[1])
    return tuple(ClassBytes(of=name, bytes=size) for name, size in largest)
