"""Towers of speech: a stack of layers over spectrograms that convolutions shorten, and the projectors behind them."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import attention, block, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def _shortened(config: Config) -> int:
    """Return the parameters of two convolutions over time."""
    bins, width = config.integer("num_mel_bins"), config.integer("hidden_size")
    return convolution(bins, width, 3) + convolution(width, width, 3)


def _layers(config: Config) -> int:
    """Return the parameters of plain layers whose keys have no offsets."""
    width = config.integer("hidden_size")
    return config.integer("num_hidden_layers") * (block(width, config.integer("intermediate_size")) - width)


def whisper(config: Config) -> int:
    """Whisper's encoder, with its table of positions."""
    width = config.integer("hidden_size")
    return _shortened(config) + config.integer("max_source_positions") * width + _layers(config) + norm(width)


def qwen2_5_omni(config: Config) -> int:
    """Qwen2.5-Omni: positions are computed; marks of begin and end, a matrix to the text's width."""
    width, text = config.integer("hidden_size"), config.integer("output_dim")
    return _shortened(config) + 2 * text + _layers(config) + norm(width) + linear(width, text)


def shrunk(config: Config, bins: int) -> int:
    """Return the elements of a spectrogram's column of `bins` behind three convolutions that each halve it."""
    return config.integer("downsample_hidden_size") * (-(-bins // 8))


def stem(config: Config, flattened: int, width: int) -> int:
    """Return the parameters of the three convolutions and of a matrix from the `flattened` column to the layers' width."""
    channels = config.integer("downsample_hidden_size")
    halved = convolution(1, channels, 3, 3) + 2 * convolution(channels, channels, 3, 3)
    return halved + linear(flattened, width, bias=False)


def qwen3_asr(config: Config) -> int:
    """Qwen3-ASR: three convolutions over the spectrogram's plane; positions are computed."""
    width = config.integer("hidden_size")
    layers = config.integer("num_hidden_layers") * block(width, config.integer("intermediate_size"))
    return stem(config, shrunk(config, config.integer("num_mel_bins")), width) + layers + norm(width)


def _to_text(config: Config) -> int:
    """Return the parameters of the two matrices that lead to the text's width."""
    width = config.integer("hidden_size")
    return mlp(width, width, outputs=config.integer("output_dim"))


def qwen3_omni(config: Config) -> int:
    """Qwen3-Omni: the tower holds its projector."""
    return qwen3_asr(config) + _to_text(config)


def _heads(config: Config, heads: int) -> int:
    """Return the elements of all heads; the width may leave a rest."""
    return heads * (
        config.optional("head_dim") or config.integer("hidden_size") // config.integer("num_attention_heads")
    )


def glmasr(config: Config) -> int:
    """GLM-ASR: computed positions, so key heads may be fewer; keys have no offsets."""
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    inner, kv = _heads(config, heads), _heads(config, config.optional("num_key_value_heads") or heads)
    layer = (
        2 * norm(width) + attention(width, inner=inner, kv=kv) - kv + mlp(width, config.integer("intermediate_size"))
    )
    return _shortened(config) + config.integer("num_hidden_layers") * layer + norm(width)


def voxtral_realtime(config: Config) -> int:
    """Voxtral Realtime: gated networks, offsets only on what leaves them and on all but keys, norms without offsets."""
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    inner = _heads(config, heads)
    network = mlp(width, config.integer("intermediate_size"), gated=True, bias=False) + width
    layer = 2 * norm(width, bias=False) + attention(width, inner=inner) - inner + network
    return _shortened(config) + config.integer("num_hidden_layers") * layer + norm(width, bias=False)


KINDS: Mapping[str, TowerCount] = {
    "audioflamingo3_encoder": whisper,
    "glmasr_encoder": glmasr,
    "moss_transcribe_diarize_audio": whisper,
    "qwen2_audio_encoder": whisper,
    "qwen2_5_omni_audio_encoder": qwen2_5_omni,
    "qwen3_asr_audio_encoder": qwen3_asr,
    "qwen3_asr_encoder": qwen3_asr,
    "qwen3_omni_moe_audio_encoder": qwen3_omni,
    "voxtral_encoder": whisper,
    "voxtral_realtime_encoder": voxtral_realtime,
}


def _flamingo(whole: Whole) -> int:
    """Audio Flamingo 3: two matrices."""
    heard = whole.tower("audio_config", "audioflamingo3_encoder")
    width = whole.part("audio_config", "audioflamingo3_encoder").integer("hidden_size")
    bias, text = whole.config.flag("projector_bias", default=True), whole.hidden_size
    return heard + mlp(width, text, bias=bias, outputs=text)


def _qwen2_audio(whole: Whole) -> int:
    """Qwen2-Audio: one matrix."""
    heard = whole.tower("audio_config", "qwen2_audio_encoder")
    return heard + linear(whole.part("audio_config", "qwen2_audio_encoder").integer("hidden_size"), whole.hidden_size)


def _qwen3_asr(whole: Whole) -> int:
    """Qwen3-ASR: the projector's width is that of the tower's configuration. First files keep it in a part of their own."""
    if whole.config.given("thinker_config"):
        whole = whole.within("thinker_config", "qwen3_asr")
        whole.has("text_config")
    return whole.tower("audio_config", "qwen3_asr_encoder") + _to_text(whole.part("audio_config", "qwen3_asr_encoder"))


def _voxtral(whole: Whole) -> int:
    """Voxtral: positions are joined until they are as wide as the layers' networks; two matrices without offsets."""
    heard, text = whole.tower("audio_config", "voxtral_encoder"), whole.hidden_size
    joined = whole.part("audio_config", "voxtral_encoder").integer("intermediate_size")
    return heard + mlp(joined, text, bias=False, outputs=text)


def _voxtral_realtime(whole: Whole) -> int:
    heard, text = whole.tower("audio_config", "voxtral_realtime_encoder"), whole.hidden_size
    width = whole.part("audio_config", "voxtral_realtime_encoder").integer("hidden_size")
    return heard + mlp(width * whole.integer("downsample_factor"), text, bias=False, outputs=text)


def _glmasr(whole: Whole) -> int:
    heard, text = whole.tower("audio_config", "glmasr_encoder"), whole.hidden_size
    joined = whole.part("audio_config", "glmasr_encoder").integer("intermediate_size")
    return heard + mlp(joined, 2 * text, outputs=text)


def _moss(whole: Whole) -> int:
    """MOSS: neighbouring positions are joined; two matrices and a norm."""
    audio, text = whole.part("audio_config", "moss_transcribe_diarize_audio", is_fixed=True), whole.hidden_size
    joined = audio.integer("hidden_size") * whole.integer("audio_merge_size")
    bias = whole.config.flag("projector_bias", default=True)
    return whisper(audio) + mlp(joined, text, bias=bias, outputs=text) + norm(text)


WHOLES: Mapping[str, WholeCount] = {
    "audioflamingo3": _flamingo,
    "glmasr": _glmasr,
    "moss_transcribe_diarize": _moss,
    "musicflamingo": _flamingo,
    "qwen2_audio": _qwen2_audio,
    "qwen3_asr": _qwen3_asr,
    "voxtral": _voxtral,
    "voxtral_realtime": _voxtral_realtime,
}
