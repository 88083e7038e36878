"""The tower of the first Qwen-VL, which stands in a Qwen's own file; and models with a later Qwen's tower under a type of their own.

Structure: ``visual.py`` of the model's repository. A tower of OpenCLIP's kind, and a pool of 256 queries that attend to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import attention, block, convolution, linear, norm
from planner.importers.huggingface.towers.qwen import qwen2_5_vl
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount

CHANNELS = 3


def visual(config: Config) -> int:
    """Return the parameters of the stack with norms before it, of the pool, its norm and its matrix."""
    width, out, size = config.integer("width"), config.integer("output_dim"), config.integer("patch_size")
    patches = convolution(CHANNELS, width, size, size, bias=False) + config.integer("positions") * width
    stack = config.integer("layers") * block(width, int(width * config.real("mlp_ratio", 4)))
    queries = 2 * config.integer("n_queries") * out
    pool = queries + linear(width, out, bias=False) + attention(out) + 2 * norm(out)
    return patches + norm(width) + stack + pool + norm(out) + linear(out, out, bias=False)


KINDS: Mapping[str, TowerCount] = {"qwen_visual": visual, "qwen2_5_vl": qwen2_5_vl, "qwen2_5_vl_vision": qwen2_5_vl}


def _qwen(whole: Whole) -> int:
    return whole.tower("visual", "qwen_visual", KINDS) if whole.has("visual") else 0


def _opencua(whole: Whole) -> int:
    return whole.tower("vision_config", "qwen2_5_vl_vision", KINDS)


WHOLES: Mapping[str, WholeCount] = {"opencua": _opencua, "qwen": _qwen}
