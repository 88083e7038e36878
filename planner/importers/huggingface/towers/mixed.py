"""Towers that are like no other: pictures through experts, through layers of folded patches, through RADIO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, combinations, pairwise
from math import ceil, log, prod
from operator import mul
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.towers import whisper
from planner.importers.huggingface.towers.counts import attention, convolution, linear, mlp, norm
from planner.importers.huggingface.towers.fields import shrinking
from planner.importers.huggingface.towers.speech import parakeet
from planner.importers.huggingface.towers.whole import TowerCount, UncountedError, Whole, WholeCount

# ---- dots3 -----------------------------------------------------------------------------------------------------------


def _experts_of_layers(config: Config) -> Sequence[int]:
    """Return the experts of each layer, 0 for one network: a pyramid, or what kinds and exceptions say."""
    layers = config.integer("num_hidden_layers")
    pyramid = config.listed("pyramid_num_routed", layers)
    if pyramid is not None:
        return [max(0, count) if isinstance(count, int) else 0 for count in pyramid]
    # The exceptions of the class go with its list of kinds only.
    exceptions = (
        config.get("per_layer_config") if config.given("per_layer_config") == config.given("mlp_layer_types") else {}
    )
    every = config.integer("num_local_experts")
    kinds = config.listed("mlp_layer_types", layers) or ()

    def experts(layer: int) -> int:
        exception: Any = exceptions.get(str(layer), {}) if isinstance(exceptions, Mapping) else {}
        found = exception.get("num_local_experts", every) if isinstance(exception, Mapping) else every
        return found if isinstance(found, int) else every

    return [experts(layer) if kind == "sparse" else 0 for layer, kind in enumerate(kinds)]


def dots_vision(config: Config) -> int:
    """dots3's pictures: gated networks or experts, norms of queries and keys, a merger of patches."""
    # Where both are stated, `hidden_size` is the text's.
    width, size = config.optional("embed_dim") or config.integer("hidden_size"), config.integer("patch_size")
    attend = attention(width, bias=config.flag("attention_bias", default=False))
    same = attend + 2 * (width // config.integer("num_attention_heads")) + 2 * norm(width, bias=False)
    bias = config.flag("mlp_bias", default=False)
    network = mlp(width, config.integer("intermediate_size"), gated=True, bias=bias)
    expert = mlp(width, config.integer("moe_intermediate_size"), gated=True, bias=False) + width
    layers = sum(same + (experts * expert if experts else network) for experts in _experts_of_layers(config))
    source = config.integer("adapter_in_dim")
    merged = source * config.integer("adapter_merge_size") ** 2
    merger = norm(source) + mlp(merged, merged, outputs=config.integer("adapter_out_dim"))
    ends = convolution(config.integer("num_channels"), width, size, size) + 2 * norm(width, bias=False)
    return ends + layers + merger


def _whisper(config: Config, field: str, name: str) -> int:
    """Return a size: as a part says that is a configuration of Whisper's, under its `name`, or as the `field` does."""
    return config.part("whisper_config").optional(name) or config.integer(field)


def dots_audio(config: Config) -> int:
    """dots3's speech: three convolutions, gated layers whose keys have no offsets, a norm and two matrices."""
    width, heads = (
        _whisper(config, "hidden_size", "d_model"),
        _whisper(config, "num_attention_heads", "encoder_attention_heads"),
    )
    inner, bias = heads * (width // heads), config.flag("attention_bias", default=True)
    attend = 2 * linear(width, inner, bias=bias) + linear(width, width, bias=False) + linear(inner, width, bias=bias)
    network = mlp(width, _whisper(config, "intermediate_size", "encoder_ffn_dim"), gated=True)
    layer = attend + network + 2 * norm(width, bias=False)
    flattened = whisper.shrunk(config, _whisper(config, "feature_size", "num_mel_bins"))
    if config.given("conv_output_size"):
        flattened = config.integer("conv_output_size")
    source, outputs = config.integer("adapter_input_size"), config.integer("adapter_out_dim")
    adapter = norm(source) + mlp(source, outputs, outputs=outputs)
    layers = _whisper(config, "num_hidden_layers", "encoder_layers") * layer
    return whisper.stem(config, flattened, width) + layers + norm(width, bias=False) + adapter


def _dots(whole: Whole) -> int:
    seen = dots_vision(whole.part("vision_config", "dots3_note_vision_encoder", is_fixed=True))
    return seen + dots_audio(whole.part("audio_config", "dots3_note_audio_encoder", is_fixed=True))


# ---- Inkling ---------------------------------------------------------------------------------------------------------


def _prime_factors(number: int) -> list[int]:
    """Return the prime factors, the largest first.

    >>> _prime_factors(40)
    [5, 2, 2, 2]
    """
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return sorted([*found, number] if number > 1 else found, reverse=True)


GRANULE = 64
"""Channels of a level are a multiple of this."""

Level = tuple[int, int, int]
"""Frames, rows (as many columns), channels."""


def _levels(frames: int, size: int, channels: int) -> list[Level]:
    """Return how patches may be folded: rows and columns first, then frames."""
    rows = list(accumulate(_prime_factors(size), mul))
    last = rows[-1] if rows else 1
    folded = [(1, side, ceil(side**2 * channels / GRANULE) * GRANULE) for side in rows]
    # The class multiplies here without having divided; only the last level has a use, and its width is the text's.
    timed = [(time, last, last**2 * channels * time * GRANULE) for time in accumulate(_prime_factors(frames), mul)]
    return [(1, 1, channels), *folded, *timed]


LARGEST_FOLD = 10_000
"""Elements, frames and layers beyond which no file can be meant."""

CLOSE = 1e-5
"""Distances that differ by less may be told apart otherwise in single precision, in which the class compares them."""


Choice = tuple[float, tuple[int, ...]]
"""What a choice of levels costs, and the levels."""


def _cheapest(sizes: Sequence[float], ideal: Sequence[float]) -> list[Choice]:
    """Return the cheapest and the second cheapest way to give each ideal a level of its own, in the order of both."""
    best: list[list[Choice]] = [[(0.0, ())] for _ in range(len(sizes) + 1)]
    for place in ideal:
        row: list[list[Choice]] = [[]]
        for level, size in enumerate(sizes):
            taken = [(cost + abs(place - size), (*chosen, level)) for cost, chosen in best[level]]
            row.append(sorted([*taken, *row[-1]])[:2])
        best = row
    return best[-1]


def _each_once(sizes: Sequence[float], ideal: Sequence[float]) -> tuple[int, ...]:
    """Return the levels that are nearest to the ideal ones in all, each taken once.

    Raises
    ------
    UncountedError
        If another choice is as near.
    """
    first, *others = _cheapest(sizes, ideal)
    places = [(place, sizes[level]) for place, level in zip(ideal, first[1], strict=True)]
    # Two levels change places at no cost where what lies between the ideals and what lies between the levels do not overlap.
    is_open = any(min(later) - max(earlier) < CLOSE for earlier, later in combinations(places, 2))
    if is_open or any(cost - first[0] < CLOSE for cost, _ in others):
        raise UncountedError(f"{len(ideal) - 1} layers leave the {len(sizes)} levels of folded patches open")
    return first[1]


def _nearest(sizes: Sequence[float], ideal: Sequence[float]) -> tuple[int, ...]:
    """Return the level nearest to each ideal one, more than once where there are more layers than levels.

    Raises
    ------
    UncountedError
        If two are as near, and are not the same.
    """
    chosen = []
    for place in ideal:
        first, second = sorted((abs(place - size), level) for level, size in enumerate(sizes))[:2]
        if second[0] - first[0] < CLOSE:
            raise UncountedError(f"{len(ideal) - 1} layers leave the {len(sizes)} levels of folded patches open")
        chosen.append(first[1])
    return tuple(chosen)


def _chosen(levels: Sequence[Level], layers: int, total: int) -> list[Level]:
    """Return the level before the first layer and behind each: those nearest to equal steps of the logarithm of `total`."""
    sizes = [log(time * side * side) for time, side, _ in levels]
    ideal = [log(total) * step / layers for step in range(layers + 1)]
    choose = _nearest if layers >= len(levels) else _each_once
    return [levels[0], *(levels[index] for index in choose(sizes, ideal)[1:-1]), levels[-1]]


def inkling_vision(config: Config, text: int | None = None) -> int:
    """Inkling's pictures: each layer folds a square of patches, or frames, into channels; the last leads to the `text`."""
    layers, text = config.integer("num_hidden_layers"), text or config.integer("text_hidden_size")
    frames, size, channels = (config.integer(name) for name in ("temporal_patch_size", "patch_size", "num_channels"))
    if min(frames, size) == 1 or max(frames, size, layers) > LARGEST_FOLD:
        raise UncountedError("the levels of folded patches are not known for one element or frame, nor for so many")
    levels = _chosen(_levels(frames, size, channels), layers, frames * size * size * channels)
    count = 0
    for index, (before, after) in enumerate(pairwise(levels), start=1):
        folded = (after[0] // before[0]) * (after[1] // before[1]) ** 2
        outputs = text if index == layers else after[2]
        count += linear(before[2] * folded, outputs, bias=False) + norm(outputs, bias=False)
    return count


def inkling_audio(config: Config, text: int | None = None) -> int:
    """Inkling's sound: an embedding for each step of each band, and a norm."""
    text = text or config.integer("text_hidden_size")
    return prod((config.integer("n_mel_bins"), config.integer("mel_vocab_size"), text)) + norm(text, bias=False)


def _inkling(whole: Whole) -> int:
    """Inkling: both lead to the text's width, whatever they say themselves."""
    seen = inkling_vision(whole.part("vision_config", "inkling_vision", is_fixed=True), whole.hidden_size)
    heard = whole.part("audio_config", "inkling_audio", is_fixed=True)
    return seen + inkling_audio(heard, whole.hidden_size)


# ---- Nemotron Omni ---------------------------------------------------------------------------------------------------


def radio(config: Config) -> int:
    """RADIO: class and register tokens, a table of positions for the largest picture, two scales for each layer."""
    width, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    inner = heads * (config.optional("head_dim") or width // heads)
    attend = 3 * linear(width, inner, bias=config.flag("qkv_bias", default=True)) + linear(inner, width)
    wide = int(width * config.real("mlp_ratio", 4))
    # Gated networks keep two thirds of the width, in whole eights.
    gated = mlp(width, (int(wide * 2 / 3) + 7) // 8 * 8, gated=True)
    network = gated if config.flag("use_swiglu_ffn", default=False) else mlp(width, wide)
    pixels = config.integer("num_channels") * config.integer("patch_size") ** 2
    video = pixels * (config.optional("video_temporal_patch_size") or 0)
    tokens = config.integer("num_cls_tokens", least=0) + config.integer("num_registers", least=0)
    positions = (config.integer("max_img_size") // config.integer("patch_size")) ** 2
    layer = attend + network + 2 * norm(width) + 2 * width
    return (pixels + video + tokens + positions) * width + config.integer("num_hidden_layers") * layer


def _nemotron_projector(inputs: int, inner: int, text: int, *, bias: bool = False) -> int:
    return norm(inputs, bias=False) + mlp(inputs, inner, bias=bias, outputs=text)


def _nemotron(whole: Whole) -> int:
    """Nemotron Omni: neighbouring patches are joined; a norm behind the tower where the text model guesses further tokens."""
    width, text = whole.integer("vision_hidden_size"), whole.hidden_size
    joined = width * int(shrinking(whole.config)) ** 2
    seen = whole.tower("vision_config", "radio")
    count = seen + _nemotron_projector(joined, whole.integer("projector_hidden_size"), text)
    if whole.config.part("text_config").optional("num_nextn_predict_layers", 0, least=0):
        count += norm(width)
    if whole.has("audio_config"):
        audio = whole.part("audio_config", "nemotron_h_omni.audio_config", is_fixed=True)
        inner, bias = audio.integer("projection_hidden_size"), audio.flag("projection_bias", default=False)
        count += parakeet(audio) + _nemotron_projector(audio.integer("hidden_size"), inner, text, bias=bias)
    return count


KINDS: Mapping[str, TowerCount] = {
    "dots3_note_audio_encoder": dots_audio,
    "dots3_note_vision_encoder": dots_vision,
    "inkling_audio": inkling_audio,
    "inkling_vision": inkling_vision,
    "radio": radio,
}

WHOLES: Mapping[str, WholeCount] = {
    "dots3_note": _dots,
    "inkling_mm_model": _inkling,
    "nemotron_h_omni": _nemotron,
}
