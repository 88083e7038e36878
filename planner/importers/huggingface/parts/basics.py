"""What readers of every kind share: facts of an architecture, kinds of layer by index, cached construction of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from planner.errors import CatalogueError
from planner.importers.huggingface.config import Config
from planner.model import AttentionBlock, FeedForwardBlock
from planner.model.stack import MAX_LAYERS

AttentionReader = Callable[[Config, int], Any]
"""Returns the attention of a layer, several of them, or None."""

FeedForwardReader = Callable[[Config, int], Any]
"""Returns the feed-forward network of a layer, several of them, or None."""

Fact = bool | int | str | None | Callable[[Config, int], Any]
"""A fixed fact of an architecture, the name of the field that states it, or a function of config and layer."""

Rule = Callable[[Config, int], str]
"""Returns the kind of a layer where the file does not list the kinds."""

Test = Callable[[Config, int], bool]

B = TypeVar("B", bound=BaseModel)
T = TypeVar("T")

LEGACY_KINDS = {
    "mamba": "linear_attention",
    "attention": "full_attention",
    "deepseek_sparse_attention": "indexed_attention",
}
"""Older names of kinds of layer, as the transformers library maps them."""


def flag(config: Config, fact: Fact, index: int = 0) -> bool:
    """Return a fact that is true or false."""
    if callable(fact):
        return bool(fact(config, index))
    return config.flag(fact, default=False) if isinstance(fact, str) else bool(fact)


def count(config: Config, fact: Fact, index: int = 0) -> int | None:
    """Return a fact that is a number; None for none."""
    if callable(fact):
        found = fact(config, index)
        return None if found is None else int(found)
    if isinstance(fact, str):
        return config.optional(fact, least=0)
    return None if fact is None else int(fact)


@lru_cache(maxsize=8192)
def _built(kind: type[B], items: tuple[tuple[str, Any], ...]) -> B:
    return kind(**dict(items))


def build(config: Config, kind: type[B], /, **fields: Any) -> B:
    """Return a block; equal ones are one object, so that a deep stack is read and compared quickly.

    Raises
    ------
    CatalogueError
        If the block is impossible, with every fault found so far.
    """
    try:
        block: B = _built(kind, tuple(fields.items()))
    except ValidationError as error:
        if config.stood_in:  # what does not fit may be a stand-in
            config.raise_faults()
        for detail in error.errors(include_url=False):
            field = ".".join(str(part) for part in detail["loc"]) or str(fields.get("kind", "layer"))
            reason = detail["ctx"]["error"] if detail["type"] == "value_error" else detail["msg"]
            config.fault(field, str(reason))
        config.raise_faults()
        raise
    return block


def layer_count(config: Config, field: str = "num_hidden_layers") -> int:
    """Return the number of layers; more than make sense are a fault."""

    def read() -> int:
        found = config.integer(field)
        if found > MAX_LAYERS:
            config.fault(field, f"{found} layers are more than make sense (at most {MAX_LAYERS})")
            config.stood_in.add(field)
            return 1
        return found

    return config.derived(("layers", field), read)


# ---- kinds of layer --------------------------------------------------------------------------------------------------


SLIDING = ("full_attention", "sliding_attention")
"""Kinds of layers in models where some have a window."""


def kinds(rule: Rule, field: str = "layer_types", known: Sequence[str] = ()) -> Rule:
    """Return a reader of a layer's kind: from the list in `field`, by `rule` where there is none.

    A list that is longer than the stack is cut, since some files list the layers of multi-token prediction as well.
    """

    def kind_of(config: Config, index: int) -> str:
        def read() -> list[str]:
            length = layer_count(config)
            listed = config.listed(field)
            if listed is None:
                return [rule(config, i) for i in range(length)]
            if len(listed) < length:
                config.fault(field, f"has {len(listed)} items, one for each of the {length} layers is expected")
                return [rule(config, i) for i in range(length)]
            names = [LEGACY_KINDS.get(kind, kind) if isinstance(kind, str) else "" for kind in listed[:length]]
            strange = sorted({name for name in names if known and name not in known})
            if strange:
                config.fault(field, f"{strange[0]!r} is not one of {', '.join(known)}")
                return [rule(config, i) for i in range(length)]
            return names

        return config.derived(("kinds", field, kind_of), read)[index]

    return kind_of


def every(period: int | str, default: int = 1, *, nth: str = "full_attention", other: str) -> Rule:
    """Return a rule: the last layer of each run of `period` (a number, or a field) is `nth`."""

    def rule(config: Config, index: int) -> str:
        size = period if isinstance(period, int) else config.integer(period, default)
        return other if (index + 1) % size else nth

    return rule


def always(kind: str) -> Rule:
    """Return a rule: every layer is of one kind."""
    return lambda config, index: kind  # the signature of every rule


def is_kind(kind_of: Rule, *wanted: str) -> Test:
    """Return a test whether a layer is of one of some kinds."""
    return lambda config, index: kind_of(config, index) in wanted


def first_layers(field: str, default: int = 0, *, first: str = "dense", rest: str = "sparse") -> Rule:
    """Return a rule: as many layers from the start as a field says are of kind `first`."""

    def rule(config: Config, index: int) -> str:
        return first if index < config.integer(field, default, least=0) else rest

    return rule


def choose(kind_of: Rule, readers: dict[str, Callable[[Config, int], Any]], field: str) -> Callable[[Config, int], Any]:
    """Return a reader that picks another by the layer's kind; an unknown kind is a fault."""

    def read(config: Config, index: int) -> Any:
        kind = kind_of(config, index)
        if kind not in readers:
            config.fault(field, f"{kind!r} is not one of {', '.join(readers)}")
            config.raise_faults()
        return readers[kind](config, index)

    return read


def each(function: Callable[[Config], T]) -> Callable[[Config, int], T]:
    """Return a reader that gives the same for every layer."""
    return lambda config, index: function(config)  # the signature of every reader


def nothing(config: Config, index: int) -> None:
    """Read no block."""


Block = AttentionBlock | FeedForwardBlock

__all__ = [
    "SLIDING",
    "AttentionReader",
    "Block",
    "CatalogueError",
    "Config",
    "Fact",
    "FeedForwardReader",
    "Rule",
    "Test",
    "always",
    "build",
    "choose",
    "count",
    "each",
    "every",
    "first_layers",
    "flag",
    "is_kind",
    "kinds",
    "layer_count",
    "nothing",
]
