"""RWKV-5, 6 and 7, under the field names of their makers' code and of flash-linear-attention; RWKV-6 in a Qwen 2.

Facts: the papers (arXiv 2404.05892, 2503.14456), flash-linear-attention's classes (fla/layers/rwkv6.py, rwkv7.py), and for what is null
in the makers' files the conversion in llama.cpp (conversion/rwkv.py), as for RWKV6-Qwen2 (src/models/rwkv6qwen2.cpp).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, LAYER_SCALE, RMS, Family
from planner.importers.huggingface.parts.basics import build, flag, layer_count
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.softmax import heads_of, softmax_kind
from planner.model import Norm, Projection, Rwkv7, RwkvMatrix, SoftmaxAttention

WIDE = 4096
"""RWKV-6 of this hidden size has ranks twice as large."""


def _shared_out(config: Config, field: str, elements: int, parts: int) -> int:
    """Return elements for each of some parts; a remainder is a fault."""
    if elements % parts:
        config.fault(field, f"{parts} does not divide {elements}")
        config.raise_faults()
    return max(elements // parts, 1)


def _is_library(config: Config) -> bool:
    """Whether a file has the field names of flash-linear-attention, not those of the makers' code."""
    return config.has("num_heads") or config.has("head_dim") or config.has("expand_k")


# ---- RWKV-5, RWKV-6 --------------------------------------------------------------------------------------------------


def _makers_heads(config: Config) -> dict[str, Any]:
    """Return heads by `head_size`; older files state that size as `num_attention_heads`."""
    size = config.optional("head_size") or config.integer("num_attention_heads", 64)
    channels = config.optional("attention_hidden_size") or config.integer("hidden_size")
    heads = _shared_out(config, "head_size", channels, size)
    return {"num_heads": heads, "key_head_dim": size, "value_head_dim": size}


def _eagle(config: Config, index: int) -> RwkvMatrix:  # the signature of every reader
    """RWKV-5.2; earlier drafts have other parameters."""
    if config.text("model_version", "5_2") != "5_2":
        config.fault("model_version", "only 5_2 is described")
        config.raise_faults()
    hidden = config.integer("hidden_size")
    return build(config, RwkvMatrix, kind="rwkv5", hidden_size=hidden, **_makers_heads(config))


def _finch(config: Config, index: int) -> Any:
    """RWKV-6: the library states widths as multiples of the hidden size, and the ranks; the makers' code knows ranks by the width."""
    hidden = config.integer("hidden_size")
    if not _is_library(config):
        mix, decay = (64, 128) if hidden == WIDE else (32, 64)
        shape = {**_makers_heads(config), "mix_rank": mix, "decay_rank": decay}
        return build(config, RwkvMatrix, kind="rwkv6", hidden_size=hidden, **shape)
    if _attends(config, index):
        return _attention(config)
    heads = config.integer("num_heads", 4)
    keys, values = int(config.real("expand_k", 0.5) * hidden), int(config.real("expand_v", 1.0) * hidden)
    return build(
        config,
        RwkvMatrix,
        kind="rwkv6",
        hidden_size=hidden,
        num_heads=heads,
        key_head_dim=_shared_out(config, "num_heads", keys, heads),
        value_head_dim=_shared_out(config, "num_heads", values, heads),
        mix_rank=config.integer("proj_low_rank_dim", 32),
        decay_rank=config.integer("gate_low_rank_dim", 64),
    )


def _attends(config: Config, index: int) -> bool:
    """Whether `attn` lists a layer: it has softmax attention, as a hybrid of the library's."""
    return config.has("attn") and index in (config.part("attn").integers("layers") or ())


def _attention(config: Config) -> SoftmaxAttention:
    own, hidden = config.part("attn"), config.integer("hidden_size")
    own.get("rope_theta")
    heads, kv_heads = heads_of(own, "num_heads", "num_kv_heads")
    return build(
        config,
        SoftmaxAttention,
        kind=softmax_kind(heads, kv_heads),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=_shared_out(config, "attn", hidden, heads),
        qkv_bias=own.flag("qkv_bias", default=False),
        sliding_window=own.optional("window_size"),
    )


def _width(ratio: float) -> Any:
    """Return a reader of the network's width: stated, or a multiple of the hidden size in whole 32s."""

    def read(config: Config, index: int) -> int:
        hidden, stated = config.integer("hidden_size"), config.optional("intermediate_size")
        if stated:
            config.used.add("hidden_ratio")  # heeded only where there is no width
            return stated
        wide = int(config.real("hidden_ratio", ratio) * hidden)
        # The library rounds up, the makers' code down.
        return max(-(-wide // 32) * 32 if _is_library(config) else wide // 32 * 32, 1)

    return read


def _norm(config: Config) -> Norm:
    return LAYER if config.flag("norm_bias", default=True) else LAYER_SCALE


def _norm_count(config: Config, index: int) -> int:
    """Return the norms of a layer; the first has one more, of the embedding."""
    return 2 if index or not config.flag("norm_first", default=True) else 3


def _gated_layer(config: Config, index: int) -> dict[str, Any]:
    """RWKV-5 and 6: a gate of the hidden width on the network, and mixes of its two inputs."""
    hidden = config.integer("hidden_size")
    gate = Projection(name="receptance", input_size=hidden, output_size=hidden)
    return {"norms": _norm_count(config, index), "projections": (gate,), "other_parameters": 2 * hidden}


# ---- RWKV-7 ----------------------------------------------------------------------------------------------------------


_RANKS = {
    "decay_rank": ("decay_low_rank_dim", "lora_rank_decay", (0.5, 1.8), 2.5),
    "rate_rank": ("a_low_rank_dim", "lora_rank_iclr", (0.5, 1.8), 2.5),
    "value_rank": ("v_low_rank_dim", "lora_rank_value_residual_mix", (0.5, 1.3), 1.7),
    "gate_rank": ("gate_low_rank_dim", "lora_rank_gate", (0.8, 0.6), 5.0),
}
"""Ranks: the library's field and the makers'; where null, the makers' power and factor of the hidden size, and the library's factor of its root."""


def _rank(config: Config, name: str, head_dim: int) -> int:
    """Return a rank: stated, or by the width in whole 32s; the library has larger ones where heads are larger than 64."""
    library, makers, (power, factor), root = _RANKS[name]
    stated = config.optional(library) or config.optional(makers)
    if stated is not None:
        return stated
    hidden = config.integer("hidden_size")
    if not _is_library(config):
        return 32 * max(1, round(math.pow(hidden, power) * factor / 32))
    larger = 1.0 if name == "gate_rank" else head_dim / 64
    return 32 * max(1, round(root * math.sqrt(hidden) * larger / 32))


def _goose_values(config: Config, index: int) -> int:
    """Return the elements of all values: `value_dim` is one number, or one for each layer."""
    if config.get("value_dim") is None:
        return config.integer("hidden_size")
    return config.at_layer("value_dim", index, layer_count(config))


def _goose(config: Config, index: int) -> Any:
    """RWKV-7: heads by their size, or by their number where the size is null."""
    if _attends(config, index):
        return _attention(config)
    hidden = config.integer("hidden_size")
    size = config.optional("head_dim") or config.optional("head_size")
    heads = _shared_out(config, "head_dim", hidden, size) if size else config.integer("num_heads")
    keys = size or _shared_out(config, "num_heads", hidden, heads)
    ranks: dict[str, int | None] = {name: _rank(config, name, keys) for name in _RANKS}
    if index == 0:
        ranks["value_rank"] = None
    return build(
        config,
        Rwkv7,
        kind="rwkv7",
        hidden_size=hidden,
        num_heads=heads,
        key_head_dim=keys,
        value_head_dim=_shared_out(config, "value_dim", _goose_values(config, index), heads),
        **ranks,
    )


def _goose_layer(config: Config, index: int) -> dict[str, Any]:
    """RWKV-7: a mix of the network's input."""
    return {"norms": _norm_count(config, index), "other_parameters": config.integer("hidden_size")}


# ---- RWKV-6 in a Qwen 2 ----------------------------------------------------------------------------------------------


def _qwen(config: Config, index: int) -> RwkvMatrix:
    """RWKV6-Qwen2: RWKV-6 in place of attention, with its sharing of KV heads and its biases; no bonus, and no norm of the result."""
    heads, kv_heads = heads_of(config, "num_attention_heads", "num_key_value_heads")
    hidden = config.integer("hidden_size")
    if flag(config, "attention_output_bias"):
        config.fault("attention_output_bias", "a bias of the output is not described")
    size = _shared_out(config, "num_attention_heads", hidden, heads)
    mix, decay = (64, 128) if hidden >= WIDE else (32, 64)
    return build(
        config,
        RwkvMatrix,
        kind="rwkv6",
        hidden_size=hidden,
        num_heads=heads,
        num_key_value_heads=kv_heads,
        key_head_dim=size,
        value_head_dim=size,
        mix_rank=config.optional("lora_rank_tokenshift") or mix,
        decay_rank=config.optional("lora_rank_decay") or decay,
        qkv_bias=config.flag("attention_bias", default=True),
        bonus=False,
        output_norm=False,
        shifted_inputs=1,
    )


_LIBRARY = ("attn_mode", "fuse_norm", "fuse_cross_entropy", "fuse_linear_cross_entropy", "use_l2warp", "clamp_min")
"""Fields of flash-linear-attention that choose kernels, or restate what is fixed."""

_OLD = ("conv_size", "share_conv_kernel", "use_short_conv", "use_glu", "context_length", "max_context_length")
"""Fields of older files that its present classes do not heed, or that limit the context."""

_MATRIX = Family(
    ffn=dense(kind="plain", width=_width(3.5)),
    layer=_gated_layer,
    norm=_norm,
    ignored=(*_LIBRARY, *_OLD, "head_size_divisor", "num_attention_heads"),
)

FAMILIES: dict[str, Family] = {
    "rwkv5": replace(_MATRIX, attention=_eagle),
    "rwkv6": replace(_MATRIX, attention=_finch),
    "rwkv7": Family(
        attention=_goose,
        ffn=dense(kind="plain", width=_width(4.0)),
        layer=_goose_layer,
        norm=_norm,
        ignored=(*_LIBRARY, *_OLD, "attention_hidden_size", "num_heads"),
    ),
    "rwkv6qwen2": Family(
        attention=_qwen,
        ffn=dense(),
        norm=RMS,
        ignored=("sliding_window", "use_sliding_window", "max_window_layers", "layer_types"),
    ),
}
