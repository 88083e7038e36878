"""MoonViT: a stack over patches of any resolution; and the models that have one.

Structure: vLLM 0.33.0, ``models/moonvit.py``, ``models/kimi_k25_vit.py`` and ``models/kimi_vl.py``.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import attention, block, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.fields import area, pair, stated_norm
from planner.importers.huggingface.towers.whole import TowerCount, UncountedError, Whole, WholeCount


def _patches(config: Config, width: int, *, bias: bool) -> int:
    """Return the parameters of the convolution that makes patches, and of a grid of learned positions."""
    positions = config.integer("init_pos_emb_height") * config.integer("init_pos_emb_width")
    return convolution(3, width, *pair(config, "patch_size"), bias=bias) + positions * width


def moonvit(config: Config) -> int:
    """Return the parameters of a tower whose layers all have offsets, and of its last norm."""
    width = config.integer("hidden_size")
    layers = config.integer("num_hidden_layers") * block(width, config.integer("intermediate_size"))
    return _patches(config, width, bias=True) + layers + norm(width)


def moonvit_3d(config: Config) -> int:
    """Return the parameters of a tower whose queries may be wider than its residual stream, and whose offsets are stated."""
    width = config.integer("vt_hidden_size")
    offsets = config.flag("linear_bias", default=True)
    layer = (
        2 * stated_norm(config, width)
        + attention(
            width, inner=config.optional("qkv_hidden_size") or width, bias=config.flag("attn_bias", default=True)
        )
        + mlp(width, config.integer("vt_intermediate_size"), bias=offsets)
    )
    patches = _patches(config, width, bias=config.flag("patch_embed_proj_bias", default=True))
    return patches + config.integer("vt_num_hidden_layers") * layer + stated_norm(config, width)


KINDS: Mapping[str, TowerCount] = {"moonvit": moonvit, "kimi_k3_vision": moonvit_3d}


def _merger(config: Config, width: int, text: int) -> int:
    """Return the parameters of a norm, and of two matrices from merged patches to the text's width."""
    merged = width * area(config, "merge_kernel_size")
    return norm(width) + mlp(merged, merged, outputs=text)


def _kimi_vl(whole: Whole) -> int:
    vision = whole.part("vision_config", "moonvit")
    seen = whole.tower("vision_config", "moonvit", KINDS)
    return seen + _merger(vision, vision.integer("hidden_size"), whole.hidden_size)


def _kimi_k3(whole: Whole) -> int:
    """Return the parameters of the tower, and of a merger with its norm before or after its matrices."""
    vision = whole.part("vision_config", "kimi_k3_vision")
    seen = whole.tower("vision_config", "kimi_k3_vision", KINDS)
    width, text = vision.integer("vt_hidden_size"), whole.hidden_size
    kind = vision.text("mm_projector_type")
    if vision.integer("mm_hidden_size", width) != width:
        raise UncountedError(
            "vision_config.mm_hidden_size: a projector of another width than the tower's is not counted"
        )
    if kind == "patchmerger":
        return seen + _merger(vision, width, text)
    if kind != "patchmergerv2":
        raise UncountedError(f"vision_config.mm_projector_type: {kind[:60]!r} is not one that is counted")
    merged = width * area(vision, "merge_kernel_size")
    return seen + linear(merged, merged, bias=False) + linear(merged, text, bias=False) + norm(text, bias=False)


WHOLES: Mapping[str, WholeCount] = {"kimi_k3": _kimi_k3, "kimi_vl": _kimi_vl}
