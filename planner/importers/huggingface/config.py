"""Typed access to the fields of a ``config.json``, which remembers faults and what was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.errors import CatalogueError, nearest

MISSING: Any = object()
"""Stands for a field that has no default."""

STAND_IN = 1
"""Returned for a faulty number, so that reading goes on and every fault is found at once."""

LARGEST = 10**9
"""No count of heads, elements, experts or tokens is larger."""


class Config:
    """The fields of one config, under the planner's names.

    Parameters
    ----------
    data : mapping
        The parsed file, or the part of it that describes the text model.
    where : str
        The file, for messages.
    prefix : str
        Path of the part within the file, with a final dot; empty for the whole.
    aliases : mapping of str to str
        The file's name for a field, where it is not the usual one.
    defaults : mapping of str to value
        What the architecture's configuration class supplies for an absent field.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        where: str,
        *,
        prefix: str = "",
        aliases: Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self._data = data
        self._where = where
        self._prefix = prefix
        self._aliases = dict(aliases or {})
        self._defaults = dict(defaults or {})
        self.faults: dict[str, None] = {}
        self.used: set[str] = set()

    # ---- raw access --------------------------------------------------------------------------------------------------

    def name(self, field: str) -> str:
        """Return the file's own name for a field."""
        return self._aliases.get(field, field)

    def get(self, field: str, default: Any = None) -> Any:
        """Return a field as it is; the class default, then `default`, where it is absent."""
        name = self.name(field)
        self.used.add(name)
        if name in self._data:
            return self._data[name]
        return self._defaults.get(field, default)

    def has(self, field: str) -> bool:
        """Whether the file, or the architecture's class, gives the field a value other than null."""
        return self.get(field) is not None

    def fault(self, field: str, problem: str) -> None:
        """Remember a fault."""
        self.faults[f"{self._prefix}{self.name(field)}: {problem}"] = None

    def raise_faults(self) -> None:
        """Raise `CatalogueError` if any fault was found."""
        if self.faults:
            raise CatalogueError(self._where, self.faults)

    # ---- typed access ------------------------------------------------------------------------------------------------

    def integer(self, field: str, default: Any = MISSING, *, least: int = 1) -> int:
        """Return a whole number; a null counts as absent."""
        value = self.get(field)
        if value is None:
            if default is MISSING:
                self.fault(field, self._missing(field))
                return STAND_IN
            return int(default)
        return self._checked(field, value, least)

    def optional(self, field: str, default: int | None = None, *, least: int = 1) -> int | None:
        """Return a whole number, or `default` where the field is absent or null."""
        value = self.get(field)
        return default if value is None else self._checked(field, value, least)

    def flag(self, field: str, default: bool) -> bool:
        """Return true or false."""
        value = self.get(field)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fault(field, f"{value!r} is not true or false")
            return default
        return value

    def integers(self, field: str, length: int) -> list[int] | None:
        """Return a list of `length` whole numbers, or None where the field is absent."""
        values = self.listed(field, length)
        return None if values is None else [self._checked(field, value, 0) for value in values]

    def listed(self, field: str, length: int | None = None) -> list[Any] | None:
        """Return a list, of `length` items if that is given, or None where the field is absent."""
        value = self.get(field)
        if value is None:
            return None
        if not isinstance(value, Sequence) or isinstance(value, str):
            self.fault(field, f"{_shown(value)} is not a list")
            return None
        if length is not None and len(value) != length:
            self.fault(field, f"has {len(value)} items, one for each of the {length} layers is expected")
            return None
        return list(value)

    def text(self, field: str, default: str = "") -> str:
        """Return a text."""
        value = self.get(field)
        if value is None:
            return default
        if not isinstance(value, str):
            self.fault(field, f"{_shown(value)} is not text")
            return default
        return value

    def _checked(self, field: str, value: Any, least: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(field, f"{_shown(value)} is not a whole number")
        elif not least <= value <= LARGEST:
            self.fault(field, f"{value if abs(value) < 10**15 else 'a huge number'} is not from {least} to {LARGEST}")
        else:
            return value
        return max(STAND_IN, least)

    def _missing(self, field: str) -> str:
        near = nearest(self.name(field), [name for name in self._data if name not in self.used])
        return f"is missing{', ' + near if near else ', the architecture needs it'}"


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | None):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:37]}..."  # noqa: PLR2004 - keeps the message short
    return f"a {type(value).__name__}"
