"""Typed access to the fields of a ``config.json``, which remembers faults and what was read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from planner.errors import CatalogueError, nearest
from planner.importers.huggingface.class_defaults import class_defaults
from planner.units import LARGEST_COUNT, TRILLION

MISSING: Any = object()
"""Stands for a field that has no default."""

STAND_IN = 1
"""Returned for a faulty number, so that reading goes on and every fault is found at once."""

CORE = frozenset({"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"})
"""Fields that a whole config states; only a nested part, which is saved without what its class supplies, may leave them out."""

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "n_embed", "d_model"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads"),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": (
        "num_experts_per_token",
        "experts_per_token",
        "moe_topk",
        "moe_k",
        "moe_top_k",
        "top_k_experts",
    ),
    "n_shared_experts": ("num_shared_experts", "moe_num_shared_experts"),
    "max_position_embeddings": ("n_positions", "max_seq_len"),
}
"""Other names of a field, in the order in which they are looked for."""

T = TypeVar("T")


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
        The file's name for a field, where it is not the usual one; the usual one is understood as well.
    defaults : mapping of str to value
        What the architecture's configuration class supplies for an absent field.
    is_part : bool
        The data is a nested part: core fields may be left to the class.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        where: str,
        *,
        prefix: str = "",
        aliases: Mapping[str, str] | None = None,
        defaults: Mapping[str, Any] | None = None,
        is_part: bool = False,
    ) -> None:
        self._data = data
        self.where = where
        self._prefix = prefix
        self._aliases = aliases or {}
        self._defaults = defaults or {}
        self._is_part = is_part
        self._memo: dict[Hashable, Any] = {}
        self.faults: dict[str, None] = {}
        self.stood_in: set[str] = set()
        self.used: set[str] = set()
        self.supplied: dict[str, Any] = {}
        self.nested: dict[str, tuple[Config, str]] = {}
        self.told: dict[str, None] = {}
        self._parts: list[Config] = []

    # ---- raw access --------------------------------------------------------------------------------------------------

    def names(self, field: str) -> tuple[str, ...]:
        """Return the names that a field may have in the file, the architecture's own first."""
        alias = self._aliases.get(field)
        return (*((alias,) if alias else ()), field, *SYNONYMS.get(field, ()))

    def name(self, field: str) -> str:
        """Return the file's own name for a field."""
        names = self.names(field)
        return next((name for name in names if name in self._data), names[0])

    def get(self, field: str, default: Any = None) -> Any:
        """Return a field as it is; the class default, then `default`, where it is absent."""
        names = self.names(field)
        self.used.update(names)
        stated = [name for name in names if name in self._data]
        if stated:
            values = [self._data[name] for name in stated if self._data[name] is not None]
            if any(value != values[0] for value in values[1:]):
                self.fault(field, f"{' and '.join(stated)} name the same thing and differ, keep one")
            return values[0] if values else None
        known = next((name for name in names if name in self._defaults), None)
        if known is None or (field in CORE and not self._is_part):
            return default
        self.supplied[known] = self._defaults[known]
        return self._defaults[known]

    def mark(self, *fields: str) -> None:
        """Take note of fields that are known, and that change nothing."""
        for field in fields:
            self.used.update(self.names(field))

    def given(self, field: str) -> bool:
        """Whether the file itself gives the field a value other than null."""
        self.used.update(self.names(field))
        return self._data.get(self.name(field)) is not None

    def has(self, field: str) -> bool:
        """Whether the file, or the architecture's class, gives the field a value other than null."""
        return self.get(field) is not None

    def part(
        self, field: str, defaults: Mapping[str, Any] | None = None, aliases: Mapping[str, str] | None = None
    ) -> Config:
        """Return a nested mapping, an empty one where it is absent; its faults are counted here."""

        def make() -> Config:
            value = self.get(field)
            if value is not None and not isinstance(value, Mapping):
                self.fault(field, f"{_shown(value)} is not a mapping of fields")
                value = None
            prefix = f"{self._prefix}{field}."
            nested = Config(value or {}, self.where, prefix=prefix, aliases=aliases, defaults=defaults, is_part=True)
            nested.faults, nested.stood_in = self.faults, self.stood_in
            self._parts.append(nested)
            return nested

        return self.derived(("part", field), make)

    def typed_part(self, field: str, usual: str) -> Config:
        """Return a nested part that has a type of its own, `usual` where it does not say one; its unread fields are told of."""
        stated = self.part(field).get("model_type")
        kind = stated if isinstance(stated, str) and stated else usual

        def make() -> Config:
            value = self.part(field)._data  # noqa: SLF001 - the same class
            nested = Config(
                value, self.where, prefix=f"{self._prefix}{field}.", defaults=class_defaults(kind), is_part=True
            )
            nested.faults, nested.stood_in = self.faults, self.stood_in
            nested.used |= {"model_type", "tie_word_embeddings"}
            self.nested[field] = (nested, kind)
            return nested

        return self.derived(("typed part", field), make)

    def overlaid(self, key: Hashable, fields: Mapping[str, Any]) -> Config:
        """Return this config with other values for some fields; what is read and what is wrong there is counted here."""

        def make() -> Config:
            other = Config(
                {**self._data, **fields},
                self.where,
                prefix=self._prefix,
                aliases=self._aliases,
                defaults=self._defaults,
                is_part=self._is_part,
            )
            other.faults, other.used, other.told, other.nested = self.faults, self.used, self.told, self.nested
            return other

        return self.derived(("overlaid", key), make)

    def derived(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` gives, made once for a key."""
        if key not in self._memo:
            self._memo[key] = make()
        found: T = self._memo[key]
        return found

    def fault(self, field: str, problem: str) -> None:
        """Remember a fault."""
        self.faults[f"{self._prefix}{self.name(field)}: {problem}"] = None

    def tell(self, note: str) -> None:
        """Remember what a reader of the numbers should know."""
        self.told[note] = None

    def conflict(self, field: str, problem: str) -> None:
        """Remember that values do not go together, unless one of them may be a stand-in for a faulty one."""
        if not self.stood_in:
            self.fault(field, problem)

    def raise_faults(self) -> None:
        """Raise `CatalogueError` if any fault was found."""
        if self.faults:
            raise CatalogueError(self.where, self.faults)

    # ---- typed access ------------------------------------------------------------------------------------------------

    def integer(self, field: str, default: Any = MISSING, *, least: int = 1) -> int:
        """Return a whole number; a null counts as absent."""
        found = self.optional(field, least=least)
        if found is None and default is not MISSING and default is not None:
            self.supplied.setdefault(self.name(field), default)
            found = default
        if found is None:
            self.fault(field, self._missing(field))
            self.stood_in.add(field)
            return STAND_IN
        return found

    def optional(self, field: str, default: int | None = None, *, least: int = 1) -> int | None:
        """Return a whole number, or `default` where the field is absent or null."""

        def read() -> int | None:
            value = self.get(field)
            return None if value is None else self._checked(field, value, least)

        found = self.derived(("number", field, least), read)
        return default if found is None else found

    def real(self, field: str, default: float) -> float:
        """Return a finite, positive number."""

        def read() -> float:
            value = self.get(field)
            if value is None:
                self.supplied.setdefault(self.name(field), default)
                return default
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 < value <= LARGEST_COUNT:
                self.fault(field, f"{_shown(value)} is not a positive number")
                self.stood_in.add(field)
                return default
            return float(value)

        return self.derived(("real", field), read)

    def flag(self, field: str, default: bool) -> bool:
        """Return true or false."""

        def read() -> bool | None:
            value = self.get(field)
            if value is None or isinstance(value, bool):
                return value
            self.fault(field, f"{_shown(value)} is not true or false")
            return None

        found = self.derived(("flag", field), read)
        return default if found is None else found

    def listed(self, field: str, length: int | None = None) -> Sequence[Any] | None:
        """Return a list, of `length` items if that is given, or None where the field is absent."""

        def read() -> Sequence[Any] | None:
            value = self.get(field)
            if value is None:
                return None
            if not isinstance(value, Sequence) or isinstance(value, str):
                self.fault(field, f"{_shown(value)} is not a list")
                return None
            if length is not None and len(value) != length:
                self.fault(field, f"has {len(value)} items, one for each of the {length} layers is expected")
                return None
            return value

        return self.derived(("list", field, length), read)

    def integers(self, field: str, length: int | None = None, *, least: int = 0) -> Sequence[int] | None:
        """Return a list of whole numbers, or None where the field is absent."""

        def read() -> Sequence[int] | None:
            values = self.listed(field, length)
            return None if values is None else [self._checked(field, value, least) for value in values]

        return self.derived(("integers", field, length, least), read)

    def at_layer(self, field: str, index: int, length: int, default: Any = MISSING) -> int:
        """Return a whole number of one layer: a list has one for each layer, a number holds for all."""
        if not isinstance(self.get(field), list):
            return self.integer(field, default)
        values = self.integers(field, length, least=1)
        return values[index] if values else STAND_IN

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
        elif not least <= value <= LARGEST_COUNT:
            self.fault(
                field, f"{value if abs(value) < TRILLION else 'a huge number'} is not from {least} to {LARGEST_COUNT}"
            )
        else:
            return value
        self.stood_in.add(field)
        return max(STAND_IN, least)

    def _missing(self, field: str) -> str:
        near = nearest(self.name(field), [name for name in self._data if name not in self.used])
        return f"is missing{', ' + near if near else ', the architecture needs it'}"

    # ---- what was read -----------------------------------------------------------------------------------------------

    def unread(self) -> list[str]:
        """Return the names in the file that nobody has asked for and that hold a value."""
        return sorted(name for name, value in self._data.items() if name not in self.used and value is not None)

    def supplied_sizes(self) -> dict[str, Any]:
        """Return the numbers that the architecture's class supplied for absent fields, by the names they would have in the file.

        Fields that are off (null, false, 0), or that say once or one in one, are left out: they add nothing to a count.
        """
        own = {name: value for name, value in self.supplied.items() if _is_size(value)}
        return own | {f"{part._prefix}{k}": v for part in self._own_parts() for k, v in part.supplied_sizes().items()}  # noqa: SLF001

    def _own_parts(self) -> list[Config]:
        """Return the parts that have no class of their own: what the class of such a part supplied is told beside it."""
        typed = {id(part) for part, _ in self.nested.values()}
        return [part for part in self._parts if id(part) not in typed]


def _is_size(value: Any) -> bool:
    """Whether a value is a number other than 0 and 1, or a list of such."""
    if isinstance(value, list):
        return bool(value) and all(_is_size(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool) and value not in (0, 1)


def _shown(value: Any) -> str:
    if isinstance(value, str | int | float | None):
        try:
            text = repr(value)
        except ValueError:  # a whole number with more digits than Python prints
            return "a huge number"
        return text if len(text) <= 40 else f"{text[:37]}..."  # keeps the message short
    return f"a {type(value).__name__}"
