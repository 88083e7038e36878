"""Lists of modules in a quantisation block: literal names, paths, shell patterns, and regular expressions after ``re:``."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

from planner.importers.huggingface.modules import EXPERT

PREFIXES = ("", "model.", "model.language_model.", "language_model.model.", "transformer.", "backbone.", "decoder.")
"""What stands before ``layers.0`` in checkpoints, for patterns that spell it out."""

# Where the path of a literal or shell pattern reaches into a layer: its number, or what stands for it, and the rest.
_IN_LAYER = re.compile(r"^(?P<path>.*?)(?:^|\.)(?:layers|layer|h|blocks|block)\.(?P<layer>\d+|\*)(?:\.(?P<rest>.*))?$")

# The path to the text model, where a name goes on outside its layers.
_TEXT_MODEL = re.compile(r"^(?:(?:model|language_model|text_model|transformer|backbone|thinker)\.)+")

# Parts that are no decoder layer of the text model, or hold no matrix that is quantised: they need no match.
_ELSEWHERE = re.compile(
    r"vision|visual|audio|image|video|speech|projector|\bmm_|connector|encoder|mtp|nextn|eh_proj|norm|embed|rotary|router|gate\b|"
    r"lm_head|shared_head|score|bias|conv|output|classifier|wte|wpe|pos_|talker|token2wav|sam_model|perceiver|adapter|aligner|\binv_freq"
)

# A repetition of a group that ends in a repetition takes exponential time on some names.
_NESTED_REPETITION = re.compile(r"[*+}]\??\)+[*+{]")

MAX_PATTERN = 2000
"""Characters of the longest pattern read."""


class PatternError(ValueError):
    """A pattern that cannot be read, in words."""


class Patterns:
    """A list of modules, ready to be matched against the modules of a layer.

    Parameters
    ----------
    entries : iterable of str
        Literal names match a module, everything below it, and (where they name no layer) a run of whole parts anywhere in its
        path, as the transformers library and vLLM match them. ``*`` and ``?`` match as in a shell. What follows ``re:`` is a
        regular expression for the beginning of the whole path, as compressed-tensors reads it.

    Raises
    ------
    PatternError
        If an entry is no text, or no regular expression that can be followed in reasonable time.
    """

    def __init__(self, entries: Iterable[object]) -> None:
        self._anywhere: list[tuple[str, re.Pattern[str]]] = []
        self._by_layer: dict[int, list[tuple[str, re.Pattern[str]]]] = {}
        self._whole: list[tuple[str, re.Pattern[str]]] = []
        self._numbered = False
        self._hits: dict[tuple[tuple[str, ...], int | None], list[str]] = {}
        self._experts: dict[tuple[int | None, str], set[str]] = {}
        self._unmatched: dict[str, int | None] = {}
        for entry in entries:
            if not isinstance(entry, str):
                raise PatternError(f"{entry!r} is no name of a module")
            if entry not in self._unmatched:
                self._add(entry)

    def __bool__(self) -> bool:
        return bool(self._anywhere or self._by_layer or self._whole or self._experts)

    def _add(self, entry: str) -> None:
        if not entry:
            return
        if len(entry) > MAX_PATTERN:
            raise PatternError(f"a pattern of {len(entry)} characters is longer than {MAX_PATTERN}")
        if entry.startswith("re:"):
            self._whole.append((entry, _regex(entry)))
            self._numbered = self._numbered or any(character.isdigit() for character in entry)
            self._unmatched[entry] = None
            return
        found = _IN_LAYER.match(entry)
        if found is None:
            path = _within(_TEXT_MODEL.sub("", entry), r"(?:^|.*\.)")
            self._anywhere.append((entry, path))
            self._unmatched[entry] = None
        elif not _ELSEWHERE.search(found["path"] or ""):
            self._add_in_layer(entry, found["layer"], found["rest"] or "*")

    def _add_in_layer(self, entry: str, layer: str, rest: str) -> None:
        number = None if layer == "*" else int(layer)
        self._unmatched[entry] = number
        expert = re.search(r"(^|\.)experts\.(\d+)(?=\.|$)", rest)
        if expert:
            key = f"{rest[: expert.start(2)]}{EXPERT}{rest[expert.end(2) :]}"
            self._experts.setdefault((number, key), set()).add(entry)
            return
        patterns = self._anywhere if number is None else self._by_layer.setdefault(number, [])
        patterns.append((entry, _within(rest, "^")))

    @property
    def layers_matter(self) -> bool:
        """Whether layers that are alike may be told apart: a pattern holds a number."""
        return bool(self._by_layer or self._experts) or self._numbered

    def share(self, names: tuple[str, ...], layer: int | None, copies: int) -> float:
        """Return the share of a module that the list names: 0 or 1, or the share of its experts.

        Parameters
        ----------
        names : tuple of str
            What checkpoints call the module, within its layer.
        layer : int or None
            Number of the layer; None outside the layers.
        copies : int
            Experts that the module stands for.
        """
        # Every pattern is tried, so that those that match nothing at all can be told to the user.
        own = self._by_layer.get(layer, ()) if layer is not None else ()
        hits = [entry for entry, regex in own if any(regex.search(name) for name in names)]
        hits += self._whole_hits(names, layer)
        single = {entry for number in (layer, None) for name in names for entry in self._single(number, name)}
        for entry in (*hits, *single):
            self._unmatched.pop(entry, None)
        return 1.0 if hits else min(1.0, len(single) / copies)

    def _single(self, layer: int | None, name: str) -> set[str]:
        """Return the entries that name one expert of a module."""
        return self._experts.get((layer, name), set()) | self._experts.get((layer, name.rpartition(".")[0]), set())

    def _whole_hits(self, names: tuple[str, ...], layer: int | None) -> list[str]:
        """Return the entries that match wherever the module is, remembered for layers that they do not tell apart."""
        key = (names, layer if self._numbered or layer is None else 0)
        if key not in self._hits:
            paths = [f"{prefix}{'' if layer is None else f'layers.{layer}.'}" for prefix in PREFIXES]
            full = [path + name.replace(EXPERT, "0") for path in paths for name in names]
            hits = [entry for entry, regex in self._anywhere if any(regex.search(name) for name in names)]
            self._hits[key] = hits + [e for e, regex in self._whole if any(regex.match(name) for name in full)]
        return self._hits[key]

    def unmatched(self, layers: int) -> list[str]:
        """Return the entries that matched nothing so far, though they look as if they named a layer's matrix."""
        return [
            entry
            for entry, number in self._unmatched.items()
            if not _ELSEWHERE.search(entry) and (number is None or number < layers)
        ]


def _within(pattern: str, start: str) -> re.Pattern[str]:
    """Return a regex for a literal or shell pattern that begins at `start`, for the module or anything below it."""
    text = fnmatch.translate(pattern).removesuffix(")\\Z").removesuffix(")\\z").removeprefix("(?s:")
    return re.compile(f"{start}(?:{text})(?:\\.|$)", re.DOTALL)


def _regex(entry: str) -> re.Pattern[str]:
    text = entry.removeprefix("re:")
    if _NESTED_REPETITION.search(text):
        raise PatternError(f"{entry[:60]!r} repeats a repetition, write it without")
    try:
        return re.compile(text)
    except (re.error, OverflowError) as error:
        raise PatternError(f"{entry[:60]!r} is no regular expression: {error}") from None
