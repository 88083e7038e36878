"""Towers of GLM's kind: gated layers, a convolution that merges neighbouring patches, a gated network in the text's width."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.qwen import patch
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount, fixed_kind


def _merger(config: Config, inner: int) -> int:
    """Return the parameters from the last layer on, but for its norm; `inner` is the width inside the gated network."""
    width, text, size = (config.integer(name) for name in ("hidden_size", "out_hidden_size", "spatial_merge_size"))
    merged = convolution(width, text, size, size) + linear(text, text, bias=False) + norm(text)
    return merged + mlp(text, inner, gated=True, bias=False)


def glm4v(config: Config) -> int:
    """GLM-4.1V: learned positions; the layers' networks are as wide as the text, the merger's as `intermediate_size` says."""
    width = config.integer("hidden_size")
    positions = (config.integer("image_size") // config.integer("patch_size")) ** 2 * width
    attend = linear(width, 3 * width, bias=config.flag("attention_bias", default=False))
    network = mlp(width, config.integer("out_hidden_size"), gated=True, bias=False)
    layer = attend + linear(width, width, bias=False) + network + 2 * norm(width, bias=False)
    ends = patch(config, width, bias=True) + positions + 2 * norm(width, bias=False)
    return ends + config.integer("depth") * layer + _merger(config, config.integer("intermediate_size"))


def _later(config: Config, inner: int) -> int:
    """GLM-OCR and after: no learned positions, norms of queries and keys."""
    width, bias = config.integer("hidden_size"), config.flag("attention_bias", default=True)
    heads = 2 * (width // config.integer("num_heads"))
    network = mlp(width, config.integer("intermediate_size"), gated=True, bias=bias)
    layer = 2 * norm(width, bias=False) + attention(width, bias=bias) + heads + network
    ends = patch(config, width, bias=True) + norm(width, bias=False)
    return ends + config.integer("depth") * layer + _merger(config, inner)


def glm_ocr(config: Config) -> int:
    """GLM-OCR: the merger is as many times the text's width as a picture has channels, which is how its class says 3."""
    return _later(config, config.integer("out_hidden_size") * config.integer("in_channels"))


def glm5_next(config: Config) -> int:
    """GLM-5: the merger's width is a field."""
    return _later(config, config.integer("projection_intermediate_size"))


KINDS: Mapping[str, TowerCount] = {
    "glm4v_vision": glm4v,
    "glm4v_moe_vision": glm4v,
    "glm_ocr_vision": glm_ocr,
    "glm5_next_vision": glm5_next,
}


def _any(whole: Whole) -> int:
    return whole.tower("vision_config", "glm4v_vision")


WHOLES: Mapping[str, WholeCount] = {
    **{name: fixed_kind(f"{name}_vision") for name in ("glm4v", "glm4v_moe", "glm_ocr", "glm5_next")},
    "glm46v": _any,
    "glmga": _any,
}
