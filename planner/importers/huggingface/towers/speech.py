"""Towers of speech that are not Whisper's kind: Conformers, memories by convolution, speakers told apart."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.counts import attention, block, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount

# ---- Conformers ------------------------------------------------------------------------------------------------------


def parakeet(config: Config) -> int:
    """Parakeet's encoder: a Conformer with relative positions; `attention_bias` stands for its networks too."""
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    inner = heads * (config.optional("head_dim") or width // heads)
    kernel, channels = config.integer("subsampling_conv_kernel_size"), config.integer("subsampling_conv_channels")
    halvings = int(log2(config.integer("subsampling_factor")))
    rest = config.integer("num_mel_bins") // config.integer("subsampling_conv_stride") ** halvings
    each = convolution(channels, channels, kernel, kernel, groups=channels) + linear(channels, channels)
    start = convolution(1, channels, kernel, kernel) + (halvings - 1) * each + linear(channels * rest, width)
    bias, turned = config.flag("attention_bias", default=True), config.flag("convolution_bias", default=True)
    # Matrix of the relative positions, and what is added to queries for content and for position.
    relative = linear(width, inner, bias=False) + 2 * inner
    mixed = convolution(width, width, config.integer("conv_kernel_size"), bias=turned, groups=width)
    mixed += linear(width, 2 * width, bias=turned) + linear(width, width, bias=turned) + norm(width)
    networks = 2 * mlp(width, config.integer("intermediate_size"), bias=bias)
    layer = 5 * norm(width) + networks + attention(width, inner=inner, bias=bias) + relative + mixed
    return start + config.integer("num_hidden_layers") * layer


def granite(config: Config) -> int:
    """Granite Speech's encoder: a Conformer with a table of relative positions, and letters guessed half way."""
    width, outputs, head = (config.integer(name) for name in ("hidden_dim", "output_dim", "dim_head"))
    inner, wide = head * config.integer("num_heads"), width * config.integer("conv_expansion_factor")
    positions = (2 * config.integer("max_pos_emb") + 1) * head
    attend = attention(width, inner=inner, bias=False) + width + positions
    mixed = linear(width, 2 * wide) + norm(wide) + linear(wide, width)
    mixed += convolution(wide, wide, config.integer("conv_kernel_size"), bias=False, groups=wide)
    networks = 2 * mlp(width, width * config.integer("feedforward_mult"))
    layer = 5 * norm(width) + networks + attend + mixed
    ends = linear(config.integer("input_dim"), width) + linear(width, outputs) + linear(outputs, width)
    return ends + config.integer("num_layers") * layer


def _granite_whole(whole: Whole) -> int:
    """Granite Speech: a Q-Former with a few queries for each window, a matrix."""
    encoder = whole.part("encoder_config", f"{whole.model_type}_encoder", is_fixed=True)
    projector = whole.tower("projector_config", "blip_2_qformer")
    width = whole.part("projector_config", "blip_2_qformer").integer("hidden_size")
    queries = whole.integer("window_size") // whole.integer("downsample_rate")
    return granite(encoder) + projector + queries * width + linear(width, whole.hidden_size)


# ---- others ----------------------------------------------------------------------------------------------------------


def fun_asr(config: Config) -> int:
    """Fun-ASR's encoder: a memory by convolution beside attention; the first layer takes stacked frames."""
    width, layers = config.integer("hidden_size"), config.integer("num_hidden_layers")
    frames = config.integer("num_mel_bins") * config.integer("num_stacked_frames")
    memory = convolution(width, width, config.integer("fsmn_kernel_size"), bias=False, groups=width)
    layer = block(width, config.integer("intermediate_size")) + memory
    first = 3 * (linear(frames, width) - linear(width, width)) + norm(frames) - norm(width)
    timing = config.optional("num_timestamp_prediction_layers", 0, least=0) or 0
    # Where the two tasks of the stack end; both ends may be the same layer, or one may not be there.
    ends = 1 + (0 < timing < layers)
    return layers * layer + first + ends * norm(width)


def _fun_asr_whole(whole: Whole) -> int:
    """Fun-ASR: two matrices and plain layers lead to the text, in a width of their own."""
    heard = whole.tower("audio_config", "fun_asr_nano_encoder")
    width = whole.part("audio_config", "fun_asr_nano_encoder").integer("hidden_size")
    adaptor = whole.part("adaptor_config", "fun_asr_nano.adaptor_config", is_fixed=True)
    outputs, inner = adaptor.integer("hidden_size"), adaptor.integer("intermediate_size")
    projected = mlp(width, adaptor.integer("projector_hidden_size"), outputs=outputs)
    return heard + projected + adaptor.integer("num_hidden_layers") * block(outputs, inner)


def omniasr(config: Config) -> int:
    """Omnilingual ASR's encoder: convolutions over the waveform, positions by a convolution, plain layers."""
    width, bias = config.integer("hidden_size"), config.flag("conv_bias", default=True)
    widths = config.integers("conv_dim", least=1) or (1,)
    kernels = config.integers("conv_kernel", len(widths), least=1) or ()
    start = sum(
        convolution(inputs, outputs, kernel, bias=bias) + norm(outputs)
        for inputs, outputs, kernel in zip((1, *widths), widths, kernels, strict=False)
    )
    groups = config.integer("num_conv_pos_embedding_groups")
    positions = convolution(width, width, config.integer("num_conv_pos_embeddings"), groups=groups)
    layers = config.integer("num_hidden_layers") * block(width, config.integer("intermediate_size"))
    return start + norm(widths[-1]) + linear(widths[-1], width) + positions + layers + norm(width)


def _omniasr_whole(whole: Whole) -> int:
    heard = whole.tower("audio_config", "omniasr_audio")
    return heard + linear(whole.part("audio_config", "omniasr_audio").integer("hidden_size"), whole.hidden_size)


def _turned(config: Config, *, normed: bool) -> int:
    """Return the parameters of layers with rotary positions; only keys may have fewer heads, only the output has offsets."""
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    head = config.optional("head_dim") or width // heads
    keys = (config.optional("num_key_value_heads") or heads) * head
    attend = linear(width, 2 * heads * head + keys, bias=False) + linear(heads * head, width)
    norms = 2 * norm(width) + (2 * norm(head) if normed else 0)
    return config.integer("num_hidden_layers") * (norms + attend + mlp(width, config.integer("intermediate_size")))


def _stacked(config: Config, *, normed: bool) -> int:
    """Return the parameters of a matrix of stacked frames, layers, a norm before and after them."""
    width = config.integer("hidden_size")
    frames = linear(config.integer("subsampling_factor") * config.integer("num_mel_bins"), width, bias=False)
    return frames + 2 * norm(width) + _turned(config, normed=normed)


def _diarization(whole: Whole) -> int:
    """Nemotron 3 Diarization: an encoder, a vector for silence, frames made finer, a head that tells who speaks."""
    audio = whole.part("audio_config", "nemotron3_diarization_audio", is_fixed=True)
    head = whole.part("head_config", "nemotron3_diarization.head_config", is_fixed=True)
    width, inner = head.integer("audio_hidden_size"), head.integer("hidden_size")
    finer = linear(width, inner) + convolution(inner, inner * head.integer("subsampling_factor"), 3)
    told = mlp(inner, inner, outputs=head.integer("num_speakers"))
    return _stacked(audio, normed=False) + audio.integer("hidden_size") + finer + told


def _nemotron_transcribe(whole: Whole) -> int:
    """Nemotron 3.5 Transcribe: recognition, diarization, a matrix to the text; layers and a head that time the words."""
    audio = whole.within("audio_config", "nemotron3_5_transcribe_audio")
    recognised = audio.part("asr_config", "nemotron3_5_transcribe_asr_audio", is_fixed=True)
    told = audio.within("diarization_config", "nemotron3_diarization")
    speakers = told.part("head_config", "nemotron3_diarization.head_config", is_fixed=True).integer("num_speakers")
    heard = _stacked(recognised, normed=True) + _diarization(told) + norm(recognised.integer("hidden_size") + speakers)
    words = whole.part("word_timestamp_config", "nemotron3_5_transcribe_word_timestamp", is_fixed=True)
    width = words.integer("hidden_size")
    timed = convolution(width, width, words.integer("upsampling_factor")) + 2 * norm(width)
    timed += _turned(words, normed=True) + linear(width, words.integer("vocab_size"))
    return heard + linear(recognised.integer("hidden_size"), whole.hidden_size) + timed


KINDS: Mapping[str, TowerCount] = {
    "fun_asr_nano_encoder": fun_asr,
    "granite_speech_encoder": granite,
    "granite_speech_plus_encoder": granite,
    "omniasr_audio": omniasr,
    "parakeet_encoder": parakeet,
}

WHOLES: Mapping[str, WholeCount] = {
    "fun_asr_nano": _fun_asr_whole,
    "granite_speech": _granite_whole,
    "granite_speech_plus": _granite_whole,
    "nemo_speechlm": _nemotron_transcribe,
    "omniasr": _omniasr_whole,
}
