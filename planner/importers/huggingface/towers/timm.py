"""Towers that the timm library makes: named architectures, whose sizes stand in its code and not in the file.

`timm_architectures.json` holds them, taken from timm 1.0.31: parameters without a classifier where an architecture has one size, and
what the count needs where a file can change it. The towers of a file are convolutional ones, or transformers of EVA's class.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.blip import COLOURS
from planner.importers.huggingface.towers.counts import block, convolution, mlp, norm
from planner.importers.huggingface.towers.fields import pair
from planner.importers.huggingface.towers.whole import TowerCount, UncountedError, Whole, WholeCount

MAP, MEAN = "map", "avg"
"""Ways to pool: by the attention of one query, by the mean."""

CHANGE_NOTHING = frozenset({"drop_path_rate", "dynamic_img_size", "inference_mode", "num_heads", "ref_feat_shape"})
"""Arguments of architectures that leave the count as it is, but for those that are read."""


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = resources.files(__package__).joinpath("timm_architectures.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = json.loads(text)
    return table


def timm(config: Config) -> int:
    """Return the parameters of a named architecture.

    Raises
    ------
    UncountedError
        If the architecture is not in the table, or the file changes it in a way that the count does not know.
    """
    # The variant after the dot is one of weights, not of shapes.
    name = config.text("architecture").split(".")[0]
    known = _table().get(name)
    if known is None:
        raise UncountedError(f"architecture: {name[:60]!r} is not one that is counted")
    arguments = config.part("model_args", known)
    fixed = known.get("parameters")
    if fixed is not None and arguments.flag("inference_mode", default=False):
        # Its parallel convolutions are one each.
        fixed = known.get("parameters_fused", fixed)
    found: int = _eva(arguments) if fixed is None else fixed
    unknown = sorted(set(arguments.unread()) - CHANGE_NOTHING)
    if unknown:
        raise UncountedError(f"model_args: {', '.join(unknown)[:60]} of {name} may change its shapes")
    return found


def _eva(arguments: Config) -> int:
    """Return the parameters of a Perception Encoder: a norm before the stack, and others where its arguments say so."""
    hidden, size = arguments.integer("embed_dim"), arguments.integer("patch_size")
    pooled = arguments.text("global_pool", MEAN)
    high, wide = pair(arguments, "img_size")
    tokens = (high // size) * (wide // size) + 2 * arguments.flag("class_token", default=True)
    inner = int(hidden * arguments.real("mlp_ratio", 4))
    scaled = 2 * hidden if arguments.get("init_values") is not None else 0
    by_mean = arguments.flag("use_fc_norm", default=pooled == MEAN)
    after = arguments.flag("use_post_transformer_norm", default=not by_mean)
    # One learned query, its attention and a network as wide as four of it.
    head = hidden + block(hidden, 4 * hidden) - norm(hidden) if pooled == MAP else 0
    patch = convolution(COLOURS, hidden, size, size, bias=False)
    layers = arguments.integer("depth") * (block(hidden, inner) + scaled)
    return patch + tokens * hidden + (1 + by_mean + after) * norm(hidden) + layers + head


KINDS: Mapping[str, TowerCount] = {"gemma3n_vision": timm, "timm_wrapper": timm}


def _fast_vlm(whole: Whole) -> int:
    """FastVLM: LLaVA's projector after a convolutional tower."""
    width = whole.part("vision_config", "timm_wrapper").integer("hidden_size")
    bias = whole.config.flag("multimodal_projector_bias", default=True)
    projector = mlp(width, whole.hidden_size, bias=bias, outputs=whole.hidden_size)
    return whole.tower("vision_config", "timm_wrapper") + projector


def _perception_lm(whole: Whole) -> int:
    """Perception LM: LLaVA's projector after a Perception Encoder, whose width the file states."""
    seen = whole.tower("vision_config", "timm_wrapper")
    width = whole.part("vision_config", "timm_wrapper").part("model_args").integer("embed_dim")
    return seen + mlp(width, whole.hidden_size, outputs=whole.hidden_size)


WHOLES: Mapping[str, WholeCount] = {"fast_vlm": _fast_vlm, "perception_lm": _perception_lm}
