"""Towers of models whose classes are in their own repositories: no class of the transformers library has them."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.towers import (
    deepencoder,
    dots_vit,
    intern_vit,
    kimi_vl,
    nemotron_vl,
    ovis_tokens,
    qwen_visual,
)
from planner.importers.huggingface.towers.whole import WholeCount

WHOLES: Mapping[str, WholeCount] = {
    **deepencoder.WHOLES,
    **dots_vit.WHOLES,
    **intern_vit.WHOLES,
    **kimi_vl.WHOLES,
    **nemotron_vl.WHOLES,
    **ovis_tokens.WHOLES,
    **qwen_visual.WHOLES,
}
