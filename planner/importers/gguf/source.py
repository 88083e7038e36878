"""What a GGUF file says of its model: metadata under short names, shapes of tensors, and what has been asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from planner.errors import CatalogueError
from planner.importers.gguf.header import Header, Length
from planner.model.stack import MAX_LAYERS

LAYER = re.compile(r"^(?:enc\.|dec\.)?blk\.(\d+)\.")
"""What precedes the name of a tensor within its layer."""

NEXTN = "nextn_predict_layers"
"""Layers at the end of the stack that are for multi-token prediction."""


class Source:
    """What a file says.

    Parameters
    ----------
    architecture : str
        Its ``general.architecture``.
    header : Header
        The metadata and the tensors.
    where : str
        The file, for messages.
    """

    def __init__(self, architecture: str, header: Header, where: str) -> None:
        self.architecture = architecture
        self.prefix = f"{architecture}."
        self.where = where
        self.metadata = header.metadata
        self.fields = {k.removeprefix(self.prefix): v for k, v in header.metadata.items() if k.startswith(self.prefix)}
        self.shapes = {tensor.name: tensor.shape for tensor in header.tensors}
        self.used: set[str] = set()
        self.asked: list[str] = []
        self.varied: set[str] = set()
        self.layer = 0

    # ---- metadata ----------------------------------------------------------------------------------------------------

    def get(self, key: str) -> Any:
        """Return a field as it is; of a list with an item for each layer, that of the present layer.

        A layer whose item is 0 has no such thing. It gets the largest instead, so that the others can be read.

        Raises
        ------
        CatalogueError
            If a list has not as many items as there are layers.
        """
        self._note(key)
        value = self.fields.get(key)
        if isinstance(value, Length):
            return value.items
        if not isinstance(value, list):
            return value
        if len(value) != self.blocks:
            problem = f"has {len(value)} items, one for each of the {self.blocks} layers is expected"
            raise CatalogueError(self.where, [f"{self.prefix}{key}: {problem}"])
        if any(item != value[0] for item in value):
            self.varied.add(key)
        return value[self.layer] or max(value)

    def number(self, key: str, default: int | None = None) -> int | None:
        """Return a field that is a whole number, else the default."""
        value = self.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def each(self, key: str) -> Sequence[Any]:
        """Return a field for each layer; nothing where it is absent."""
        self._note(key)
        value = self.fields.get(key)
        if isinstance(value, list):
            return value
        return () if value is None else [value] * self.blocks

    def _note(self, key: str) -> None:
        self.used.add(key)
        self.asked.append(key)

    @property
    def blocks(self) -> int:
        """Layers of the file, those for multi-token prediction included; 0 where it does not say how many."""
        count = self.fields.get("block_count")
        return count if isinstance(count, int) and 0 < count <= MAX_LAYERS else 0

    @property
    def layers(self) -> int:
        """Layers of the model."""
        more = self.fields.get(NEXTN)
        return max(self.blocks - (more if isinstance(more, int) else 0), 0)

    # ---- tensors -----------------------------------------------------------------------------------------------------

    @cached_property
    def _stems(self) -> Mapping[str, tuple[int, ...]]:
        """Shapes by the name within a layer, each from the first layer that has it."""
        found: dict[str, tuple[int, ...]] = {}
        for name, shape in self.shapes.items():
            found.setdefault(LAYER.sub("", name), shape)
        return found

    def has(self, *names: str) -> bool:
        """Whether any layer has one of some tensors, or the model outside its layers."""
        return any(name in self._stems for name in names)

    def size(self, name: str, axis: int) -> int | None:
        """Return a dimension of a tensor, 0 for its input and 1 for its output; None where there is none."""
        shape = self._stems.get(name, ())
        return shape[axis] if axis < len(shape) else None

    def with_tensor(self, *names: str) -> list[bool]:
        """Return for each layer of the model whether it has one of some tensors."""
        return [any(f"blk.{layer}.{name}" in self.shapes for name in names) for layer in range(self.layers)]


Fact = Callable[[Source], Any]
"""Returns what a config field is, by what a file says."""
