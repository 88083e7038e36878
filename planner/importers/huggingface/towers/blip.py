"""Towers of BLIP-2's kind: a stack of plain layers, and queries that gather what it saw; and the models that have them."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.clip import patches
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, UncountedError, Whole, WholeCount

COLOURS = 3
"""Channels of a picture, where a class takes no other number."""


def blip2(config: Config) -> int:
    """BLIP-2's tower, EVA: a class token, learned positions, a norm after the stack."""
    hidden, size = config.integer("hidden_size"), config.integer("patch_size")
    joint = linear(hidden, 3 * hidden, bias=config.flag("qkv_bias", default=True)) + linear(hidden, hidden)
    layer = 2 * norm(hidden) + joint + mlp(hidden, config.integer("intermediate_size"))
    tokens = (patches(config) + 2) * hidden
    embedded = convolution(COLOURS, hidden, size, size) + tokens
    return embedded + config.integer("num_hidden_layers") * layer + norm(hidden)


def _querying(config: Config, hidden: int, source: int, *, instructed: bool) -> int:
    """Return the parameters of a querying transformer's layers.

    Parameters
    ----------
    config : Config
        Its part of the file.
    hidden, source : int
        Elements of a query, and of what it attends to.
    instructed : bool
        It reads text as well, through feed-forward networks of their own.
    """
    layers, every = config.integer("num_hidden_layers"), config.integer("cross_attention_frequency")
    network = mlp(hidden, config.integer("intermediate_size")) + norm(hidden)
    layer = attention(hidden) + norm(hidden) + (1 + instructed) * network
    across = attention(hidden, source=source) + norm(hidden)
    return layers * layer + -(-layers // every) * across


def qformer(config: Config) -> int:
    """BLIP-2's querying transformer, which takes queries alone unless the file says otherwise."""
    hidden, source = config.integer("hidden_size"), config.integer("encoder_hidden_size")
    instructed = config.flag("use_qformer_text_input", default=False)
    return norm(hidden) + _querying(config, hidden, source, instructed=instructed)


def instructed_qformer(config: Config) -> int:
    """InstructBLIP's, which embeds the instruction."""
    hidden, source = config.integer("hidden_size"), config.integer("encoder_hidden_size")
    table = (config.integer("vocab_size") + config.integer("max_position_embeddings")) * hidden
    return table + norm(hidden) + _querying(config, hidden, source, instructed=True)


KINDS: Mapping[str, TowerCount] = {
    "blip_2_qformer": qformer,
    "blip_2_vision_model": blip2,
    "instructblip_qformer": instructed_qformer,
    "instructblip_vision_model": blip2,
    "instructblipvideo_qformer": instructed_qformer,
    "instructblipvideo_vision_model": blip2,
}


def _blip2(kin: str) -> WholeCount:
    """BLIP-2: learned queries, and a matrix to the text's width."""

    def read(whole: Whole) -> int:
        width = whole.part("qformer_config", f"{kin}_qformer").integer("hidden_size")
        towers = whole.own("vision_config", f"{kin}_vision_model") + whole.own("qformer_config", f"{kin}_qformer")
        return towers + whole.integer("num_query_tokens") * width + linear(width, whole.hidden_size)

    return read


def _sides(whole: Whole) -> tuple[int, int]:
    """Return the sides of a window of queries and of the window of patches that they stand for.

    Raises
    ------
    UncountedError
        If the file does not state them as a fraction.
    """
    stated = whole.config.get("downsample_rate")
    sides = stated.split("/") if isinstance(stated, str) else []
    if len(sides) != 2 or not all(side.isdecimal() and len(side) < 5 for side in sides):  # a fraction of small numbers
        raise UncountedError("downsample_rate: is not a fraction like 4/8")
    return int(sides[0]), int(sides[1])


def _granite4_vision(whole: Whole) -> int:
    """Granite 4 Vision: a querying transformer for each layer that is read, and four for the corners of a window."""
    text, width = whole.hidden_size, whole.part("vision_config", "clip_vision_model").integer("hidden_size")
    query, window = _sides(whole)
    part = whole.part("qformer_config", "blip_2_qformer")
    one = norm(width) + _querying(part, width, width, instructed=part.flag("use_qformer_text_input", default=False))
    one += norm(width) + (query**2 + window**2) * width + linear(width, text)
    levels = len(whole.config.listed("deepstack_layer_map") or ())
    corners = 4
    return whole.tower("vision_config", "clip_vision_model") + (levels + corners) * one + text


WHOLES: Mapping[str, WholeCount] = {
    "blip-2": _blip2("blip_2"),
    "granite4_vision": _granite4_vision,
    "instructblip": _blip2("instructblip"),
    "instructblipvideo": _blip2("instructblipvideo"),
}
