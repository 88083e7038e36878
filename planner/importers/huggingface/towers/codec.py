"""Towers that turn sound or pictures into codes by convolutions, and what turns codes into sound again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def _listed(config: Config, field: str) -> Sequence[int]:
    return config.integers(field, least=1) or (1,)


# ---- VibeVoice -------------------------------------------------------------------------------------------------------


def _convnext(config: Config, width: int) -> int:
    """Return the parameters of a ConvNeXt layer: two norms and two scales, a convolution for each channel, a network."""
    kernel = config.integer("kernel_size")
    return (
        4 * width
        + convolution(width, width, kernel, groups=width)
        + mlp(width, config.integer("ffn_expansion") * width)
    )


def vibevoice_encoder(config: Config) -> int:
    """VibeVoice's encoder: each level halves the time by its ratio and doubles the channels."""
    width, kernel = config.integer("num_filters"), config.integer("kernel_size")
    depths, ratios = _listed(config, "depths"), _listed(config, "downsampling_ratios")
    count = convolution(config.integer("channels"), width, kernel) + depths[0] * _convnext(config, width)
    for ratio, depth in zip(ratios, depths[1:], strict=False):
        count += convolution(width, 2 * width, 2 * ratio)
        width *= 2
        count += depth * _convnext(config, width)
    return count + convolution(width, config.integer("hidden_size"), kernel)


def _vibevoice_decoder(config: Config) -> int:
    filters, kernel = config.integer("num_filters"), config.integer("kernel_size")
    depths, ratios = _listed(config, "depths")[::-1], _listed(config, "downsampling_ratios")[::-1]
    width = filters * 2 ** (len(depths) - 1)
    count = convolution(config.integer("hidden_size"), width, kernel) + depths[0] * _convnext(config, width)
    for ratio, depth in zip(ratios, depths[1:], strict=False):
        count += convolution(width, width // 2, 2 * ratio)
        width //= 2
        count += depth * _convnext(config, width)
    return count + convolution(filters, config.integer("channels"), kernel)


def vibevoice(config: Config) -> int:
    """VibeVoice's acoustic tokenizer: encoder and decoder."""
    return vibevoice_encoder(config) + _vibevoice_decoder(config)


def _diffusion(config: Config, width: int, latent: int) -> int:
    """Return the parameters of VibeVoice's diffusion head, which is as wide as the text."""
    inputs = linear(latent, width, bias=False) + linear(width, width, bias=False)
    time = mlp(config.integer("frequency_embedding_size"), width, bias=False, outputs=width)
    bias = config.flag("mlp_bias", default=False)
    network = mlp(width, config.integer("intermediate_size"), gated=True, bias=bias)
    layer = network + norm(width, bias=False) + linear(width, 3 * width, bias=False)
    last = linear(width, 2 * width, bias=False) + linear(width, latent, bias=False)
    return inputs + time + config.integer("num_hidden_layers") * layer + last


def _projector(inputs: int, text: int) -> int:
    """Return the parameters of two matrices with a norm between them."""
    return linear(inputs, text) + norm(text, bias=False) + linear(text, text)


def _vibevoice_whole(whole: Whole) -> int:
    """VibeVoice: two tokenizers with projectors, the scale and the offset of codes, a diffusion head."""
    text, encoder = whole.hidden_size, "vibevoice_acoustic_tokenizer_encoder"
    towers = whole.tower("audio_config", "vibevoice_acoustic_tokenizer") + whole.tower("semantic_model_config", encoder)
    latent = whole.part("audio_config", "vibevoice_acoustic_tokenizer").integer("hidden_size")
    meaning = whole.part("semantic_model_config", encoder).integer("hidden_size")
    head = _diffusion(whole.part("diffusion_head_config", "vibevoice_diffusion", is_fixed=True), text, latent)
    return towers + _projector(latent, text) + _projector(meaning, text) + head + 2


def _vibevoice_asr(whole: Whole) -> int:
    """VibeVoice-ASR: two encoders with projectors."""
    encoder, count = "vibevoice_acoustic_tokenizer_encoder", 0
    for field in ("acoustic_tokenizer_encoder_config", "semantic_tokenizer_encoder_config"):
        width = whole.part(field, encoder).integer("hidden_size")
        count += whole.tower(field, encoder) + _projector(width, whole.hidden_size)
    return count


# ---- WavTokenizer ----------------------------------------------------------------------------------------------------


def wavtokenizer(config: Config) -> int:
    """WavTokenizer's encoder: each level has residual networks and a convolution; an LSTM. The codebook is no parameter."""
    # A weight norm keeps a length for each output channel beside the weights, a norm over time a weight and an offset.
    extra = 1 if config.text("norm_type", "weight_norm") == "weight_norm" else 2

    def conv(inputs: int, outputs: int, kernel: int) -> int:
        return convolution(inputs, outputs, kernel) + extra * outputs

    width = config.integer("num_filters")
    count = conv(config.integer("audio_channels"), width, config.integer("kernel_size"))
    for ratio in reversed(_listed(config, "upsampling_ratios")):
        inner = width // config.integer("compress")
        residual = conv(width, inner, config.integer("residual_kernel_size")) + conv(inner, width, 1)
        shortcut = conv(width, width, 1) if config.flag("use_conv_shortcut", default=True) else 0
        count += config.integer("num_residual_layers") * (residual + shortcut) + conv(width, 2 * width, 2 * ratio)
        width *= 2
    # Four gates, each with a matrix and an offset for the input and for the state.
    memory = config.integer("num_lstm_layers") * 8 * linear(width, width)
    return count + memory + conv(width, config.integer("hidden_size"), config.integer("last_kernel_size"))


# ---- pictures --------------------------------------------------------------------------------------------------------


def _residual(inputs: int, outputs: int) -> int:
    """Return the parameters of two convolutions with their norms, and of a matrix past them where the width changes."""
    past = linear(inputs, outputs) if inputs != outputs else 0
    both = convolution(inputs, outputs, 3, 3) + convolution(outputs, outputs, 3, 3)
    return norm(inputs) + norm(outputs) + both + past


def _looking(width: int) -> int:
    """Return the parameters of attention over a picture's plane: a norm and four matrices."""
    return norm(width) + 4 * linear(width, width)


def apertus(config: Config) -> int:
    """Apertus 1.5's tokenizer of pictures: levels of residual networks, with attention at the resolutions that say so."""
    base, multipliers = config.integer("base_channels"), _listed(config, "channel_multiplier")
    looking = config.integers("attn_resolutions") or ()
    width, blocks = base, config.integer("num_res_blocks")
    count = convolution(config.integer("in_channels"), base, 3, 3)
    for level, multiplier in enumerate(multipliers):
        wide = base * multiplier
        count += _residual(width, wide) + (blocks - 1) * _residual(wide, wide)
        count += blocks * _looking(wide) if config.integer("resolution") // 2**level in looking else 0
        count += convolution(wide, wide, 3, 3) if level < len(multipliers) - 1 else 0
        width = wide
    latent, code = config.integer("latent_channels"), config.integer("embed_dim")
    middle = 2 * _residual(width, width) + _looking(width)
    codes = linear(code, config.integer("codebook_size"), bias=False) + linear(latent, code)
    return count + middle + norm(width) + convolution(width, latent, 3, 3) + codes


def _apertus_whole(whole: Whole) -> int:
    """Apertus 1.5: both become tokens, so no projector leads to the text."""
    seen = apertus(whole.part("vision_config", "apertus1p5_vision_tokenizer", is_fixed=True))
    return seen + whole.tower("audio_config", "wavtokenizer_encoder")


KINDS: Mapping[str, TowerCount] = {
    "apertus1p5_vision_tokenizer": apertus,
    "vibevoice_acoustic_tokenizer": vibevoice,
    "vibevoice_acoustic_tokenizer_encoder": vibevoice_encoder,
    "wavtokenizer_encoder": wavtokenizer,
}

WHOLES: Mapping[str, WholeCount] = {
    "apertus1p5": _apertus_whole,
    "vibevoice": _vibevoice_whole,
    "vibevoice_asr": _vibevoice_asr,
}
