"""Towers of several stages or of layers of several kinds: Florence-2's, LFM3-VL's, Molmo 2's; and Fuyu, which has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.fields import pair
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount
from planner.units import LARGEST_COUNT


def _widths(config: Config) -> Sequence[int]:
    """Return the width of each stage; files made before the library had the class call them otherwise."""
    return config.integers("dim_embed", least=1) or config.integers("embed_dim", least=1) or (1,)


def florence(config: Config) -> int:
    """DaViT: each block attends within windows, then across channels; a convolution before each stage widens it."""
    widths = _widths(config)
    depths = config.integers("depths", len(widths))
    sizes, before = config.integers("patch_size", least=1) or (), config.listed("patch_prenorm") or ()
    ratio, bias = config.real("mlp_ratio", 4), config.flag("qkv_bias", default=True)
    found, inputs = 0, config.integer("in_channels")
    for width, depth, size, first in zip(widths, depths or (), sizes, before, strict=False):
        half = 2 * convolution(width, width, 3, 3, groups=width) + 2 * norm(width)
        half += linear(width, 3 * width, bias=bias) + linear(width, width) + mlp(width, int(width * ratio))
        found += convolution(inputs, width, size, size) + norm(inputs if first else width) + depth * 2 * half
        inputs = width
    return found


def lfm3(config: Config) -> int:
    """LFM3-VL: attention in some layers, a short convolution over the picture in the others."""
    hidden, size = config.integer("hidden_size"), config.integer("patch_size")
    heads = config.integer("num_attention_heads")
    head, layers = hidden // heads, config.integer("num_hidden_layers")
    attended = (
        attention(hidden, inner=heads * head, kv=config.integer("num_key_value_heads") * head, bias=False) + 2 * head
    )
    side = config.integer("conv_kernel_size")
    convolved = linear(hidden, 3 * hidden, bias=False) + linear(hidden, hidden, bias=False)
    convolved += convolution(hidden, hidden, side, side, bias=False, groups=hidden)
    kinds = [kind == "conv" for kind in config.listed("layer_types", layers) or ()]
    network = 2 * norm(hidden, bias=False) + mlp(hidden, config.integer("intermediate_size"), gated=True, bias=False)
    patch = config.integer("in_channels") * config.integer("temporal_patch_size") * size * size
    mixers = sum(convolved if kind else attended for kind in kinds)
    return linear(patch, hidden, bias=False) + norm(hidden, bias=False) + layers * network + mixers


def _molmo2_attention(config: Config, source: int) -> int:
    """Return the parameters of attention whose queries too are made from what `source` gives the width of."""
    head, hidden = config.integer("head_dim"), config.integer("hidden_size")
    queries, keys = config.integer("num_attention_heads") * head, config.integer("num_key_value_heads") * head
    bias = config.flag("attention_bias", default=True)
    return linear(source, queries + 2 * keys, bias=bias) + linear(queries, hidden, bias=bias)


def molmo2(config: Config) -> int:
    """Molmo 2: no norm after the stack, as layers before the last are read."""
    return _molmo2(config, config.integer("num_hidden_layers"))


def _molmo2(config: Config, layers: int) -> int:
    hidden, size = config.integer("hidden_size"), config.optional("image_patch_size") or config.integer("patch_size")
    layer = 2 * norm(hidden) + _molmo2_attention(config, hidden) + mlp(hidden, config.integer("intermediate_size"))
    patch = linear(config.integer("num_channels") * size * size, hidden)
    high, wide = pair(config, "image_default_input_size" if config.has("image_default_input_size") else "image_size")
    positions = config.optional("image_num_pos") or config.optional("num_position_embeddings")
    return patch + (positions or (high // size) * (wide // size)) * hidden + layers * layer


KINDS: Mapping[str, TowerCount] = {"florence_vision": florence, "lfm3_vl_vision": lfm3, "molmo2_vision": molmo2}


def _florence2(whole: Whole) -> int:
    """Florence-2: learned positions along each side, a matrix, a norm."""
    vision = whole.part("vision_config", "florence_vision")
    width, text = _widths(vision)[-1], vision.integer("projection_dim")
    stated = vision.part("image_pos_embed").optional("max_pos_embeddings")
    positions = (stated or vision.integer("max_position_embeddings")) * width
    return whole.own("vision_config", "florence_vision") + positions + linear(width, text, bias=False) + norm(text)


def _lfm3_vl(whole: Whole) -> int:
    """LFM3-VL: a norm and a network for neighbouring patches."""
    vision = whole.part("vision_config", "lfm3_vl_vision")
    width, bias = vision.integer("hidden_size"), whole.config.flag("projector_bias", default=True)
    merged, inner = width * vision.integer("spatial_merge_size") ** 2, whole.integer("projector_hidden_size")
    projector = norm(width) + mlp(merged, inner, bias=bias, outputs=whole.hidden_size)
    return whole.tower("vision_config", "lfm3_vl_vision") + projector


def _molmo2_whole(whole: Whole) -> int:
    """Molmo 2: attention pools neighbouring patches of some layers' outputs; a gated network leads to the text."""
    part = whole.part("adapter_config", "molmo2_adapter")
    read = (
        part.integers("vit_layers", least=-LARGEST_COUNT)
        or part.integers("vision_feature_layer", least=-LARGEST_COUNT)
        or (0,)
    )
    old = not whole.config.given("vision_config") and whole.config.given("vit_config")
    vision = whole.part("vit_config" if old else "vision_config", "molmo2_vision")
    layers = vision.integer("num_hidden_layers")
    if old:
        # The checkpoints of such files end with the last layer that is read, whatever number the file states.
        layers = max(layer % layers for layer in read) + 1
    hidden, inner = part.integer("hidden_size"), part.integer("intermediate_size")
    network = 2 * linear(hidden, inner, bias=part.flag("mlp_bias", default=False))
    network += linear(inner, part.integer("text_hidden_size"), bias=False)
    return _molmo2(vision, layers) + _molmo2_attention(part, hidden * len(read)) + network


def _fuyu(whole: Whole) -> int:
    """Fuyu: patches are led to the text by a matrix."""
    return linear(whole.integer("num_channels") * whole.integer("patch_size") ** 2, whole.hidden_size)


WHOLES: Mapping[str, WholeCount] = {
    "florence2": _florence2,
    "fuyu": _fuyu,
    "lfm3_vl": _lfm3_vl,
    "molmo2": _molmo2_whole,
}
