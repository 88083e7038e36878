"""Hybrids whose layers are one thing each (Nemotron-H), or share one block of attention (Zamba)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import LEGACY_KINDS, build, flag, kinds, layer_count, nothing
from planner.importers.huggingface.parts.networks import Experts, dense
from planner.importers.huggingface.parts.recurrent import Mamba2Reader, expanded, mamba
from planner.importers.huggingface.parts.softmax import softmax
from planner.model import FeedForward, Projection, SoftmaxAttention

# ---- Nemotron-H ------------------------------------------------------------------------------------------------------

_LETTERS = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
_NEMOTRON_KINDS = tuple(_LETTERS.values())


def _nemotron_kinds(config: Config) -> tuple[str, ...]:
    """Nemotron-H: each layer is one thing, by `layers_block_type`, `layer_types` or letters in `hybrid_override_pattern`."""

    def read() -> tuple[str, ...]:
        field = next(
            (
                f
                for f in ("layer_types", "layers_block_type", "hybrid_override_pattern", "block_configs")
                if config.given(f)
            ),
            "",
        )
        if not field:
            config.fault("hybrid_override_pattern", "is missing, it says what each layer is")
            config.raise_faults()
        stated = config.get(field)
        found = tuple(stated) if isinstance(stated, str) else tuple(config.listed(field) or ())
        if field == "block_configs":
            found = tuple(block.get("block_type") if isinstance(block, Mapping) else block for block in found)
        names = tuple(_LETTERS.get(str(k), LEGACY_KINDS.get(str(k), str(k))) for k in found)
        strange = sorted(set(names) - set(_NEMOTRON_KINDS))
        if strange or not names:
            config.fault(field, f"{strange[0]!r} is not one of {', '.join(_NEMOTRON_KINDS)}" if strange else "is empty")
            config.raise_faults()
        return names

    return config.derived("nemotron", read)


def _nemotron_count(config: Config) -> int:
    """Return the number of kinds listed; `num_hidden_layers` may be absent, and must not differ where it is not."""
    names, stated = _nemotron_kinds(config), config.optional("num_hidden_layers")
    if stated is not None and stated != len(names):
        config.fault("num_hidden_layers", f"{stated} layers, but the list of what they are has {len(names)}")
        config.raise_faults()
    return len(names)


def _nemotron_shared(config: Config, index: int) -> int:  # the signature of every reader
    shared = config.optional("n_shared_experts", 1, least=0) or 0
    return shared and config.integer("moe_shared_expert_intermediate_size")


_nemotron_mixers = {
    "linear_attention": Mamba2Reader(
        heads="mamba_num_heads",
        head_dim=lambda config: config.integer("mamba_head_dim"),
        groups="n_groups",
        state="ssm_state_size",
        kernel="conv_kernel",
        conv_bias="use_conv_bias",
        bias="use_bias",
    ),
    "full_attention": softmax(),
    "moe": nothing,
    "mlp": nothing,
}
_nemotron_networks = {
    "linear_attention": nothing,
    "full_attention": nothing,
    "moe": Experts(
        gated=False,
        bias=False,
        shared=_nemotron_shared,
        shared_bias="mlp_bias",
        latent="moe_latent_size",
        latent_bias="mlp_bias",
    ),
    "mlp": dense(kind="plain", bias="mlp_bias"),
}


def _nemotron(readers: dict[str, Any]) -> Any:
    def read(config: Config, index: int) -> Any:
        return readers[_nemotron_kinds(config)[index]](_own_fields(config, index), index)

    return read


def _own_fields(config: Config, index: int) -> Config:
    """Nemotron-H found by a search (Puzzle): `block_configs` has, for each layer, fields that replace those of the whole."""
    blocks = config.listed("block_configs", len(_nemotron_kinds(config)))
    block = blocks[index] if blocks is not None else None
    if not isinstance(block, Mapping):
        return config
    return config.overlaid(("block", index), {key: value for key, value in block.items() if value is not None})


# ---- Zamba -----------------------------------------------------------------------------------------------------------


def _zamba_rule(config: Config, index: int) -> str:
    """Zamba: the third layer is hybrid, then one in `attn_layer_period`, counted from the fourth."""
    period, offset = config.integer("attn_layer_period", 6), config.integer("attn_layer_offset", 4, least=0)
    early = 3
    if index < early:
        return "hybrid" if index == early - 1 else "linear_attention"
    return "hybrid" if (index - early) % period == offset else "linear_attention"


def _zamba2_rule(config: Config, index: int) -> str:
    """Zamba2: the class lists the hybrid layers of the 2.7B model."""
    return "hybrid" if index in {6, 12, 18, 24, 30, 36, 42, 47, 51} else "linear_attention"


_zamba_kinds = kinds(_zamba_rule, "layers_block_type", ("linear_attention", "hybrid"))
_zamba2_kinds = kinds(_zamba2_rule, "layers_block_type", ("linear_attention", "hybrid"))
_zamba_mamba = mamba("mamba_", bias="mamba_proj_bias", heads="n_mamba_heads")
_zamba2_mamba = Mamba2Reader(
    heads="n_mamba_heads",
    head_dim=expanded("n_mamba_heads"),
    groups="mamba_ngroups",
    conv_bias=True,
    bias="add_bias_linear",
)


def _place(config: Config, index: int, kind_of: Any) -> int:
    """Return how many hybrid layers come before a layer."""

    def read() -> list[int]:
        places, seen = [], 0
        for i in range(layer_count(config)):
            places.append(seen)
            seen += kind_of(config, i) == "hybrid"
        return places

    return config.derived(("place", kind_of), read)[index]


def _doubled(
    config: Config, *, stored: bool, width: int | None = None, head_dim: int | None = None
) -> SoftmaxAttention:
    """Return attention over the layer's input and the embedding side by side, stored by the first layer that uses it."""
    heads, both = config.integer("num_attention_heads"), 2 * config.integer("hidden_size")
    return build(
        config,
        SoftmaxAttention,
        kind="gqa",
        num_attention_heads=heads,
        num_key_value_heads=config.optional("num_key_value_heads") or heads,
        head_dim=head_dim or max(both // heads, 1),
        input_size=width or both,
        shared_weights=not stored,
    )


def _zamba_stored(config: Config, index: int) -> bool:
    """Zamba: one shared block is used again and again; the first layer that uses it stores it."""
    return _place(config, index, _zamba_kinds) == 0


def _zamba_attention(config: Config, index: int) -> Any:
    if _zamba_kinds(config, index) != "hybrid":
        return _zamba_mamba(config, index)
    block = _doubled(
        config,
        stored=_zamba_stored(config, index),
        width=config.optional("attention_hidden_size"),
        head_dim=config.optional("attention_head_dim"),
    )
    return (block, _zamba_mamba(config, index))


def _zamba_ffn(config: Config, index: int) -> FeedForward | None:
    if _zamba_kinds(config, index) != "hybrid":
        return None
    width, stored = config.integer("intermediate_size"), _zamba_stored(config, index)
    return build(config, FeedForward, kind="gated", intermediate_size=width, shared_weights=not stored)


def _zamba_layer(config: Config, index: int) -> dict[str, Any]:
    """Zamba: a hybrid layer projects the shared block's result; the norms of the shared block stand where it is stored."""
    if _zamba_kinds(config, index) != "hybrid":
        return {"norms": 1}
    hidden = config.integer("hidden_size")
    inner = config.optional("attention_hidden_size") or 2 * hidden
    first = _zamba_stored(config, index)
    linear = Projection(name="linear", input_size=hidden, output_size=hidden)
    return {"norms": 1, "projections": (linear,), "other_parameters": inner + hidden if first else 0}


def _zamba2_stored(config: Config, index: int) -> bool:
    """Zamba2: `num_mem_blocks` shared blocks take turns; the first layer that uses one stores it."""
    return _place(config, index, _zamba2_kinds) < config.integer("num_mem_blocks", 1)


def _zamba2_attention(config: Config, index: int) -> Any:
    if _zamba2_kinds(config, index) != "hybrid":
        return _zamba2_mamba(config, index)
    block = _doubled(config, stored=_zamba2_stored(config, index))
    return (block, _zamba2_mamba(config, index))


def _zamba2_ffn(config: Config, index: int) -> FeedForward | None:
    if _zamba2_kinds(config, index) != "hybrid":
        return None
    return build(
        config,
        FeedForward,
        kind="gated",
        intermediate_size=config.optional("intermediate_size") or 4 * config.integer("hidden_size"),
        bias=flag(config, "add_bias_linear"),
        shared_weights=not _zamba2_stored(config, index),
    )


def _zamba2_layer(config: Config, index: int) -> dict[str, Any]:
    """Zamba2: each use of a shared block has low-rank adapters of its own."""
    if _zamba2_kinds(config, index) != "hybrid":
        return {"norms": 1}
    hidden, rank = config.integer("hidden_size"), config.integer("adapter_rank", 128)
    width = config.optional("intermediate_size") or 4 * hidden
    pairs = [("gate_up_adapter", hidden, 2 * width)]
    if config.flag("use_shared_attention_adapter", default=False):
        pairs += [(f"{name}_adapter", 2 * hidden, 2 * hidden) for name in "qkv"]
    projections = [Projection(name="linear", input_size=hidden, output_size=hidden)]
    for name, before, after in pairs:
        projections.append(Projection(name=f"{name}.0", input_size=before, output_size=rank))
        projections.append(Projection(name=f"{name}.1", input_size=rank, output_size=after))
    others = 3 * hidden if _zamba2_stored(config, index) else 0
    return {"norms": 1, "projections": tuple(projections), "other_parameters": others}


NEMOTRON = Family(
    attention=_nemotron(_nemotron_mixers),
    ffn=_nemotron(_nemotron_networks),
    layers=_nemotron_count,
    tied="never",
    norms=1,
    aliases={
        "head_dim": "attention_head_dim",
        "n_groups": "mamba_n_groups",
        "conv_kernel": "mamba_d_conv",
        "use_conv_bias": "mamba_conv_bias",
    },
    ignored=("time_step_rank", "expand", "mamba_expand", "sliding_window", "attention_bias"),
)

FAMILIES: dict[str, Family] = {
    "nemotron_h_puzzle": NEMOTRON,
    "nemotron_h": NEMOTRON,
    "zamba": Family(attention=_zamba_attention, ffn=_zamba_ffn, layer=_zamba_layer, tied=True),
    "zamba2": Family(
        attention=_zamba2_attention,
        ffn=_zamba2_ffn,
        layer=_zamba2_layer,
        tied=True,
        ignored=(
            "attention_head_dim",
            "attention_hidden_size",
            "hybrid_layer_ids",
            "kv_channels",
            "mamba_headdim",
            "num_query_groups",
        ),
    ),
}
