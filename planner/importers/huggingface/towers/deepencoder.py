"""Towers of DeepSeek-VL2 and of the two DeepSeek-OCR: a SigLIP with its pool, or a SAM before another encoder.

All three say `deepseek_vl_v2`; those with two encoders describe each by its name within `vision_config.width`.

Structure: vLLM 0.33.0, ``models/deepseek_vl2.py``, ``models/deepencoder.py`` and ``models/deepencoder2.py``; what the files leave to the
code that they name is recorded under the encoders' names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import attention, block, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.fields import grid, pair
from planner.importers.huggingface.towers.whole import UncountedError, Whole, WholeCount, tower_defaults

CHANNELS = 3


def _siglip(config: Config) -> int:
    """Return the parameters of a SigLIP that pools by attention: a latent, four matrices, a norm and a feed-forward network."""
    width = config.integer("width")
    inner = int(width * config.real("mlp_ratio", 4))
    layer = block(width, inner)
    tokens = 1 if config.flag("class_token", default=False) else 0
    pool = width + layer - norm(width) if config.text("global_pool") == "map" else 0
    patches = convolution(CHANNELS, width, *pair(config, "patch_size")) + (grid(config) + 2 * tokens) * width
    return patches + config.integer("layers") * layer + norm(width) + pool


def _clip(config: Config, last: int) -> int:  # the signature of every encoder
    """Return the parameters of a CLIP without its last norm."""
    width = config.integer("width")
    patches = convolution(CHANNELS, width, *pair(config, "patch_size"), bias=False) + (grid(config) + 2) * width
    return patches + norm(width) + config.integer("layers") * block(width, 4 * width)


def _sam(config: Config, last: int) -> int:
    """Return the parameters of a SAM whose output two convolutions make smaller: the second has `last` channels.

    Each layer has positions relative to the window that it attends to, or to the whole picture, in both dimensions.
    """
    width, layers = config.integer("width"), config.integer("layers")
    head = width // config.integer("heads")
    side = config.integer("image_size") // config.integer("patch_size")
    whole = {index for index in config.integers("global_attn_indexes") or () if index < layers}
    relative = len(whole) * (2 * side - 1) + (layers - len(whole)) * (2 * config.integer("window_size") - 1)
    stack = layers * block(width, int(width * config.real("mlp_ratio", 4))) + 2 * relative * head
    out, middle = config.integer("output_channels"), (config.integers("downsample_channels", least=1) or (1,))[0]
    shapes = ((width, out, 1), (out, out, 3), (out, middle, 3), (middle, last, 3))
    neck = sum(convolution(inputs, outputs, size, size, bias=False) for inputs, outputs, size in shapes) + 2 * norm(out)
    return convolution(CHANNELS, width, *pair(config, "patch_size")) + side**2 * width + stack + neck


def _decoder(config: Config, last: int) -> int:
    """Return the parameters of a gated stack with offsets in queries, keys and values, and of the queries that it answers."""
    width, heads = config.integer("dim"), config.integer("heads")
    kv = width // heads * config.integer("key_value_heads")
    offsets = width + 2 * kv
    gated = mlp(width, config.integer("intermediate_size"), gated=True, bias=False)
    layer = attention(width, kv=kv, bias=False) + offsets + gated + 2 * norm(width, bias=False)
    return config.integer("layers") * layer + norm(width, bias=False) + sum(config.integers("queries") or ()) * width


ENCODERS: Mapping[str, Callable[[Config, int], int]] = {"clip": _clip, "decoder": _decoder, "sam": _sam}


def _encoders(parts: Config, names: Sequence[str]) -> int:
    """Return the parameters of encoders by their names; a decoder says how many channels those before it end in."""
    kinds = {name: tower_defaults(name).get("kind") for name in names}
    strange = [name[:40] for name, kind in kinds.items() if kind not in ENCODERS]
    if strange:
        raise UncountedError(f"vision_config.width: encoders that are not counted: {', '.join(strange)}")
    read = {name: parts.part(name, tower_defaults(name)) for name in names}
    ends = [config.integer("dim") for name, config in read.items() if kinds[name] == "decoder"]
    total = 0
    for name, config in read.items():
        channels = config.integers("downsample_channels", least=1) or (1,)
        total += ENCODERS[str(kinds[name])](config, ends[0] if ends else channels[-1])
    return total


def _projector(whole: Whole) -> int:
    config = whole.part("projector_config", "mlp_projector")
    kind, outputs = config.text("projector_type"), config.integer("n_embed")
    if config.flag("token_pooling", default=False):
        raise UncountedError("projector_config.token_pooling: is not counted")
    if kind == "linear":
        return linear(config.integer("input_dim"), outputs)
    if kind != "downsample_mlp_gelu":
        raise UncountedError(f"projector_config.projector_type: {kind[:60]!r} is not one that is counted")
    inputs, inner = (
        config.integer("input_dim") * config.integer("downsample_ratio") ** 2,
        config.integer("mlp_ratio") * outputs,
    )
    between = max(0, config.integer("depth") - 2)
    return linear(inputs, inner) + between * linear(inner, inner) + linear(inner, outputs)


def _deepseek(whole: Whole) -> int:
    """Return the parameters of the towers, the projector, and the elements that end a line of patches and a picture."""
    vision = whole.part("vision_config", "vision")
    if whole.config.text("tile_tag") != "2D":
        raise UncountedError(f"tile_tag: {whole.config.text('tile_tag')[:60]!r} is not one that is counted")
    width, marks = vision.get("width"), 2
    if isinstance(width, Mapping):
        # What else stands beside `width` is of the class, and no encoder reads it.
        for leftover in ("mlp_ratio", "image_size"):
            vision.get(leftover)
        seen = _encoders(vision.part("width"), list(width))
        marks = 1 if any(tower_defaults(name).get("kind") == "decoder" for name in width) else marks
    else:
        seen = _siglip(vision)
    projector = whole.part("projector_config", "mlp_projector")
    return seen + _projector(whole) + marks * projector.integer("n_embed")


WHOLES: Mapping[str, WholeCount] = {"deepseek_ocr": _deepseek, "deepseek_vl_v2": _deepseek}
