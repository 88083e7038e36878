"""How one architecture is read: an entry of the table of architectures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.parts.basics import AttentionReader, FeedForwardReader, layer_count, nothing
from planner.model import Norm

RMS = Norm()
LAYER = Norm(kind="layer_norm", bias=True)
LAYER_SCALE = Norm(kind="layer_norm")
NO_WEIGHT = Norm(kind="layer_norm", weight=False)

LayerFields = Callable[[Config, int], dict[str, Any]]
ModelFields = Callable[[Config], dict[str, Any]]
Tie = Literal["top", "text", "either", "first", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How one architecture is read.

    Attributes
    ----------
    attention, ffn
        Readers of the two halves of a layer.
    layer : callable, optional
        Returns further fields of a layer (`planner.model.LayerGroup`).
    model : callable, optional
        Returns further fields of the model (`planner.model.Model`).
    layers : callable
        Returns the number of layers.
    norm : Norm or callable
        The kind of norm.
    norms : int, callable or None
        Norms of the hidden width in a layer; one for each half where None.
    tied : bool, "always" or "never"
        What an absent `tie_word_embeddings` stands for, where the class defaults do not say it; or what holds whatever it says.
    aliases, defaults
        See `planner.importers.huggingface.config.Config`; the defaults prevail over the recorded class defaults.
    ignored : tuple of str
        Fields of this architecture that change nothing that is counted.
    plain : tuple of str
        Tensors that checkpoints do not quantise though no list in the file says so.
    flat : callable, optional
        Turns a file of nested parts into one part, which is then read as if it stood at the top.
    decoders : mapping, optional
        With `flat`: the file describes two models, and the decoder is of one of these types.
    flat_prefix : str
        The path of that part, with a final dot, for messages.
    text : str, optional
        The file describes several towers: the type of the text part where the part does not say it. With `flat`, the decoder's.
    towers : bool
        There are towers beside the text model, even if no part of the file describes them.
    at_top : bool
        The file describes several towers, and keeps the fields of the text part at its top.
    tie : Tie
        Where such a file says whether the embeddings are tied: at the top, in the text part, in either, in the first of them that says
        anything, or nowhere.
    """

    attention: AttentionReader = nothing
    ffn: FeedForwardReader = nothing
    layer: LayerFields | None = None
    model: ModelFields | None = None
    layers: Callable[[Config], int] = layer_count
    norm: Norm | Callable[[Config], Norm] = RMS
    norms: int | Callable[[Config, int], int] | None = None
    tied: bool | Literal["always", "never"] = False
    aliases: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    flat: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    decoders: Mapping[str, Family] | None = None
    flat_prefix: str = "decoder."
    text: str | None = None
    towers: bool = False
    at_top: bool = False
    tie: Tie = "top"


def biased_head(config: Config) -> dict[str, Any]:  # the signature of every reader
    """Return the fields of a model whose LM head has a bias."""
    return {"lm_head_bias": True}
