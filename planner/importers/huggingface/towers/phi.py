"""The towers of Phi-4 multimodal: pictures, and sound by a conformer; their files describe the text at the top."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.clip import plain, pooling
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def phi4_vision(config: Config) -> int:
    """SigLIP, always with its head."""
    return plain(config) + pooling(config)


def _halved(config: Config, hidden: int) -> int:
    """Return the parameters of the convolutions that halve time and frequencies, and of the matrix after them."""
    channels, frequencies = config.integer("nemo_conv_channels"), config.integer("input_size")
    times = config.integer("time_reduction").bit_length() - 1
    for _ in range(times):
        frequencies = (frequencies + 1) // 2
    again = convolution(channels, channels, 3, 3, groups=channels) + linear(channels, channels)
    left = config.integer("nemo_final_size", frequencies)
    return convolution(1, channels, 3, 3) + (times - 1) * again + linear(channels * left, hidden)


def phi4_audio(config: Config) -> int:
    """Phi-4 multimodal's sound: in each layer attention and a convolution between two networks; one bias of distance for all layers."""
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    network = norm(hidden) + mlp(hidden, config.integer("intermediate_size"), gated=True)
    outer, deep = config.integer("ext_pw_out_channel"), hidden * config.integer("depthwise_multiplier")
    gates = linear(hidden, 2 * outer) + 2 * outer
    separable = convolution(hidden, deep, config.integer("kernel_size"), groups=hidden)
    separable += linear(deep, config.integer("depthwise_separable_out_channel"))
    convolved = norm(hidden) + gates + separable + linear(hidden, outer)
    layer = 2 * network + attention(hidden, inner=hidden // heads * heads) + convolved + 2 * norm(hidden)
    distances = config.integer("bias_max_distance") * (1 if config.flag("bias_symmetric", default=False) else 2)
    return _halved(config, hidden) + distances * heads + config.integer("num_blocks") * layer


KINDS: Mapping[str, TowerCount] = {"phi4_multimodal_audio": phi4_audio, "phi4_multimodal_vision": phi4_vision}


def _phi4(whole: Whole) -> int:
    """Phi-4 multimodal: a network after the pictures, two after the sound: one for sound alone, one for sound with pictures."""
    text = whole.hidden_size
    width = whole.part("vision_config", "phi4_multimodal_vision").integer("hidden_size")
    audio = whole.part("audio_config", "phi4_multimodal_audio")
    heard = audio.integer("hidden_size") * audio.integer("downsample_rate")
    # The ends of a line and of a picture are elements of the picture's width.
    seen = mlp(width, text, outputs=text) + 2 * width
    towers = whole.own("vision_config", "phi4_multimodal_vision") + whole.own("audio_config", "phi4_multimodal_audio")
    return towers + seen + 2 * mlp(heard, text, outputs=text)


WHOLES: Mapping[str, WholeCount] = {"phi4_multimodal": _phi4}
