"""Writes a model as a person would: block style for the whole, one line for each block of a layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from planner.model import Model

WIDTH = 100
"""Characters after which a line is broken; the longest have some 20 more."""

BLOCK_STYLE = frozenset(
    {"layers", "pattern", "quantization", "parts", "mtp", "encoder", "checkpoint", "notes", "by_class"}
)
"""Fields that are written over several lines."""

ALWAYS = ("name", "source", "tie_word_embeddings")
"""Fields that are written even where they have their default."""


class _Flow(dict[str, Any]):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, as the files of the catalogue do."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: FBT002 - PyYAML's signature
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # PyYAML's signature
        """Write equal parts out: a file with anchors is hard to read."""
        return True


_Dumper.add_representer(
    _Flow, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)
)


def _styled(value: Any, name: str = "") -> Any:
    """Return plain data in which what belongs on one line is marked."""
    if isinstance(value, Mapping):
        kind = dict if name in BLOCK_STYLE else _Flow
        return kind({key: _styled(item, key) for key, item in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str):
        # Groups of layers are mappings in block style; other lists hold mappings on a line each.
        return [_styled(item, name if name in ("layers", "pattern") else "") for item in value]
    return value


def model_yaml(model: Model, *, header: Sequence[str] = ()) -> str:
    """Return a model as the text of a YAML file, without what is as by default.

    Parameters
    ----------
    model : Model
        The model.
    header : sequence of str
        Comment lines for the top, without their mark.
    """
    stated = model.model_dump(mode="json", exclude_defaults=True)
    fields = model.model_dump(mode="json")
    data = {
        name: fields[name] if name in ALWAYS else stated[name] for name in fields if name in stated or name in ALWAYS
    }
    data = {name: value for name, value in data.items() if value not in ("", None)}
    styled = {name: _styled(value, name) for name, value in data.items()}
    body = yaml.dump(styled, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True, default_flow_style=False)
    return "".join(f"# {line}\n" if line else "#\n" for line in header) + body
