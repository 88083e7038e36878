"""Towers of Gemma 3n and 4: pictures of any shape, and sound by convolutions among attention."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.blip import COLOURS
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def gemma4_vision(config: Config) -> int:
    """Gemma 4's pictures: learned positions along each side, norms around both halves of a layer and in attention."""
    hidden, head = config.integer("hidden_size"), config.integer("head_dim")
    queries, keys = config.integer("num_attention_heads") * head, config.integer("num_key_value_heads") * head
    layer = 4 * norm(hidden, bias=False) + attention(hidden, inner=queries, kv=keys, bias=False) + 2 * head
    layer += mlp(hidden, config.integer("intermediate_size"), gated=True, bias=False)
    patch = linear(COLOURS * config.integer("patch_size") ** 2, hidden, bias=False)
    positions = 2 * config.integer("position_embedding_size") * hidden
    return patch + positions + config.integer("num_hidden_layers") * layer


def _conformer(hidden: int, kernel: int, head: int) -> int:
    """Return the parameters of a layer for sound: attention and a convolution between two feed-forward networks."""
    network = mlp(hidden, 4 * hidden, bias=False) + 2 * norm(hidden, bias=False)
    relative = linear(hidden, hidden, bias=False)
    attended = attention(hidden, bias=False) + relative + head + 2 * norm(hidden, bias=False)
    convolved = linear(hidden, 2 * hidden, bias=False) + linear(hidden, hidden, bias=False)
    convolved += convolution(hidden, hidden, kernel, bias=False, groups=hidden) + 2 * norm(hidden, bias=False)
    return 2 * network + attended + convolved + norm(hidden, bias=False)


def gemma4_audio(config: Config) -> int:
    """Gemma 4's sound: two convolutions that halve time and frequencies, the layers, a matrix."""
    hidden = config.integer("hidden_size")
    first, second = config.integers("subsampling_conv_channels", 2, least=1) or (1, 1)
    halved = convolution(1, first, 3, 3, bias=False) + convolution(first, second, 3, 3, bias=False)
    halved += norm(first, bias=False) + norm(second, bias=False)
    # The class takes the frequencies that are left for a quarter of the first convolution's channels.
    entered = linear(first // 4 * second, hidden, bias=False)
    layer = _conformer(hidden, config.integer("conv_kernel_size"), hidden // config.integer("num_attention_heads"))
    out = linear(hidden, config.integer("output_proj_dims"))
    return halved + entered + config.integer("num_hidden_layers") * layer + out


def _pairs(config: Config, field: str) -> list[tuple[int, int]]:
    """Return a pair of positive whole numbers for each of the two convolutions."""
    values = config.listed(field, 2) or ()
    pairs = [tuple(value) for value in values if isinstance(value, list) and len(value) == 2]  # a pair
    if len(pairs) != len(values) or any(type(size) is not int or size < 1 for pair in pairs for size in pair):
        config.fault(field, "is not a pair of positive whole numbers for each convolution")
        return []
    return pairs


def gemma3n_audio(config: Config) -> int:
    """Gemma 3n's sound."""
    hidden, frequencies = config.integer("hidden_size"), config.integer("input_feat_size")
    entered, channels = 0, 1
    kernels, strides = _pairs(config, "sscp_conv_kernel_size"), _pairs(config, "sscp_conv_stride_size")
    made = config.integers("sscp_conv_channel_size", 2, least=1) or ()
    for kernel, stride, outputs in zip(kernels, strides, made, strict=False):
        entered += convolution(channels, outputs, *kernel, bias=False) + norm(outputs, bias=False)
        frequencies, channels = (frequencies + 2 - kernel[-1]) // stride[-1] + 1, outputs
    if frequencies < 1:
        config.fault("input_feat_size", "leaves no frequencies after the convolutions")
    entered += linear(channels * frequencies, hidden, bias=False)
    head = hidden // config.integer("conf_num_attention_heads")
    layer = _conformer(hidden, config.integer("conf_conv_kernel_size"), head)
    return entered + config.integer("conf_num_hidden_layers") * layer


KINDS: Mapping[str, TowerCount] = {
    "gemma3n_audio": gemma3n_audio,
    "gemma4_audio": gemma4_audio,
    "gemma4_vision": gemma4_vision,
}


def _gemma4(whole: Whole) -> int:
    """Gemma 4: a matrix after each of the towers that the file describes; a model may have none."""
    found, text = 0, whole.hidden_size
    if whole.has("vision_config"):
        width = whole.part("vision_config", "gemma4_vision").integer("hidden_size")
        found += whole.tower("vision_config", "gemma4_vision") + linear(width, text, bias=False)
    if whole.has("audio_config"):
        width = whole.part("audio_config", "gemma4_audio").integer("output_proj_dims")
        found += whole.tower("audio_config", "gemma4_audio") + linear(width, text, bias=False)
    return found


def _gemma4_unified(whole: Whole) -> int:
    """Gemma 4 without towers: patches and pieces of a waveform are led to the text by matrices."""
    found, text = 0, whole.hidden_size
    if whole.has("vision_config"):
        part = whole.part("vision_config", "gemma4_unified_vision")
        width, wide = part.integer("mm_embed_dim"), part.integer("output_proj_dims")
        patch = COLOURS * (part.integer("patch_size") * part.integer("pooling_kernel_size")) ** 2
        embedded = norm(patch) + linear(patch, width) + 2 * norm(width) + 2 * part.integer("mm_posemb_size") * width
        found += embedded + linear(wide, text, bias=False)
    if whole.has("audio_config"):
        part = whole.part("audio_config", "gemma4_unified_audio")
        found += linear(part.integer("audio_embed_dim"), text, bias=False)
    return found


def _gemma3n(whole: Whole) -> int:
    """Gemma 3n: each tower has words of its own, two norms and a matrix."""
    found = 0
    for field, usual in (("vision_config", "gemma3n_vision"), ("audio_config", "gemma3n_audio")):
        part = whole.part(field, usual)
        width = part.integer("hidden_size")
        words = part.integer("vocab_size") * width + 2 * norm(width, bias=False)
        found += whole.tower(field, usual) + words + linear(width, whole.hidden_size, bias=False)
    return found


WHOLES: Mapping[str, WholeCount] = {"gemma3n": _gemma3n, "gemma4": _gemma4, "gemma4_unified": _gemma4_unified}
