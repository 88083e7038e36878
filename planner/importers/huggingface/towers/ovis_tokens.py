"""Towers of Ovis, which turn patches into shares of a visual vocabulary, and an embedding of that vocabulary.

Structure: vLLM 0.33.0, ``models/ovis.py``, ``models/ovis2_5.py``, ``models/aimv2.py`` and ``models/siglip2navit.py``. The checkpoints
hold a last norm of the tower that the engine does not run.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.clip import siglip
from planner.importers.huggingface.towers.counts import block, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.fields import grid, pair
from planner.importers.huggingface.towers.whole import TowerCount, UncountedError, Whole, WholeCount, tower_defaults

INDICATORS = 5
"""Rows of the vocabulary that mark pictures and are no shares: the first generation has five."""

LATER_INDICATORS = 4


def aimv2(config: Config) -> int:
    """Return the parameters of an AIMv2: learned positions, gated layers, norms without offsets."""
    width = config.integer("hidden_size")
    bias = config.flag("use_bias", default=config.flag("mlp_bias", default=False))
    heads = linear(width, 3 * width, bias=config.flag("qkv_bias", default=False)) + linear(width, width, bias=bias)
    network = mlp(width, config.integer("intermediate_size"), gated=True, bias=bias)
    layers = config.integer("num_hidden_layers") * (heads + network + 2 * norm(width, bias=False))
    patches = convolution(config.integer("num_channels"), width, *pair(config, "patch_size")) + grid(config) * width
    return patches + layers + 2 * norm(width, bias=False)


def siglip2_navit(config: Config) -> int:
    """Return the parameters of a SigLIP 2 for any resolution: rotary positions, and learned ones where those are kept."""
    width = config.integer("hidden_size")
    patches = convolution(config.integer("num_channels"), width, *pair(config, "patch_size"))
    stated = config.integer("num_patches", least=-1)
    kept = config.flag("preserve_original_pe", default=False)
    positions = (stated if stated > 0 else grid(config)) * width if kept else 0
    layers = config.integer("num_hidden_layers") * block(width, config.integer("intermediate_size"))
    return patches + positions + layers + norm(width)


KINDS: Mapping[str, TowerCount] = {
    "aimv2": aimv2,
    "aimv2_vision_model": aimv2,
    "siglip2_navit": siglip2_navit,
    "siglip_vision_model": siglip,
}


def _vocabulary(width: int, rows: int, indicators: int, text: int) -> int:
    """Return the parameters of a matrix to shares of the vocabulary with a norm, and of its embedding."""
    shares = rows - indicators
    return linear(width, shares, bias=False) + norm(shares) + rows * text


def _ovis(whole: Whole) -> int:
    tokenizer = whole.part("visual_tokenizer_config", "ovis_visual_tokenizer")
    stated = tokenizer.get("backbone_config")
    kind = str(stated.get("model_type")) if isinstance(stated, Mapping) else "none"
    if kind not in KINDS:
        raise UncountedError(
            f"visual_tokenizer_config.backbone_config: a tower of type {kind[:60]!r} is not one that is counted"
        )
    known = tower_defaults(kind) or tower_defaults("aimv2")
    backbone = tokenizer.part("backbone_config", known)
    whole.parts["visual_tokenizer_config.backbone_config"] = (backbone, known)
    seen = KINDS[kind](backbone)
    width = backbone.integer("hidden_size") * tokenizer.integer("hidden_stride") ** 2
    rows = tokenizer.integer("vocab_size", least=INDICATORS + 1)
    return seen + _vocabulary(width, rows, INDICATORS, whole.hidden_size)


def _ovis2_5(whole: Whole) -> int:
    tower = whole.part("vit_config", "siglip2_navit")
    width = tower.integer("hidden_size") * tower.integer("hidden_stride") ** 2
    rows = whole.config.integer("visual_vocab_size", least=LATER_INDICATORS + 1)
    seen = whole.tower("vit_config", "siglip2_navit", KINDS)
    return seen + _vocabulary(width, rows, LATER_INDICATORS, whole.hidden_size)


WHOLES: Mapping[str, WholeCount] = {"ovis": _ovis, "ovis2_5": _ovis2_5}
