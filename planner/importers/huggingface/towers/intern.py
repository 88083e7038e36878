"""Towers of BEiT's kind, as InternVL's, and those that read pictures as words of a visual vocabulary, as Ovis'."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.clip import embedding, patches
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.fields import pair, shrinking
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def internvl(config: Config) -> int:
    """InternVL: a class token, learned positions, a scale after each half of a layer."""
    hidden, (high, wide) = config.integer("hidden_size"), pair(config, "image_size")
    rows, columns = pair(config, "patch_size")
    normed = norm(hidden, bias=config.text("norm_type", "layer_norm") != "rms_norm")
    joint = 3 * linear(hidden, hidden, bias=config.flag("attention_bias", default=False)) + linear(hidden, hidden)
    joint += 2 * norm(hidden, bias=False) if config.flag("use_qk_norm", default=False) else 0
    layer = 2 * normed + joint + mlp(hidden, config.integer("intermediate_size")) + 2 * hidden
    tokens = 1 + config.flag("use_mask_token", default=False)
    if config.flag("use_absolute_position_embeddings", default=True):
        tokens += (high // rows) * (wide // columns) + 1
    last = 0 if config.flag("use_mean_pooling", default=True) else norm(hidden)
    embedded = convolution(config.integer("num_channels"), hidden, rows, columns)
    return embedded + tokens * hidden + config.integer("num_hidden_layers") * layer + last


def ovis2(config: Config) -> int:
    """Ovis2: gated networks, and a head that gives the words of a visual vocabulary their weights."""
    hidden, inner = config.integer("hidden_size"), config.integer("intermediate_size")
    network = mlp(hidden, inner, gated=True, bias=config.flag("mlp_bias", default=False))
    layer = network + attention(hidden, bias=config.flag("qkv_bias", default=False)) + 2 * norm(hidden, bias=False)
    words = config.integer("vocab_size") - config.integer("num_visual_indicator_tokens", least=0)
    if words < 1:
        config.fault("num_visual_indicator_tokens", "leaves no words for the pictures")
    head = linear(hidden * config.integer("hidden_stride") ** 2, words, bias=False) + norm(words)
    tokens = patches(config) * hidden + 2 * norm(hidden, bias=False)
    return embedding(config, bias=True) + tokens + config.integer("num_hidden_layers") * layer + head


KINDS: Mapping[str, TowerCount] = {
    "internvl_vision": internvl,
    "ovis2_vision": ovis2,
    "qianfan_ocr_vision": internvl,
}


def _internvl(usual: str) -> WholeCount:
    """InternVL: a norm and a network for neighbouring patches."""

    def read(whole: Whole) -> int:
        factor = int(shrinking(whole.config))
        width = whole.part("vision_config", usual).integer("hidden_size") * factor**2
        projector = norm(width) + mlp(width, whole.hidden_size, outputs=whole.hidden_size)
        return whole.own("vision_config", usual) + projector

    return read


def _ovis2(whole: Whole) -> int:
    """Ovis2: an embedding of the visual vocabulary."""
    words = whole.part("vision_config", "ovis2_vision").integer("vocab_size")
    return whole.own("vision_config", "ovis2_vision") + words * whole.integer("hidden_size", whole.hidden_size)


WHOLES: Mapping[str, WholeCount] = {
    "internvl": _internvl("internvl_vision"),
    "ovis2": _ovis2,
    "qianfan_ocr": _internvl("qianfan_ocr_vision"),
}
