"""Towers that turn pictures into tokens of a codebook and back: convolutions of falling width; and the models that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers.clip import embedding, patches
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.whole import TowerCount, Whole, WholeCount


def _square(inputs: int, outputs: int) -> int:
    return convolution(inputs, outputs, 3, 3)


def _residual(inputs: int, outputs: int, guide: int = 0) -> int:
    """Return the parameters of two normed convolutions, with a way past them that changes the width where it must.

    `guide` is the width of the code that each norm is shifted and scaled by; 0 for none.
    """
    shortcut = linear(inputs, outputs) if inputs != outputs else 0
    normed = _guided(inputs, guide) + _guided(outputs, guide)
    return normed + _square(inputs, outputs) + _square(outputs, outputs) + shortcut


def _guided(width: int, guide: int) -> int:
    """Return the parameters of a norm in groups, and of the two matrices that make its shift and its scale from a code."""
    return norm(width) + (2 * linear(guide, width) if guide else 0)


def _level(inputs: int, width: int, blocks: int, attended: int, guide: int = 0) -> int:
    """Return the parameters of one resolution: blocks, each followed by attention of `attended` parameters."""
    return _residual(inputs, width, guide) + (blocks - 1) * _residual(width, width, guide) + blocks * attended


def _resampled(widths: Sequence[int]) -> int:
    """Return the parameters of the convolutions between resolutions."""
    return sum(_square(width, width) for width in widths)


def _widths(config: Config) -> list[int]:
    base = config.integer("base_channels")
    return [base * factor for factor in config.integers("channel_multiplier", least=1) or (1,)]


def _latents(config: Config) -> int:
    return config.integer("latent_channels") * (1 + config.flag("double_latent", default=False))


def janus_vqgan(config: Config) -> int:
    """Janus: attention at the coarsest resolution; a decoder that mirrors the encoder."""
    widths, blocks = _widths(config), config.integer("num_res_blocks")
    base, last = config.integer("base_channels"), widths[-1]
    attended = norm(last) + attention(last)
    middle = 2 * _residual(last, last) + attended
    down = sum(_level(above, width, blocks, 0) for above, width in zip([base, *widths], widths, strict=False))
    down += blocks * attended + _resampled(widths[:-1])
    encoder = _square(config.integer("in_channels"), base) + down + middle + norm(last)
    encoder += _square(last, _latents(config))
    above = [last, *reversed(widths)]
    up = sum(_level(inputs, width, blocks + 1, 0) for inputs, width in zip(above, reversed(widths), strict=False))
    up += (blocks + 1) * attended + _resampled(widths[1:])
    decoder = _square(config.integer("latent_channels"), last) + middle + up + norm(widths[0])
    decoder += _square(widths[0], config.integer("out_channels"))
    code, latent = config.integer("embed_dim"), config.integer("latent_channels")
    book = config.integer("num_embeddings") * code
    return encoder + decoder + book + linear(latent, code) + linear(code, latent)


def chameleon_vqgan(config: Config) -> int:
    """Chameleon: an encoder alone; attention at the resolutions that the file lists, and in the middle."""
    widths, blocks = _widths(config), config.integer("num_res_blocks")
    base, last, latent = config.integer("base_channels"), widths[-1], config.integer("latent_channels")
    attends = config.text("attn_type", "vanilla") == "vanilla"
    chosen = set(config.integers("attn_resolutions") or ()) if attends else set()
    down, above, side = _resampled(widths[:-1]), base, config.integer("resolution")
    for width in widths:
        down += _level(above, width, blocks, norm(width) + attention(width) if side in chosen else 0)
        above, side = width, side // 2
    middle = 2 * _residual(last, last) + (norm(last) + attention(last) if attends else 0)
    code = config.integer("embed_dim")
    encoder = (
        _square(config.integer("in_channels"), base) + down + middle + norm(last) + _square(last, _latents(config))
    )
    return encoder + config.integer("num_embeddings") * code + linear(latent, code) + linear(code, latent)


def emu3_vqgan(config: Config) -> int:
    """Emu3: frames as well as pictures; the decoder's norms are guided by the code."""
    widths, blocks = _widths(config), config.integer("num_res_blocks")
    base, last, code = config.integer("base_channels"), widths[-1], config.integer("embed_dim")
    levels = set(config.integers("attn_resolutions") or ())
    attended, latent, coded = (
        attention(config.integer("hidden_size")),
        config.integer("latent_channels"),
        _latents(config),
    )

    def at(level: int, guide: int) -> int:
        return attended + _guided(widths[level], guide) if level in levels else 0

    middle = 2 * _residual(last, last) + attended + norm(last)
    above = [base, *widths]
    down = sum(_level(above[i], width, blocks, at(i, 0)) for i, width in enumerate(widths)) + _resampled(widths[:-1])
    halvings = config.integer("temporal_downsample_factor").bit_length() - 1
    encoder = _square(config.integer("in_channels"), base) + down + middle + norm(last) + _square(last, coded)
    encoder += halvings * convolution(coded, coded, 4, 3, 3) + blocks * _steady(coded)
    below = [*widths[1:], last]
    up = sum(_level(below[i], width, blocks + 1, at(i, code), code) for i, width in enumerate(widths))
    guided = 2 * _residual(last, last, code) + attended + _guided(last, code)
    decoder = blocks * _steady(latent) + halvings * convolution(latent, latent, 3, 3, 3) + _square(latent, last)
    decoder += guided + up + _resampled(widths[1:]) + _guided(widths[0], code)
    decoder += _square(widths[0], config.integer("out_channels"))
    joined = convolution(latent, code, 3, 1, 1) + convolution(code, latent, 3, 1, 1)
    return encoder + decoder + config.integer("codebook_size") * code + joined


def _steady(width: int) -> int:
    """Return the parameters of two normed convolutions over time that keep the width."""
    return 2 * (norm(width) + convolution(width, width, 3, 3, 3))


def janus_vision(config: Config) -> int:
    """Janus' tower for pictures that are read: SigLIP's, without a head."""
    hidden = config.integer("hidden_size")
    joint = 3 * linear(hidden, hidden, bias=config.flag("attention_bias", default=True)) + linear(hidden, hidden)
    joint += 2 * norm(hidden) if config.flag("use_qk_norm", default=False) else 0
    layer = 2 * norm(hidden) + joint + mlp(hidden, int(hidden * config.real("mlp_ratio", 4)))
    tokens = patches(config) * hidden + norm(hidden)
    return embedding(config, bias=True) + tokens + config.integer("num_hidden_layers") * layer


KINDS: Mapping[str, TowerCount] = {
    "chameleon_vqgan": chameleon_vqgan,
    "emu3_vqgan": emu3_vqgan,
    "janus_vision_model": janus_vision,
    "janus_vqgan": janus_vqgan,
}


def _aligner(inputs: int, width: int, depth: int) -> int:
    return linear(inputs, width) + (depth - 1) * linear(width, width)


def _janus(whole: Whole) -> int:
    """Janus: pictures are read by one tower and drawn by another, each with a network to the text's width."""
    vision, drawn = whole.part("vision_config", "janus_vision_model"), whole.part("vq_config", "janus_vqgan")
    read = _aligner(vision.integer("hidden_size"), vision.integer("projection_dim"), vision.integer("depth"))
    code, words, width = drawn.integer("embed_dim"), drawn.integer("num_embeddings"), drawn.integer("projection_dim")
    made = words * code + _aligner(code, width, drawn.integer("num_hidden_layers"))
    head = linear(drawn.integer("image_token_embed_dim"), width) + linear(width, words)
    towers = whole.own("vision_config", "janus_vision_model") + whole.own("vq_config", "janus_vqgan")
    return towers + read + made + head


def _tokens(usual: str) -> WholeCount:
    """Chameleon and Emu3: tokens of pictures are words of the text's vocabulary."""

    def read(whole: Whole) -> int:
        return whole.own("vq_config", usual)

    return read


WHOLES: Mapping[str, WholeCount] = {
    "chameleon": _tokens("chameleon_vqgan"),
    "emu3": _tokens("emu3_vqgan"),
    "janus": _janus,
}
