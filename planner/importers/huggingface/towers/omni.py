"""Models that see, hear and speak: a thinker with two towers, a talker, and what turns codes into sound."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers import qwen, whisper
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import Whole, WholeCount

# ---- the thinker -----------------------------------------------------------------------------------------------------


def _thinker(whole: Whole, family: str) -> int:
    """Return the parameters of the towers that see and hear; each leads to the text's width itself."""
    seen, heard = f"{family}_vision_encoder", f"{family}_audio_encoder"
    vision = qwen.KINDS[seen](whole.part("vision_config", seen, is_fixed=True))
    return vision + whisper.KINDS[heard](whole.part("audio_config", heard, is_fixed=True))


def _thinker_within(whole: Whole, family: str) -> int:
    inner = whole.within("thinker_config", f"{family}_thinker")
    inner.has("text_config")
    return _thinker(inner, family)


def _sizes(config: Config, *fields: str) -> tuple[int, ...]:
    return tuple(config.integer(field) for field in fields)


def _heads(config: Config) -> tuple[int, int, int]:
    """Return the elements of all query heads, of all key heads, and of one head."""
    heads, width = _sizes(config, "num_attention_heads", "hidden_size")
    head = config.optional("head_dim") or width // heads
    return heads * head, (config.optional("num_key_value_heads") or heads) * head, head


# ---- Qwen2.5-Omni ----------------------------------------------------------------------------------------------------


def _talker(config: Config) -> int:
    """Return the parameters of Qwen2.5-Omni's talker: a text model over codes, which the thinker's states lead to."""
    width, inner, codes, states = _sizes(config, "hidden_size", "intermediate_size", "vocab_size", "embedding_size")
    queries, keys, _ = _heads(config)
    attend = linear(width, queries + 2 * keys) + linear(queries, width, bias=False)
    layer = attend + mlp(width, inner, gated=True, bias=False) + 2 * norm(width, bias=False)
    ends = codes * states + linear(states, width) + norm(width, bias=False) + linear(width, codes, bias=False)
    return ends + config.integer("num_hidden_layers") * layer


def _speaker(config: Config) -> int:
    """Return the parameters of ECAPA-TDNN, which tells a speaker by his voice.

    Desplanques et al. 2020, ECAPA-TDNN, figure 2: a convolution, three blocks of a matrix, convolutions over parts of the
    channels, a matrix and a squeeze; features of all levels, pooling by attention, a matrix.
    """
    widths = config.integers("enc_channels", least=1) or (1,)
    kernels = config.integers("enc_kernel_sizes", len(widths), least=1) or (1,) * len(widths)
    scale, squeezed = _sizes(config, "enc_res2net_scale", "enc_se_channels")
    count = convolution(config.integer("mel_dim"), widths[0], kernels[0])
    for source, width, kernel in zip(widths, widths[1:-1], kernels[1:], strict=False):
        part = width // scale
        count += linear(source, width) + (scale - 1) * convolution(part, part, kernel) + linear(width, width)
        count += mlp(width, squeezed)
    last = widths[-1]
    pooled = mlp(3 * last, config.integer("enc_attention_channels"), outputs=last)
    return count + convolution(last, last, kernels[-1]) + pooled + linear(2 * last, config.integer("enc_dim"))


TIME_FREQUENCIES = 256
"""Elements of the embedding of a diffusion step, which the class does not take from a field."""


def _diffusion(config: Config) -> int:
    """Return the parameters of the diffusion transformer that turns codes into spectrograms."""
    width, mel, code = _sizes(config, "hidden_size", "mel_dim", "emb_dim")
    queries, _, _ = _heads(config)
    layer = linear(width, 6 * width) + attention(width, inner=queries)
    layer += mlp(width, int(width * config.real("ff_mult", 2)))
    inputs = linear(mel + config.integer("enc_dim") + config.integer("enc_emb_dim") + code, width)
    ends = mlp(TIME_FREQUENCIES, width, outputs=width) + (config.integer("num_embeds") + 1) * code + inputs
    last = linear(width, 2 * width) + linear(width, mel)
    return ends + _speaker(config) + config.integer("num_hidden_layers") * layer + last


def _vocoder(config: Config) -> int:
    """Return the parameters of BigVGAN, which turns spectrograms into sound: levels of transposed and residual convolutions."""
    width = config.integer("upsample_initial_channel")
    count = convolution(config.integer("mel_dim"), width, 7)
    rates = config.integers("upsample_rates", least=1) or ()
    kernels = config.integers("upsample_kernel_sizes", least=1) or ()
    residual = config.integers("resblock_kernel_sizes", least=1) or ()
    dilations = config.listed("resblock_dilation_sizes") or residual
    for level in range(len(rates)):
        half = width // 2
        count += convolution(width, half, kernels[level]) if level < len(kernels) else 0
        # Six convolutions each, and as many activations with two scales for each channel.
        count += sum(
            6 * (convolution(half, half, size) + 2 * half) for size, _ in zip(residual, dilations, strict=False)
        )
        width = half
    return count + 2 * width + convolution(width, 1, 7, bias=False)


def _qwen2_5_omni(whole: Whole) -> int:
    count = _thinker_within(whole, "qwen2_5_omni")
    if not whole.config.flag("enable_audio_output", default=True):
        return count
    wave = whole.within("token2wav_config", "qwen2_5_omni_token2wav")
    spoken = _talker(whole.part("talker_config", "qwen2_5_omni_talker", is_fixed=True))
    sound = _diffusion(wave.part("dit_config", "qwen2_5_omni_dit", is_fixed=True))
    return count + spoken + sound + _vocoder(wave.part("bigvgan_config", "qwen2_5_omni_bigvgan", is_fixed=True))


# ---- Qwen3-Omni ------------------------------------------------------------------------------------------------------


def _normed_attention(config: Config) -> int:
    """Return the parameters of attention with norms of queries and keys."""
    bias = config.flag("attention_bias", default=False)
    queries, keys, head = _heads(config)
    return attention(config.integer("hidden_size"), inner=queries, kv=keys, bias=bias) + 2 * head


def _expert_talker(whole: Whole) -> int:
    """Return the parameters of Qwen3-Omni's talker: layers of experts with a shared one, and a model that guesses the finer codes."""
    text = whole.part("text_config", "qwen3_omni_moe_talker_text", is_fixed=True)
    width, inner, experts, codes = _sizes(text, "hidden_size", "moe_intermediate_size", "num_experts", "vocab_size")
    routed = experts * mlp(width, inner, gated=True, bias=False) + experts * width
    shared = mlp(width, text.integer("shared_expert_intermediate_size"), gated=True, bias=False) + width
    layer = _normed_attention(text) + routed + shared + 2 * norm(width, bias=False)
    states = mlp(whole.integer("thinker_hidden_size"), text.integer("intermediate_size"), outputs=width)
    tables = 1 if whole.config.flag("tie_word_embeddings", default=False) else 2
    ends = 2 * states + tables * codes * width + norm(width, bias=False)
    finer = whole.part("code_predictor_config", "qwen3_omni_moe_talker_code_predictor", is_fixed=True)
    return ends + text.integer("num_hidden_layers") * layer + _code_predictor(finer)


def _code_predictor(config: Config) -> int:
    """Return the parameters of a small text model with an embedding and a head for each group of codes but the first."""
    width, inner, codes, groups = _sizes(config, "hidden_size", "intermediate_size", "vocab_size", "num_code_groups")
    layer = _normed_attention(config) + mlp(width, inner, gated=True, bias=False) + 2 * norm(width, bias=False)
    ends = 2 * (groups - 1) * codes * width + norm(width, bias=False)
    return ends + config.integer("num_hidden_layers") * layer


def _code2wav(config: Config) -> int:
    """Return the parameters of what turns Qwen3-Omni's codes into sound: a transformer, then convolutions that raise the rate."""
    width, inner, channels = _sizes(config, "hidden_size", "intermediate_size", "decoder_dim")
    queries, keys, _ = _heads(config)
    attend = attention(width, inner=queries, kv=keys, bias=config.flag("attention_bias", default=False))
    layer = attend + mlp(width, inner, gated=True, bias=False) + 4 * width  # two norms, two scales
    count = config.integer("num_hidden_layers") * layer + norm(width, bias=False)
    count += config.integer("codebook_size") * config.integer("num_quantizers") * width
    convnext = convolution(width, width, 7, groups=width) + norm(width) + mlp(width, 4 * width) + width
    for factor in config.integers("upsampling_ratios", least=1) or ():
        count += convolution(width, width, factor) + convnext
    count += convolution(width, channels, 7)
    for rate in config.integers("upsample_rates", least=1) or ():
        half = channels // 2
        residual = convolution(half, half, 7) + linear(half, half) + 4 * half
        count += 2 * channels + convolution(channels, half, 2 * rate) + 3 * residual
        channels = half
    return count + 2 * channels + convolution(channels, 1, 7)


def _qwen3_omni(whole: Whole) -> int:
    count = _thinker_within(whole, "qwen3_omni_moe")
    if not whole.config.flag("enable_audio_output", default=True):
        return count
    spoken = _expert_talker(whole.within("talker_config", "qwen3_omni_moe.talker_config"))
    return count + spoken + _code2wav(whole.part("code2wav_config", "qwen3_omni_moe.code2wav_config", is_fixed=True))


WHOLES: Mapping[str, WholeCount] = {
    "qwen2_5_omni": _qwen2_5_omni,
    "qwen2_5_omni_thinker": lambda whole: _thinker(whole, "qwen2_5_omni"),
    "qwen3_omni_moe": _qwen3_omni,
    "qwen3_omni_moe_thinker": lambda whole: _thinker(whole, "qwen3_omni_moe"),
}
