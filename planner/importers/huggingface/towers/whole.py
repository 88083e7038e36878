"""A file of several towers, as those that count its towers see it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from copy import copy
from functools import cache
from importlib import resources
from typing import Any

from planner.importers.huggingface.benign import BENIGN, says_no
from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.names import FIELD_NAMES, UNUSED
from planner.model import FeedForward, Model

TowerCount = Callable[[Config], int]
"""Returns the parameters of one tower."""

_NAMES = """
default_output_length enable_checkpoint encoder_attention_heads encoder_layerdrop float32_attention global_head_dim image_feature_dropout image_feature_source
image_seq_length in_chans is_composition max_image_size num_attention_heads num_channels num_heads pooling_attention_mask
position_embedding_type projection_dim size spatial_patch_size tie_word_embeddings use_base_siglip video_seq_length
visual_temporal_embedding vocab_size
"""

HARMLESS = frozenset(_NAMES.split())
"""Fields that files of towers carry and that change no shapes where the count of a tower does not ask for them."""


TEXTS = ("text_config", "llm_config")
"""Where files keep the text model."""

TOKENS = ("_token_id", "_token_ids", "_token_index")
"""How the names of fields end that say which tokens stand for what."""


class UncountedError(Exception):
    """A tower is of a kind that cannot be counted; the text says which and where."""


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    table: dict[str, dict[str, Any]] = {}
    for name in ("custom_defaults.json", "tower_defaults.json"):
        table |= json.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
    return table


def tower_defaults(model_type: str) -> Mapping[str, Any]:
    """Return what the class of a tower, or of a whole, supplies for absent fields; empty where none are recorded.

    Taken from the configuration classes of the transformers library, 5.24.0; those of models that it has no class of, from vLLM 0.33.0
    and the models' own repositories.
    """
    return _table().get(model_type, {})


class Whole:
    """The towers of a file.

    Parameters
    ----------
    data : mapping
        The parsed file, or the part of it that holds the towers.
    where : str
        The file, for messages.
    model_type : str
        The type of the whole.
    text : Model
        The text model, which projectors lead to.
    kinds : mapping of str to TowerCount
        The towers that can be counted, by type.
    """

    def __init__(
        self, data: Mapping[str, Any], where: str, model_type: str, text: Model, kinds: Mapping[str, TowerCount]
    ) -> None:
        self.model_type = model_type
        self.text = text
        self.kinds = kinds
        names = FIELD_NAMES.get(model_type)
        self.config = Config(data, where, aliases=names, defaults=tower_defaults(model_type), is_part=True)
        self.prefix = ""
        self.parts: dict[str, tuple[Config, Collection[str]]] = {}
        self.notes: list[str] = []

    @property
    def hidden_size(self) -> int:
        """Elements of the text model's residual stream."""
        return self.text.hidden_size

    @property
    def intermediate_size(self) -> int:
        """Elements within the text model's first feed-forward network."""
        networks = [block for kind in self.text.layer_kinds for block in kind.layer.networks]
        return next((block.intermediate_size for block in networks if isinstance(block, FeedForward)), 0)

    def integer(self, field: str, *rest: Any) -> int:
        """Return a whole number that stands at the top."""
        return self.config.integer(field, *rest)

    def type_of(self, field: str, usual: str) -> str:
        """Return the type of a nested part: what it says itself, or the `usual` one.

        Files made before the parts had types of their own name the type of the whole there.
        """
        value = self.config.get(field)
        stated = value.get("model_type") if isinstance(value, Mapping) else None
        return stated if isinstance(stated, str) and stated not in ("", self.model_type) else usual

    def part(self, field: str, usual: str, *, is_fixed: bool = False) -> Config:
        """Return the fields of a nested part; what its class supplies stands for what is absent.

        A part whose class `is_fixed` by the whole is of the `usual` type whatever it says itself.
        """
        path = f"{self.prefix}{field}"
        if path not in self.parts:
            kind = usual if is_fixed else self.type_of(field, usual)
            kind = kind if tower_defaults(kind) else usual
            known = tower_defaults(kind)
            self.parts[path] = (self.config.part(field, known, FIELD_NAMES.get(kind)), {*known, *UNUSED.get(kind, ())})
            if not self.config.given(field):
                self.notes.append(f"{path} is not in the file: that of the class is counted")
        return self.parts[path][0]

    def text_part(self) -> Config:
        """Return the fields of the text model, under either of the names that files have for them."""
        return self.config.part(next(filter(self.has, TEXTS), TEXTS[0]))

    def within(self, field: str, usual: str) -> Whole:
        """Return a nested part of a fixed class that has parts itself; what is read of it is remembered here."""
        inner = copy(self)
        inner.config, inner.prefix = self.part(field, usual, is_fixed=True), f"{self.prefix}{field}."
        return inner

    def has(self, field: str) -> bool:
        """Whether the file, or the class of the whole, describes a part."""
        return self.config.get(field) is not None

    def tower(self, field: str, usual: str, kinds: Mapping[str, TowerCount] | None = None) -> int:
        """Return the parameters of the tower that a nested part describes; `kinds` are looked through before those of all.

        Raises
        ------
        UncountedError
            If it is of a kind that is not counted.
        """
        found = self.type_of(field, usual)
        count = {**self.kinds, **(kinds or {})}.get(found)
        if count is None:
            raise UncountedError(f"{self.prefix}{field}: a tower of type {found[:60]!r} is not one that is counted")
        return count(self.part(field, usual))

    def own(self, field: str, usual: str) -> int:
        """Return the parameters of a nested part of which the class of the whole has one kind, whatever type the part states."""
        return self.kinds[usual](self.part(field, usual, is_fixed=True))

    def strange(self) -> list[str]:
        """Return the fields of towers that were not read, are not of their class, and are not known to change nothing."""
        left = []
        for field, (config, known) in self.parts.items():
            harmless = {*BENIGN, *HARMLESS, *known}
            unread = [name for name in config.unread() if name not in harmless and not name.endswith(TOKENS)]
            left += [f"{field}.{name}" for name in unread if not says_no(name, config.get(name))]
        return left


WholeCount = Callable[[Whole], int]
"""Returns the parameters of all towers and projectors of a file."""


def fixed_kind(kind: str) -> WholeCount:
    """Return a reader of a file whose only tower holds its own projector and is always of one kind."""
    return lambda whole: whole.own("vision_config", kind)
