"""Reads the header of a GGUF file: its metadata, and the name, shape and type of each tensor.

The layout is that of the GGUF specification (ggml-org/ggml, docs/gguf.md), versions 2 and 3, little endian. The header is read here and not by
the gguf library's reader, which maps the whole file, takes seconds for the vocabulary's hundreds of thousands of texts, and refuses a file
whose tensors are cut off; the library supplies the types of tensors and their sizes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from planner.errors import CatalogueError, InputError
from planner.units import MEBI

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_TEXT = 16 * MEBI
MAX_ENTRIES = 2_000_000
MAX_DIMENSIONS = 8
KEPT_ITEMS = 100_000
"""Longest list of numbers that is kept; the texts of a list never are."""

# Types of metadata values, by number: their layout for `struct`.
_SCALARS: Mapping[int, str] = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_TEXT, _ARRAY = 8, 9


class _BrokenError(Exception):
    """What is wrong with a file, in words."""


@dataclass(frozen=True, slots=True)
class Length:
    """Stands for a list of which only the length is kept."""

    items: int


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor.

    Attributes
    ----------
    name : str
        Its name, such as ``blk.0.attn_q.weight``.
    shape : tuple of int
        Its dimensions, the input first.
    kind : str
        Its type, such as ``Q4_K``.
    bits : float
        Bits of one element, the scales of its blocks included.
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    bits: float

    @property
    def elements(self) -> int:
        """Elements of the tensor."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """What the tensor takes [B]."""
        return math.ceil(self.elements * self.bits / 8)


@dataclass(frozen=True, slots=True)
class Header:
    """The header of one file, or of all files of a split one together."""

    metadata: Mapping[str, Any]
    tensors: Sequence[GgufTensor]


def tensor_types() -> Mapping[int, tuple[str, float]]:
    """Return the name and the bits of an element of each type of tensor, by number.

    Raises
    ------
    InputError
        If the gguf library is not installed.
    """
    try:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType  # an optional extra
    except ImportError:
        raise InputError(
            "reading GGUF files needs the gguf library, install it with: pip install 'roofline-planner[gguf]'"
        ) from None
    sizes = ((kind, GGML_QUANT_SIZES[kind]) for kind in GGMLQuantizationType if kind in GGML_QUANT_SIZES)
    return {int(kind): (str(kind.name), size * 8 / block) for kind, (block, size) in sizes}


def read_header(path: Path) -> Header:
    """Return the header of one GGUF file.

    Raises
    ------
    InputError
        If the file cannot be read or is broken, or the gguf library is not installed.
    """
    types = tensor_types()
    try:
        with path.open("rb") as file:
            return _Reader(file, path.stat().st_size, types).header()
    except OSError as error:
        raise CatalogueError(str(path), [f"cannot be read: {error.strerror or error}"]) from None
    except _BrokenError as error:
        raise CatalogueError(str(path), [f"is no GGUF file that can be read: {error}"]) from None


class _Reader:
    """Reads one value after the other."""

    def __init__(self, file: BinaryIO, size: int, types: Mapping[int, tuple[str, float]]) -> None:
        self._file = file
        self._size = size
        self._types = types

    def header(self) -> Header:
        if self._take(4) != MAGIC:
            raise _BrokenError("it does not begin with GGUF")
        version = self._scalar("I")
        if version not in VERSIONS:
            raise _BrokenError(
                f"its version is {version}, known are {' and '.join(map(str, VERSIONS))} in little endian"
            )
        tensors, entries = self._count("tensors"), self._count("fields")
        metadata = {self._text(): self._value(self._scalar("I")) for _ in range(entries)}
        return Header(metadata, [self._tensor() for _ in range(tensors)])

    def _take(self, length: int) -> bytes:
        data = self._file.read(length)
        if len(data) < length:
            raise _BrokenError("its header is cut off")
        return data

    def _scalar(self, layout: str) -> Any:
        return struct.unpack(f"<{layout}", self._take(struct.calcsize(layout)))[0]

    def _count(self, noun: str) -> int:
        count: int = self._scalar("Q")
        if count > MAX_ENTRIES:
            raise _BrokenError(f"it claims {count} {noun}")
        return count

    def _text(self) -> str:
        length = self._scalar("Q")
        if length > min(MAX_TEXT, self._size):
            raise _BrokenError(f"it claims a text of {length} bytes")
        return self._take(length).decode("utf-8", errors="replace")

    def _value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self._text()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise _BrokenError(f"it holds a value of type {kind}, which is not known")
        return self._scalar(_SCALARS[kind])

    def _array(self) -> Any:
        kind, count = self._scalar("I"), self._scalar("Q")
        if kind == _TEXT:
            if count > MAX_ENTRIES:
                raise _BrokenError(f"it claims a list of {count} texts")
            for _ in range(count):
                self._text()
            return Length(count)
        if kind not in _SCALARS:
            raise _BrokenError(f"it holds a list of type {kind}, which is not known")
        width = struct.calcsize(_SCALARS[kind])
        if count * width > self._size:
            raise _BrokenError(f"it claims a list of {count} numbers")
        data = self._take(count * width)
        return list(struct.unpack(f"<{count}{_SCALARS[kind]}", data)) if count <= KEPT_ITEMS else Length(count)

    def _tensor(self) -> GgufTensor:
        name, dimensions = self._text(), self._scalar("I")
        if dimensions > MAX_DIMENSIONS:
            raise _BrokenError(f"tensor {name[:80]!r} has {dimensions} dimensions")
        shape = struct.unpack(f"<{dimensions}Q", self._take(8 * dimensions))
        kind, _offset = self._scalar("I"), self._scalar("Q")
        if kind not in self._types:
            raise _BrokenError(f"tensor {name[:80]!r} has type {kind}, which the gguf library does not know")
        return GgufTensor(name, shape, *self._types[kind])
