"""The exception tree: everything the planner raises on purpose.

PlannerError
├── InputError          a file, a name or an option is wrong: exit 2
│   ├── CatalogueError  a model or hardware file, with the field and what would be right
│   └── UnitError       a quantity that cannot be read
└── InfeasibleError     a well-posed question whose answer is "no": exit 3
"""

from __future__ import annotations

from collections.abc import Iterable


class PlannerError(Exception):
    """Base of every error that the planner raises on purpose."""


class InputError(PlannerError):
    """Bad input: the message says what is wrong and what would be right."""


class UnitError(InputError):
    """A quantity that cannot be read, or in a unit that does not fit the field."""


class CatalogueError(InputError):
    """A model or hardware description that cannot be used.

    Parameters
    ----------
    where : str
        The file, or the name that was looked up.
    faults : iterable of str
        Every fault found, each ``field: what is wrong, what would be right``.
    """

    def __init__(self, where: str, faults: Iterable[str]) -> None:
        self.where = where
        self.faults = tuple(faults)
        super().__init__(printable(f"{where}: {listing(self.faults, separator='; ')}"))


class InfeasibleError(PlannerError):
    """No choice meets the request: an answer, not a bug."""


MOST_LISTED = 20
"""Items of a list that a message names; the rest are counted."""


def listing(items: Iterable[str], *, separator: str = ", ", most: int = MOST_LISTED) -> str:
    """Return a list in words, cut to its first items.

    >>> listing(["a", "b"])
    'a, b'
    >>> listing(map(str, range(100)), most=3)
    '0, 1, 2 and 97 more'
    """
    every = list(items)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return f"{separator.join(every[:most])}{more}"


def printable(text: str) -> str:
    r"""Return a text without characters that a terminal would act upon.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint that lists the names nearest to `name`, or an empty text.

    >>> nearest("h100", ["h100-sxm", "h100-pcie", "tpu-v5e"])
    'did you mean h100-sxm or h100-pcie?'
    """
    import difflib  # only where something is wrong

    wanted = name.lower()
    by_lower = {known.lower(): known for known in names}
    begins = sorted((known for known in by_lower if wanted and known.startswith(wanted)), key=len)
    holds = sorted((known for known in by_lower if wanted and wanted in known), key=len)
    alike = difflib.get_close_matches(wanted, by_lower, n=3, cutoff=0.6)
    close = list(dict.fromkeys((*begins, *alike, *holds)))[:3]
    return f"did you mean {' or '.join(by_lower[c] for c in close)}?" if close else ""


MOST_SHOWN = 60
"""Characters of a value that an error shows: it stays one readable line."""


def shown(value: object) -> str:
    """Return a value as an error shows it: short, whatever the file holds.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    >>> shown([1, 2])
    'a list'
    """
    if isinstance(value, int) and abs(value) > MOST_EXACT:
        return "a number of too many digits"  # Python refuses to write the longest out
    if not isinstance(value, str | int | float | None):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


MOST_EXACT = 10**50
"""Longer numbers are not written out."""
