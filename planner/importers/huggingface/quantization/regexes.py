"""Regular expressions of a quantisation block, followed only where that cannot take long.

Python's matcher tries one way after another: a pattern such as ``(a|m|.)*Z`` takes exponential time on a name that does not match. `ways` bounds
from a pattern's parse tree how many ways there are to match a module's name; `compiled` refuses a pattern with too many. That a
repetition is followed by a literal leaves few places where it may end, since no character is frequent in a module's name.
"""

from __future__ import annotations

import importlib
import itertools
import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_PATTERN = 1000
"""Characters of the longest name or pattern read."""

MAX_WAYS = 10_000
"""A pattern with more ways to match a name is refused."""

MANY = 1_000.0
"""More ways than this of what is repeated are not told apart: they are too many in any case."""

LONGEST_NAME = 100
"""Characters of a module's name, about: a repetition may end at as many places."""

FREQUENT = 4
"""Places in a name where a repetition may end that a literal follows, about, after those that another literal has taken."""

_SINGLE = frozenset({"ANY", "ANY_ALL", "IN", "LITERAL", "NOT_LITERAL", "RANGE", "CATEGORY"})
"""Parts of a pattern that match one character."""

Nodes = Sequence[tuple[Any, Any]]
"""Part of a parse tree: operations and what they apply to."""


class PatternError(ValueError):
    """A pattern that cannot be read, in words."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression that can be followed.

    Attributes
    ----------
    regex : re.Pattern
        What is matched against the beginning of a module's path.
    ways : float
        How many ways there are to do so, at most.
    layer : int or None
        The only layer that it can match, where it spells out a number.
    starts_anywhere : bool
        Whether anything may stand before what it matches.
    """

    regex: re.Pattern[str]
    ways: float
    layer: int | None
    starts_anywhere: bool


def compiled(text: str) -> Expression:
    """Return a regular expression that can be followed in reasonable time.

    Raises
    ------
    PatternError
        If it is none, or one that may take long.

    Examples
    --------
    >>> compiled(r".*layers\\.7\\.mlp").layer, compiled(r".*layers\\.(7|8)\\.mlp").layer
    (7, None)
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parsed(text)
            found = Expression(re.compile(text), ways(tree), _only_layer(tree), starts_anywhere=_starts_anywhere(tree))
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{text[:60]!r} is no regular expression: {str(error)[:80]}") from None
    if found.ways > MAX_WAYS:
        raise PatternError(
            f"{text[:60]!r} repeats what may itself be repeated or read in several ways, write it with fewer of * + ? and |"
        )
    return found


def parsed(text: str) -> Nodes:
    """Return the parse tree of a regular expression."""
    # Not public, but what `re` itself compiles from; doctests hold that it is understood.
    tree: Nodes = list(importlib.import_module("re._parser").parse(text))
    return tree


def ways(nodes: Nodes, *, then: bool = True) -> float:
    """Return about how many ways there are, at most, to match a module's name.

    Parameters
    ----------
    nodes : sequence
        Part of a parse tree.
    then : bool
        Whether a literal, or the end, follows.

    Examples
    --------
    >>> [ways(parsed(text)) for text in (r"model\\.layers\\.0\\..*", r".*self_attn.*", r".*.*.*.*x$", r"(a|.)*x")]
    [4.0, 16.0, 4000000.0, inf]
    """
    count = 1.0
    tree = list(nodes)
    for place, (operation, argument) in enumerate(tree):
        kind = str(operation)
        if kind in _SINGLE or kind == "AT":
            continue
        count *= _WAYS.get(kind, _never)(argument, _is_anchor(tree[place + 1 :], then=then))
        if count > MAX_WAYS * MANY:
            return float("inf")
    return count


def _only_layer(nodes: Nodes) -> int | None:
    """Return the only layer that a pattern can match, if literals that stand in whatever it matches spell out a number."""
    for is_literal, run in itertools.groupby(nodes, key=lambda node: str(node[0]) == "LITERAL"):
        found = re.search(r"layers\.(\d{1,9})\.", "".join(chr(argument) for _, argument in run)) if is_literal else None
        if found:
            return int(found[1])
    return None


def _starts_anywhere(nodes: Nodes) -> bool:
    """Whether a pattern begins with ``.*``."""
    if not nodes or str(nodes[0][0]) not in ("MAX_REPEAT", "MIN_REPEAT"):
        return False
    least, most, body = nodes[0][1]
    return bool(least == 0 and most > LONGEST_NAME and [str(kind) for kind, _ in body] == ["ANY"])


# ---- parts of a parse tree -------------------------------------------------------------------------------------------


def _is_anchor(nodes: Nodes, *, then: bool) -> bool:
    """Whether whatever these nodes match begins with a literal, or is the end."""
    for place, (operation, argument) in enumerate(nodes):
        kind = str(operation)
        rest = nodes[place + 1 :]
        if kind == "LITERAL" or (kind == "AT" and str(argument).startswith("AT_END")):
            return True
        if kind == "AT":
            continue
        if kind == "SUBPATTERN":
            return _is_anchor([*argument[-1], *rest], then=then)
        if kind == "BRANCH":
            return all(_is_anchor([*option, *rest], then=then) for option in argument[1])
        if kind.endswith("_REPEAT"):
            least, _, body = argument
            return _is_anchor(body, then=False) and (least > 0 or _is_anchor(rest, then=then))
        return False
    return then


def _group(argument: Any, then: bool) -> float:
    return ways(argument[-1], then=then)


def _atomic(argument: Any, then: bool) -> float:
    return ways(argument, then=then)


def _branch(argument: Any, then: bool) -> float:
    """Options that begin with different characters exclude each other."""
    by_start: dict[int, float] = defaultdict(float)
    anywhere = 0.0
    for option in argument[1]:
        count = ways(option, then=then)
        if option and str(option[0][0]) == "LITERAL":
            by_start[option[0][1]] += count
        else:
            anywhere += count
    return max(by_start.values(), default=0.0) + anywhere


def _repeat(argument: Any, then: bool) -> float:
    least, most, body = argument
    ends: float = min(most - least + 1, FREQUENT if then else LONGEST_NAME)
    if len(body) == 1 and str(body[0][0]) in _SINGLE:
        return ends
    inside = min(ways(body, then=then and _is_anchor(body, then=False)), MANY)
    times: int = min(most, LONGEST_NAME)
    return ends * inside**times


def _never(_argument: Any, _then: bool) -> float:
    """Give up on what is not known, such as a reference to a group: it may take any time."""
    return float("inf")


_WAYS: Mapping[str, Callable[[Any, bool], float]] = {
    "SUBPATTERN": _group,
    "ATOMIC_GROUP": _atomic,
    "BRANCH": _branch,
    "MAX_REPEAT": _repeat,
    "MIN_REPEAT": _repeat,
    "POSSESSIVE_REPEAT": _repeat,
    "ASSERT": _group,
    "ASSERT_NOT": _group,
}
"""Ways of each part that takes more than a character, by its operation."""
