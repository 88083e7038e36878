"""Lists of modules in a quantisation block: literal names, paths, shell patterns, and regular expressions after ``re:``."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator

from planner.importers.huggingface.quantization.modules import EXPERT
from planner.importers.huggingface.quantization.regexes import MAX_PATTERN, Expression, PatternError, compiled

PREFIXES = ("", "model.", "model.language_model.", "language_model.model.", "transformer.", "backbone.", "decoder.")
"""What stands before ``layers.0`` in checkpoints, for patterns that spell it out."""

_SPELLS_IT_OUT = re.compile(r"model|transformer|backbone|decoder|\(\?")
"""In patterns that begin with ``.*`` and do not match this, one of the prefixes stands for all."""

# Where the path of a literal or shell pattern reaches into a layer: its number, or what stands for it, and the rest.
_IN_LAYER = re.compile(r"^(?P<path>.*?)(?:^|\.)(?:layers|layer|h|blocks|block)\.(?P<layer>\d+|\*)(?:\.(?P<rest>.*))?$")

# An expert by its number.
_ONE_EXPERT = re.compile(r"(?:^|\.)experts\.(\d+)(?=\.|$)")

# The path to the text model, where a name goes on outside its layers.
_TEXT_MODEL = re.compile(r"^(?:(?:model|language_model|text_model|transformer|backbone|thinker)\.)+")

# Parts that are no decoder layer of the text model, or hold no matrix that is quantised: they need no match.
_ELSEWHERE = re.compile(
    r"vision|visual|audio|image|video|speech|projector|\bmm_|connector|encoder|mtp|nextn|eh_proj|norm|embed|rotary|router|gate\b|"
    r"lm_head|shared_head|score|bias|conv|output|classifier|wte|wpe|pos_|talker|token2wav|sam_model|perceiver|adapter|aligner|\binv_freq|"
    r"tower|merger|resampler|qformer|abstractor|modality_projection|language_projection|\b(?:vit|vpm|apm|mlp1)\b"
)

BEYOND = 3
"""Layers after the last that a list may name: modules for multi-token prediction, of which released models have up to three."""

MAX_WORK = 4_000_000
"""Names compared with patterns, each as often as there are ways to match it, before a block counts as too large to follow."""

TOO_MUCH = "lists more patterns than can be followed through all layers, write them with fewer"

WAYS_AT_ONCE = 10
"""Ways to match that take as long as looking at a name at all."""


Matcher = Callable[[str], bool]
"""Whether a name within its layer matches."""

_SHELL = re.compile(r"[*?[]")


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
        self._anywhere: list[tuple[str, Matcher]] = []
        self._by_layer: dict[int, list[tuple[str, Matcher]]] = {}
        self._whole: list[tuple[str, Expression]] = []
        self._numbered: list[tuple[str, Expression]] = []
        self._hits: dict[tuple[tuple[str, ...], bool], list[str]] = {}
        self.work = 0.0
        self._experts: dict[tuple[int | None, str], dict[str, int]] = {}
        self._unmatched: dict[str, int | None] = {}
        for entry in entries:
            if not isinstance(entry, str):
                raise PatternError(f"{entry!r} is no name of a module")
            if entry not in self._unmatched:
                self._add(entry)

    def __bool__(self) -> bool:
        return bool(self._anywhere or self._by_layer or self._whole or self._numbered or self._experts)

    def _add(self, entry: str) -> None:
        if not entry:
            return
        if len(entry) > MAX_PATTERN:
            raise PatternError(f"a pattern of {len(entry)} characters is longer than {MAX_PATTERN}")
        if entry.startswith("re:"):
            self._spend(len(entry) * WAYS_AT_ONCE)
            is_numbered = any(character.isdigit() for character in entry)
            (self._numbered if is_numbered else self._whole).append((entry, compiled(entry.removeprefix("re:"))))
            self._unmatched[entry] = None
            return
        found = _IN_LAYER.match(entry)
        if found is None:
            self._unmatched[entry] = None
            rest = _TEXT_MODEL.sub("", entry)
            if not self._add_expert(entry, None, rest):
                self._anywhere.append((entry, self._within(rest, is_anywhere=True)))
        elif not _ELSEWHERE.search(found["path"] or ""):
            self._add_in_layer(entry, found["layer"], found["rest"] or "*")

    def _add_in_layer(self, entry: str, layer: str, rest: str) -> None:
        number = None if layer == "*" else int(layer)
        self._unmatched[entry] = number
        if not self._add_expert(entry, number, rest):
            patterns = self._anywhere if number is None else self._by_layer.setdefault(number, [])
            patterns.append((entry, self._within(rest, is_anywhere=False)))

    def _add_expert(self, entry: str, layer: int | None, rest: str) -> bool:
        """Keep an entry that names one expert by its number, and return whether it does."""
        expert = _ONE_EXPERT.search(rest)
        if expert:
            key = f"{rest[: expert.start(1)]}{EXPERT}{rest[expert.end(1) :]}"
            self._experts.setdefault((layer, key), {})[entry] = int(expert[1])
        return expert is not None

    @property
    def layers_matter(self) -> bool:
        """Whether layers that are alike may be told apart: a pattern holds a number."""
        return bool(self._by_layer or self._numbered) or any(layer is not None for layer, _ in self._experts)

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
        hits = [entry for entry, matches in own if any(map(matches, names))]
        hits += [*self._steady_hits(names, layer), *self._numbered_hits(names, layer)]
        named = [found for name in names for found in self._single(layer, name)] if self._experts else []
        single = {entry: expert for found in named for entry, expert in found.items() if expert < copies}
        for entry in (*hits, *single):
            self._unmatched.pop(entry, None)
        return 1.0 if hits else len(set(single.values())) / copies

    def _single(self, layer: int | None, name: str) -> Iterator[dict[str, int]]:
        """Yield the entries that name single experts of a module, with the experts' numbers."""
        parts = name.split(".")
        for end in (len(parts), len(parts) - 1):
            if layer is not None:
                yield self._experts.get((layer, ".".join(parts[:end])), {})
            # What names no layer may begin anywhere in the path, as other literal names do.
            yield from (self._experts.get((None, ".".join(parts[start:end])), {}) for start in range(end))

    def _steady_hits(self, names: tuple[str, ...], layer: int | None) -> list[str]:
        """Return the entries that match in whichever layer the module is, found once."""
        key = (names, layer is None)
        if key not in self._hits:
            self._spend(len(names) * len(self._anywhere))
            anywhere = (entry for entry, matches in self._anywhere if any(map(matches, names)))
            self._hits[key] = [*anywhere, *self._matching(self._whole, names, layer)]
        return self._hits[key]

    def _numbered_hits(self, names: tuple[str, ...], layer: int | None) -> list[str]:
        """Return the entries that match in this layer and may not in another."""
        own = [(entry, expression) for entry, expression in self._numbered if expression.layer in (None, layer)]
        return self._matching(own, names, layer)

    def _matching(
        self, expressions: list[tuple[str, Expression]], names: tuple[str, ...], layer: int | None
    ) -> list[str]:
        """Return the entries whose expression matches the beginning of a module's whole path."""
        hits = []
        place = "" if layer is None else f"layers.{layer}."
        for entry, expression in expressions:
            is_one = expression.starts_anywhere and not _SPELLS_IT_OUT.search(entry)
            prefixes = ("model.language_model.",) if is_one else PREFIXES
            self._spend(len(prefixes) * len(names) * (1 + expression.ways / WAYS_AT_ONCE))
            full = (prefix + place + name.replace(EXPERT, "0") for prefix in prefixes for name in names)
            hits += [entry] if any(map(expression.regex.match, full)) else []
        return hits

    def _within(self, pattern: str, *, is_anywhere: bool) -> Matcher:
        """Return whether a name begins with a literal or shell pattern, or has it as whole parts of its path, for anything below it."""
        if not _SHELL.search(pattern):
            start = f".{pattern}."
            return (lambda name: start in f".{name}.") if is_anywhere else (lambda name: f".{name}.".startswith(start))
        self._spend(len(pattern) * WAYS_AT_ONCE)
        text = fnmatch.translate(pattern).removesuffix(")\\Z").removesuffix(")\\z").removeprefix("(?s:")
        start = r"(?:^|.*\.)" if is_anywhere else "^"
        regex = re.compile(f"{start}(?:{text})(?:\\.|$)", re.DOTALL)
        return lambda name: regex.search(name) is not None

    def _spend(self, work: float) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise PatternError(TOO_MUCH)

    def unmatched(self, layers: int) -> list[str]:
        """Return the entries that matched nothing so far, though they look as if they named a layer's matrix."""
        return [
            entry
            for entry, number in self._unmatched.items()
            if not _ELSEWHERE.search(entry) and (number is None or not layers <= number < layers + BEYOND)
        ]
