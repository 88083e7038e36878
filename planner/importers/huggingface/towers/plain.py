"""Towers of plain layers that take pictures of any size, and the projectors behind them."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.clip import embedding, patches, stack
from planner.importers.huggingface.towers.counts import attention, block, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, UncountedError, Whole, WholeCount


def _merged(config: Config) -> int:
    """Return the elements of the patches that are merged into one."""
    return config.integer("hidden_size") * config.integer("spatial_merge_size") ** 2


def _compressed(config: Config, field: str) -> int:
    """Return how far MiniMax-M3 joins patches: as a part of its own says, or a field."""
    return config.part("img_token_compression_config").optional(field) or config.integer(field)


def minimax(config: Config) -> int:
    """MiniMax-M3: patches over time, a norm before the stack and none after it."""
    width, size = config.integer("hidden_size"), config.integer("patch_size")
    kernel = (_compressed(config, "temporal_patch_size"), size, size)
    return convolution(config.integer("num_channels"), width, *kernel, bias=False) + norm(width) + stack(config)


def _minimax_whole(whole: Whole) -> int:
    """MiniMax-M3: each patch is projected to the text's width, then merged there."""
    vision = whole.part("vision_config", "minimax_m3_vl_vision", is_fixed=True)
    inner, text = whole.integer("projector_hidden_size"), whole.hidden_size
    merged = text * _compressed(vision, "spatial_merge_size") ** 2
    projected = mlp(vision.integer("hidden_size"), inner, outputs=text) + mlp(merged, inner, outputs=text)
    return minimax(vision) + projected


def moonvit(config: Config) -> int:
    """MoonViT: a learned table of positions; those in time are computed."""
    width, size = config.integer("hidden_size"), config.integer("patch_size")
    positions = config.integer("pos_emb_height") * config.integer("pos_emb_width") * width
    return convolution(3, width, size, size) + positions + stack(config) + norm(width)


def _kimi(whole: Whole) -> int:
    """Kimi K2.5: a norm of a patch's width, a network as wide as the patches that are merged."""
    vision = whole.part("vision_config", "kimi_k25_vision", is_fixed=True)
    if vision.text("mm_projector_type", "patchmerger") != "patchmerger":
        raise UncountedError("vision_config.mm_projector_type: only 'patchmerger' is counted")
    merged = vision.integer("hidden_size")
    for size in vision.integers("merge_kernel_size", 2, least=1) or ():
        merged *= size
    return (
        moonvit(vision) + norm(whole.integer("projection_hidden_size")) + mlp(merged, merged, outputs=whole.hidden_size)
    )


def step(config: Config) -> int:
    """Step-3.7: two scales for each layer; two convolutions each halve the grid and double the width."""
    width = config.integer("hidden_size")
    layer = block(width, int(width * config.real("mlp_ratio", 4))) + 2 * width
    ends = embedding(config, bias=False) + patches(config) * width + norm(width)
    halved = convolution(width, 2 * width, 3, 3) + convolution(2 * width, 4 * width, 3, 3)
    return ends + config.integer("num_hidden_layers") * layer + halved


def _step_whole(whole: Whole) -> int:
    vision = whole.part("vision_config", "step3p5_vision", is_fixed=True)
    bias = whole.config.flag("projector_bias", default=False)
    return step(vision) + linear(4 * vision.integer("hidden_size"), whole.hidden_size, bias=bias)


def inkling2(config: Config) -> int:
    """Inkling 2: a class token with its position, a square table of positions, two scales for each layer, a merger."""
    width = config.integer("hidden_size")
    inner = config.optional("intermediate_size") or int(width * config.real("mlp_ratio", 4))
    pixels = config.integer("num_channels") * config.integer("patch_size") ** 2
    positions = (2 + config.integer("posemb_grid_size") ** 2) * width
    ends = linear(pixels, width, bias=False) + positions + norm(width)
    bias, text = config.flag("projector_bias", default=False), config.integer("text_hidden_size")
    merger = mlp(_merged(config), config.integer("projection_hidden_dim"), bias=bias, outputs=text)
    return ends + config.integer("num_hidden_layers") * (block(width, inner) + 2 * width) + merger


def ernie(config: Config) -> int:
    """ERNIE 4.5 VL: patches by a matrix, a norm after the stack."""
    width = config.integer("hidden_size")
    pixels = config.integer("in_channels") * config.integer("patch_size") ** 2
    layers = config.integer("depth") * block(width, config.integer("intermediate_size"))
    return linear(pixels, width, bias=False) + layers + norm(width)


def _ernie_whole(whole: Whole) -> int:
    """ERNIE 4.5 VL: a network that merges in the plane, one that merges in time, a matrix, a norm."""
    vision = whole.part("vision_config", "ernie4_5_vl_moe_vision", is_fixed=True)
    plane = _merged(vision)
    time = plane * vision.integer("temporal_merge_size")
    merged = mlp(plane, plane) + mlp(time, plane, outputs=plane) + 2 * norm(plane)
    return ernie(vision) + merged + linear(plane, whole.hidden_size) + norm(whole.hidden_size, bias=False)


def cosmos_edge(config: Config) -> int:
    """Cosmos 3 Edge: patches by a matrix, learned positions, a norm after the stack."""
    width = config.integer("hidden_size")
    pixels = config.integer("num_channels") * config.integer("patch_size") ** 2
    return linear(pixels, width) + config.integer("num_patches") * width + stack(config) + norm(width)


def _cosmos_edge_whole(whole: Whole) -> int:
    vision = whole.part("vision_config", "cosmos3_edge_vision", is_fixed=True)
    projected = mlp(_merged(vision), whole.integer("projector_hidden_size"), outputs=whole.hidden_size)
    return cosmos_edge(vision) + norm(vision.integer("hidden_size")) + projected


def _hunyuan_stack(config: Config) -> int:
    """Return patches, a table of positions with one more for a class token, and layers; heads may leave a rest of the width."""
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    positions = ((config.integer("max_image_size") // config.integer("patch_size")) ** 2 + 1) * width
    inner = heads * (config.optional("head_dim") or width // heads)
    layer = 2 * norm(width) + attention(width, inner=inner) + mlp(width, config.integer("intermediate_size"))
    return embedding(config, bias=True) + positions + config.integer("num_hidden_layers") * layer


def _hunyuan_whole(whole: Whole) -> int:
    """HunyuanOCR: two convolutions that merge and widen, a matrix to the text's width; marks of lines, begin, end, images."""
    vision = whole.part("vision_config", "hunyuan_vl_vision", is_fixed=True)
    width, size, text = vision.integer("hidden_size"), vision.integer("spatial_merge_size"), whole.hidden_size
    merged = convolution(width, 2 * width, size, size) + linear(2 * width, 4 * width) + linear(4 * width, text)
    return _hunyuan_stack(vision) + merged + 4 * width + 3 * text + norm(width + text, bias=False)


def hunyuan_v4(config: Config) -> int:
    """Hunyuan V4: the convolutions lead to the text's width; a mark of lines."""
    width, size, text = (config.integer(name) for name in ("hidden_size", "spatial_merge_size", "out_hidden_size"))
    merged = convolution(width, _merged(config), size, size) + linear(_merged(config), text)
    return _hunyuan_stack(config) + merged + text + norm(width, bias=False)


def _hunyuan_v4_whole(whole: Whole) -> int:
    return hunyuan_v4(whole.part("vision_config", "hy_v4_vl_vision", is_fixed=True))


def muse(config: Config) -> int:
    """Muse: patches over time by a matrix, a table of positions, norms before and after the stack."""
    width = config.integer("hidden_size")
    pixels = 3 * config.integer("patch_temporal") * config.integer("patch_size") ** 2
    positions = config.integer("pos_emb_height") * config.integer("pos_emb_width") * width
    return linear(pixels, width, bias=False) + positions + 2 * norm(width) + stack(config)


def _muse_glimmer(whole: Whole) -> int:
    """Muse: a network and a matrix, without offsets; `out_hidden_size` is of the patches that are merged."""
    inner = whole.integer("projector_hidden_size")
    projected = mlp(whole.integer("out_hidden_size"), inner, bias=False, outputs=inner)
    return (
        muse(whole.part("vision_config", f"{whole.model_type}_vision", is_fixed=True))
        + projected
        + linear(inner, whole.hidden_size, bias=False)
    )


def muse_audio(config: Config) -> int:
    """Muse Spark: a pyramid over the waveform; each level joins samples and has convolutions for each channel and networks."""
    kernel, ratio = config.integer("conv_kernel_size"), config.real("mlp_ratio", 4)
    levels = config.integer("num_hidden_layers")
    widths = config.integers("hidden_sizes", levels, least=1) or (1,)
    joined = config.integers("patch_sizes", levels, least=1) or ()
    depths = config.integers("depths", levels) or ()
    count, text = 0, config.integer("out_hidden_size")
    for source, width, samples, depth in zip((1, *widths), widths, joined, depths, strict=False):
        layer = convolution(width, width, kernel, groups=width) + width + mlp(width, int(width * ratio))
        count += linear(source * samples, width) + width + depth * layer
    return count + widths[-1] + linear(widths[-1], text) + text


def _muse_spark(whole: Whole) -> int:
    return _muse_glimmer(whole) + muse_audio(whole.part("audio_config", "muse_spark_audio", is_fixed=True))


def paddle(config: Config) -> int:
    """PaddleOCR-VL: SigLIP without its head."""
    width = config.integer("hidden_size")
    return embedding(config, bias=True) + patches(config) * width + stack(config) + norm(width)


def _paddle_whole(whole: Whole) -> int:
    vision = whole.part("vision_config", "paddleocr_vl_vision", is_fixed=True)
    merged = _merged(vision)
    return paddle(vision) + norm(vision.integer("hidden_size")) + mlp(merged, merged, outputs=whole.hidden_size)


def video_llama(config: Config) -> int:
    """VideoLLaMA 3: SigLIP without positions and head."""
    return embedding(config, bias=True) + stack(config) + norm(config.integer("hidden_size"))


def _video_llama_whole(whole: Whole) -> int:
    vision, text = whole.part("vision_config", "video_llama_3_vision", is_fixed=True), whole.hidden_size
    return video_llama(vision) + mlp(vision.integer("hidden_size"), text, outputs=text)


KINDS: Mapping[str, TowerCount] = {
    "cosmos3_edge_vision": cosmos_edge,
    "ernie4_5_vl_moe_vision": ernie,
    "hy_v4_vl_vision": hunyuan_v4,
    "inkling2_vision": inkling2,
    "kimi_k25_vision": moonvit,
    "minimax_m3_vl_vision": minimax,
    "muse_glimmer_vision": muse,
    "muse_spark_audio": muse_audio,
    "muse_spark_vision": muse,
    "paddleocr_vl_vision": paddle,
    "step3p5_vision": step,
    "video_llama_3_vision": video_llama,
}


def _inkling2_whole(whole: Whole) -> int:
    return inkling2(whole.part("vision_config", "inkling2_vision", is_fixed=True))


WHOLES: Mapping[str, WholeCount] = {
    "cosmos3_edge": _cosmos_edge_whole,
    "ernie4_5_vl_moe": _ernie_whole,
    "hunyuan_vl": _hunyuan_whole,
    "hy_v4_vl": _hunyuan_v4_whole,
    "inkling2": _inkling2_whole,
    "inkling2_loop": _inkling2_whole,
    "kimi_k25": _kimi,
    "minimax_m3_vl": _minimax_whole,
    "muse_glimmer": _muse_glimmer,
    "muse_spark": _muse_spark,
    "paddleocr_vl": _paddle_whole,
    "step3p7": _step_whole,
    "video_llama_3": _video_llama_whole,
}
