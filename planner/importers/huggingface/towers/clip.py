"""Towers of CLIP's kind: patches, learned positions, a stack of plain layers; and the models that have one."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import block, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def patches(config: Config) -> int:
    """Return the patches of a picture that a tower takes."""
    return (config.integer("image_size") // config.integer("patch_size")) ** 2


def stack(config: Config) -> int:
    """Return the parameters of the layers."""
    return config.integer("num_hidden_layers") * block(
        config.integer("hidden_size"), config.integer("intermediate_size")
    )


def embedding(config: Config, *, bias: bool) -> int:
    """Return the parameters of the convolution that makes patches."""
    size = config.integer("patch_size")
    return convolution(config.integer("num_channels"), config.integer("hidden_size"), size, size, bias=bias)


def clip(config: Config) -> int:
    """CLIP: a class token, norms before and after the stack."""
    hidden = config.integer("hidden_size")
    return embedding(config, bias=False) + (patches(config) + 2) * hidden + 2 * norm(hidden) + stack(config)


def siglip(config: Config) -> int:
    """SigLIP: no class token; a head that pools by attention, where the file says so."""
    hidden = config.integer("hidden_size")
    head = hidden + block(hidden, config.integer("intermediate_size")) - norm(hidden)
    pooled = head if config.flag("vision_use_head", default=True) else 0
    return embedding(config, bias=True) + patches(config) * hidden + norm(hidden) + stack(config) + pooled


KINDS: Mapping[str, TowerCount] = {"clip_vision_model": clip, "siglip_vision_model": siglip}


def _levels(whole: Whole) -> int:
    """Return how many layers' outputs a projector joins."""
    chosen = whole.config.get("vision_feature_layer")
    return len(chosen) if isinstance(chosen, list) else 1


def _llava(whole: Whole) -> int:
    """LLaVA: two matrices from the picture's width to the text's."""
    seen = whole.tower("vision_config", "clip_vision_model")
    bias = whole.config.flag("multimodal_projector_bias", default=True)
    width = whole.part("vision_config", "clip_vision_model").integer("hidden_size") * _levels(whole)
    return seen + mlp(width, whole.hidden_size, bias=bias, outputs=whole.hidden_size)


def _llava_next(whole: Whole) -> int:
    """LLaVA-NeXT: an element of the text's width ends each line of patches."""
    return _llava(whole) + whole.hidden_size


def _gemma3(whole: Whole) -> int:
    """Gemma 3: a norm without offsets and a matrix."""
    width = whole.part("vision_config", "siglip_vision_model").integer("hidden_size")
    seen = whole.tower("vision_config", "siglip_vision_model")
    return seen + norm(width, bias=False) + linear(width, whole.hidden_size, bias=False)


def _paligemma(whole: Whole) -> int:
    """PaliGemma: one matrix."""
    vision = whole.part("vision_config", "siglip_vision_model")
    projected = whole.config.optional("projection_dim") or vision.integer("projection_dim")
    return whole.tower("vision_config", "siglip_vision_model") + linear(vision.integer("hidden_size"), projected)


WHOLES: Mapping[str, WholeCount] = {
    "llava": _llava,
    "llava_next": _llava_next,
    "llava_next_video": _llava_next,
    "llava_onevision": _llava_next,
    "gemma3": _gemma3,
    "shieldgemma2": _gemma3,
    "paligemma": _paligemma,
}
