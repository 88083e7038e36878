"""Towers of Pixtral's kind: pictures of any shape, so no learned positions; and the models that have one."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.clip import embedding, levels_joined
from planner.importers.huggingface.towers.counts import block, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def pixtral(config: Config) -> int:
    """Pixtral: gated networks, norms and matrices without offsets."""
    hidden = config.integer("hidden_size")
    layer = block(hidden, config.integer("intermediate_size"), gated=True, bias=False, norm_bias=False)
    return embedding(config, bias=False) + norm(hidden, bias=False) + config.integer("num_hidden_layers") * layer


KINDS: Mapping[str, TowerCount] = {"pixtral": pixtral}


def _merged(whole: Whole, levels: int = 1, *, bias: bool = False) -> int:
    """Return the parameters of the tower, and of what merges neighbouring patches and leads to the text's width."""
    width = whole.part("vision_config", "pixtral").integer("hidden_size")
    merger = norm(width, bias=False) + linear(width * whole.integer("spatial_merge_size") ** 2, width, bias=False)
    projector = mlp(width * levels, whole.hidden_size, bias=bias, outputs=whole.hidden_size)
    return whole.tower("vision_config", "pixtral") + merger + projector


def _mistral3(whole: Whole) -> int:
    """Mistral Small 3.1 and its successors."""
    return _merged(whole, levels_joined(whole), bias=whole.config.flag("multimodal_projector_bias", default=False))


WHOLES: Mapping[str, WholeCount] = {
    "lighton_ocr": _merged,
    "mistral3": _mistral3,
    "mistral_large4": _mistral3,
}
