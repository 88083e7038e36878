"""Towers of Qwen's kind: patches over time, a stack, a merger of neighbouring patches that leads to the text's width."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import block, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount, fixed_kind


def patch(config: Config, width: int, *, bias: bool) -> int:
    """Return the parameters of the convolution that makes patches of pictures in time."""
    size = config.integer("patch_size")
    kernel = (config.integer("temporal_patch_size"), size, size)
    return convolution(config.integer("in_channels"), width, *kernel, bias=bias)


def _merged(config: Config, width: int) -> int:
    """Return the elements of the patches that are merged into one."""
    return width * config.integer("spatial_merge_size") ** 2


def qwen2_vl(config: Config) -> int:
    """Qwen2-VL: plain layers; `hidden_size` is the text's."""
    width, merged = config.integer("embed_dim"), _merged(config, config.integer("embed_dim"))
    inner = int(width * config.real("mlp_ratio", 4))
    merger = norm(width) + mlp(merged, merged, outputs=config.integer("hidden_size"))
    return patch(config, width, bias=False) + config.integer("depth") * block(width, inner) + merger


def qwen2_5_vl(config: Config) -> int:
    """Qwen2.5-VL: gated networks and norms without offsets."""
    width = config.integer("hidden_size")
    layer = block(width, config.integer("intermediate_size"), gated=True, norm_bias=False)
    merged = _merged(config, width)
    merger = norm(width, bias=False) + mlp(merged, merged, outputs=config.integer("out_hidden_size"))
    return patch(config, width, bias=False) + config.integer("depth") * layer + merger


def exaone4_5(config: Config) -> int:
    """EXAONE 4.5: Qwen2.5-VL with fewer key heads."""
    width, heads = config.integer("hidden_size"), config.integer("num_heads")
    elements = (heads + 2 * config.integer("num_key_value_heads")) * (width // heads)
    layer = 2 * norm(width, bias=False) + linear(width, elements) + linear(width, width)
    layer += mlp(width, config.integer("intermediate_size"), gated=True)
    merged = _merged(config, width)
    merger = norm(width, bias=False) + mlp(merged, merged, outputs=config.integer("out_hidden_size"))
    return patch(config, width, bias=False) + config.integer("depth") * layer + merger


def qwen3_vl(config: Config) -> int:
    """Qwen3-VL: learned positions; some layers lead to the text's first layers through mergers of their own."""
    width, text = config.integer("hidden_size"), config.integer("out_hidden_size")
    merged = _merged(config, width)
    levels = len(config.listed("deepstack_visual_indexes") or ())
    mergers = norm(width) + levels * norm(merged) + (1 + levels) * mlp(merged, merged, outputs=text)
    layers = config.integer("depth") * block(width, config.integer("intermediate_size"))
    return patch(config, width, bias=True) + config.integer("num_position_embeddings") * width + layers + mergers


KINDS: Mapping[str, TowerCount] = {
    "cohere_compass_vision": qwen3_vl,
    "exaone4_5_vision": exaone4_5,
    "qwen2_vl_vision": qwen2_vl,
    "qwen2_5_omni_vision_encoder": qwen2_5_vl,
    "qwen2_5_vl_vision": qwen2_5_vl,
    "qwen3_omni_moe_vision_encoder": qwen3_vl,
    "qwen3_vl_vision": qwen3_vl,
    "qwen3_vl_moe_vision": qwen3_vl,
    "qwen3_5_vision": qwen3_vl,
    "qwen3_5_moe_vision": qwen3_vl,
    "qwen4_exp_vision": qwen3_vl,
}


def _seen_by(usual: str) -> WholeCount:
    """Return a reader of a file whose only tower holds its own projector."""

    def read(whole: Whole) -> int:
        return whole.tower("vision_config", usual)

    return read


def _hyperclovax(whole: Whole) -> int:
    """HyperCLOVA X: a matrix behind the merger."""
    seen = whole.tower("vision_config", "qwen2_5_vl_vision")
    width = whole.part("vision_config", "qwen2_5_vl_vision").integer("out_hidden_size")
    return seen + linear(width, whole.hidden_size)


WHOLES: Mapping[str, WholeCount] = {
    name: _seen_by(f"{name}_vision")
    for name in ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe")
} | {
    "cohere_compass": fixed_kind("cohere_compass_vision"),
    "cosmos3_omni": _seen_by("qwen3_vl_vision"),
    "exaone4_5": fixed_kind("exaone4_5_vision"),
    "hyperclovax_vision_v2": _hyperclovax,
    "qwen4_exp": fixed_kind("qwen4_exp_vision"),
}
