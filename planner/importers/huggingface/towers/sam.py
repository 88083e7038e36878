"""Towers of SAM's kind: attention in windows with relative positions, whose size is in the file; and the models that have one."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.clip import patches, stack
from planner.importers.huggingface.towers.counts import convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def _positions(config: Config) -> int:
    """Return the parameters of all layers' relative positions, along rows and columns of a window or of the picture."""
    layers, window = config.integer("num_hidden_layers"), config.integer("window_size", least=0)
    side = config.integer("image_size") // config.integer("patch_size")
    everywhere = {index for index in config.integers("global_attn_indexes") or () if index < layers}
    whole = layers if window == 0 else len(everywhere)
    spans = whole * (2 * side - 1) + (layers - whole) * (2 * window - 1)
    return 2 * spans * (config.integer("hidden_size") // config.integer("num_attention_heads"))


def _neck(config: Config) -> int:
    """Return the parameters of the two convolutions after the stack, each with a norm."""
    hidden, out = config.integer("hidden_size"), config.integer("output_channels")
    return convolution(hidden, out, 1, 1, bias=False) + convolution(out, out, 3, 3, bias=False) + 2 * norm(out)


def sam(config: Config) -> int:
    """SAM: the stack and its neck."""
    hidden, size = config.integer("hidden_size"), config.integer("patch_size")
    inner = config.optional("mlp_dim") or int(hidden * config.real("mlp_ratio", 4))
    layer = linear(hidden, 3 * hidden, bias=config.flag("qkv_bias", default=True)) + linear(hidden, hidden)
    layer += mlp(hidden, inner) + 2 * norm(hidden)
    learned = patches(config) * hidden if config.flag("use_abs_pos", default=True) else 0
    relative = _positions(config) if config.flag("use_rel_pos", default=True) else 0
    embedded = convolution(config.integer("num_channels"), hidden, size, size)
    return embedded + learned + config.integer("num_hidden_layers") * layer + relative + _neck(config)


def sam_downsampled(config: Config) -> int:
    """SAM, and two convolutions that halve the picture each."""
    first, second = config.integers("downsample_channels", 2, least=1) or (1, 1)
    halved = convolution(config.integer("output_channels"), first, 3, 3, bias=False)
    return sam(config) + halved + convolution(first, second, 3, 3, bias=False)


def clip_without_patches(config: Config) -> int:
    """CLIP over patches of another tower: a class token, positions, a norm before the stack and none after it."""
    hidden = config.integer("hidden_size")
    return (patches(config) + 2) * hidden + norm(hidden) + stack(config)


def queried(config: Config) -> int:
    """DeepSeek-OCR 2's encoder: a text model's layers, over patches of another tower and queries."""
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    head = config.optional("head_dim") or hidden // heads
    keys = (config.optional("num_key_value_heads") or heads) * head
    layer = linear(hidden, heads * head) + 2 * linear(hidden, keys) + linear(heads * head, hidden, bias=False)
    layer += mlp(hidden, config.integer("intermediate_size"), gated=True, bias=False) + 2 * norm(hidden, bias=False)
    return config.integer("num_hidden_layers") * layer + norm(hidden, bias=False)


KINDS: Mapping[str, TowerCount] = {
    "deepseek_ocr2_encoder": queried,
    "deepseek_ocr2_sam_vision_model": sam_downsampled,
    "got_ocr2_vision": sam,
    "pp_chart2table_vision": sam,
    "sam_vision_model": sam,
    "unlimited_ocr_sam_vision_model": sam_downsampled,
    "unlimited_ocr_vision_encoder": clip_without_patches,
}


def _got_ocr2(usual: str) -> WholeCount:
    """GOT-OCR 2: two convolutions to the text's width, and a matrix."""

    def read(whole: Whole) -> int:
        out, text = whole.part("vision_config", usual).integer("output_channels"), whole.hidden_size
        halved = convolution(out, 2 * out, 3, 3, bias=False) + convolution(2 * out, text, 3, 3, bias=False)
        return whole.own("vision_config", usual) + halved + linear(text, text)

    return read


def _deepseek_vl_hybrid(whole: Whole) -> int:
    """DeepSeek-VL's larger models: SAM beside SigLIP, with a neck for the output of its first layer of whole attention too."""
    fine = whole.part("high_res_vision_config", "sam_vision_model")
    out, half = fine.integer("output_channels"), whole.hidden_size // 2
    halved = convolution(out, 2 * out, 3, 3, bias=False) + convolution(2 * out, 4 * out, 3, 3, bias=False)
    width = whole.part("vision_config", "siglip_vision_model").integer("hidden_size")
    aligner = linear(width, half) + linear(4 * out, half) + linear(whole.hidden_size, whole.hidden_size)
    share = 1
    seen = whole.tower("high_res_vision_config", "sam_vision_model") + _neck(fine) + halved + share
    return seen + whole.tower("vision_config", "siglip_vision_model") + aligner


def _unlimited_ocr(whole: Whole) -> int:
    """Unlimited-OCR: CLIP over SAM's output; both lead to the text, which marks the ends of lines and of views."""
    seen = whole.within("vision_config", "unlimited_ocr_vision")
    towers = seen.own("sam_config", "unlimited_ocr_sam_vision_model")
    towers += seen.own("encoder_config", "unlimited_ocr_vision_encoder")
    channels = seen.part("sam_config", "unlimited_ocr_sam_vision_model").integers("downsample_channels", 2) or (1,)
    width = channels[-1] + seen.part("encoder_config", "unlimited_ocr_vision_encoder").integer("hidden_size")
    return towers + linear(width, whole.hidden_size) + 2 * whole.hidden_size


QUERIES = 144 + 256
"""Learned queries of DeepSeek-OCR 2, for pictures of 768 and of 1,024 pixels a side."""


def _deepseek_ocr2(whole: Whole) -> int:
    """DeepSeek-OCR 2: queries gather what the encoder saw; an element of the text's width marks the end of a view."""
    seen = whole.within("vision_config", "deepseek_ocr2_vision")
    towers = seen.own("sam_config", "deepseek_ocr2_sam_vision_model") + seen.own(
        "encoder_config", "deepseek_ocr2_encoder"
    )
    width = seen.part("encoder_config", "deepseek_ocr2_encoder").integer("hidden_size")
    return towers + QUERIES * width + linear(width, whole.hidden_size) + whole.hidden_size


WHOLES: Mapping[str, WholeCount] = {
    "deepseek_ocr2": _deepseek_ocr2,
    "deepseek_vl_hybrid": _deepseek_vl_hybrid,
    "got_ocr2": _got_ocr2("got_ocr2_vision"),
    "pp_chart2table": _got_ocr2("pp_chart2table_vision"),
    "unlimited_ocr": _unlimited_ocr,
}
