"""The tower of dots.ocr: gated layers with norms without offsets, and a merger that leads to the text's width.

Structure: vLLM 0.33.0, ``models/dots_ocr.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import block, convolution, mlp, norm
from planner.importers.huggingface.towers.fields import pair
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def dots_vit(config: Config) -> int:
    """Return the parameters of the tower and its merger; `hidden_size` is the text's, `embed_dim` the tower's own width."""
    width, bias = config.integer("embed_dim"), config.flag("use_bias", default=False)
    patches = convolution(config.integer("num_channels"), width, *pair(config, "patch_size")) + norm(width, bias=False)
    layer = block(width, config.integer("intermediate_size"), gated=True, bias=bias, norm_bias=False)
    last = norm(width, bias=False) if config.flag("post_norm", default=True) else 0
    merged = width * config.integer("spatial_merge_size") ** 2
    merger = norm(width) + mlp(merged, merged, outputs=config.integer("hidden_size"))
    return patches + config.integer("num_hidden_layers") * layer + last + merger


KINDS: Mapping[str, TowerCount] = {"dots_vit": dots_vit}


def _dots_ocr(whole: Whole) -> int:
    return whole.tower("vision_config", "dots_vit", KINDS)


WHOLES: Mapping[str, WholeCount] = {"dots_ocr": _dots_ocr}
