"""Samba and its descendants, Mamba between layers of attention that look through a window: PLaMo 2, Phi-4-mini-flash.

Facts: vLLM's classes (model_executor/models/plamo2.py, phi4flash.py), and the papers (arXiv 2509.04897, 2507.06607).
"""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, Family
from planner.importers.huggingface.parts.basics import build, layer_count
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.recurrent import mamba
from planner.importers.huggingface.parts.softmax import fixed, heads_of, softmax
from planner.model import GatedMemory, Mamba

# ---- PLaMo 2 ---------------------------------------------------------------------------------------------------------


def _plamo_attends(config: Config, index: int) -> bool:
    """PLaMo 2: the middle layer of each run of `mamba_step`; a stack without a middle ends with attention."""
    if not config.flag("mamba_enabled", default=True):
        return True
    layers, step = layer_count(config), config.integer("mamba_step", 2)
    return index == layers - 1 if layers <= step // 2 else index % step == step // 2


def _plamo_window(config: Config, index: int) -> int | None:
    full = config.integers("full_attention_idx") or ()
    return None if index in full else config.optional("attention_window_size")


_plamo_attention = softmax(
    window=_plamo_window,
    qk_norm="full",
    more=fixed(head_dim=lambda config, index: config.integer("hidden_size_per_head", 128)),
)


def _plamo_mixer(config: Config, index: int) -> Any:
    """PLaMo 2: Mamba with a time step for each head; steps and states pass norms."""
    if config.optional("n_expert", least=0):
        config.fault("n_expert", "experts of PLaMo 2 are not described")
        config.raise_faults()
    if _plamo_attends(config, index):
        return _plamo_attention(config, index)
    heads = config.integer("mamba_num_heads", 64)
    return build(
        config,
        Mamba,
        kind="mamba",
        inner_size=heads * config.integer("hidden_size_per_head", 128),
        state_size=config.integer("mamba_d_state", 64),
        time_step_rank=max(64, config.integer("hidden_size") // 16),
        conv_kernel=config.integer("mamba_d_conv", 4),
        conv_bias=False,
        inner_norms=True,
        time_steps=heads,
    )


_PLAMO_NOISE = (
    "capacity_factor",
    "eval_attention_n_bit",
    "eval_mlp_n_bit",
    "expert_dropout",
    "fp8_accum_dtype",
    "group_size",
    "image_feature_size",
    "image_proj_type",
    "linear_type",
    "mamba_chunk_size",
    "mamba_num_heads",
    "sliding_window",
    "use_predefined_initial_state",
)
"""Fields of PLaMo 2's files that speak of training, restate others, or belong to a picture model."""

# ---- Phi-4-mini-flash ------------------------------------------------------------------------------------------------


def _is_cross(config: Config, index: int) -> bool:
    """Whether a layer is of the cross-decoder, which shares one layer's keys and values, and another's recurrence."""
    return index >= layer_count(config) // 2 + 2


def _flash_window(config: Config, index: int) -> int | None:
    """Phi-4-mini-flash: layers of the first half look through a window, or those of `layer_types`; some files list a window for each."""
    layers = layer_count(config)
    if isinstance(config.get("sliding_window"), list):
        listed = config.listed("sliding_window", layers) or (None,) * layers
        found = listed[index]
        if found is not None and (isinstance(found, bool) or not isinstance(found, int) or found < 1):
            config.fault("sliding_window", f"item {index} is not a number of tokens, or null")
            config.raise_faults()
        return found
    types = config.listed("layer_types", layers)
    is_local = types[index] == "sliding_attention" if types else index < layers // 2
    return config.optional("sliding_window") if is_local else None


_flash_mamba = mamba("mamba_", bias="mamba_proj_bias")
_flash_attention = softmax(
    window=_flash_window,
    bias=True,
    output_bias=True,
    derived_dim=True,
    more=fixed(differential=True, shared_kv=_is_cross),
)


def _flash_uses_mamba(config: Config, index: int) -> bool:
    period = config.integer("mb_per_layer", 2, least=0)
    return period > 0 and index % period == 0


def _flash_mixer(config: Config, index: int) -> Any:
    """Phi-4-mini-flash (SambaY): Mamba and differential attention in turn, then gates on its memory and shared keys and values."""
    if not _flash_uses_mamba(config, index):
        return _flash_attention(config, index)
    found = _flash_mamba(config, index)
    if not _is_cross(config, index):
        return found
    return build(config, GatedMemory, kind="gated_memory", inner_size=found.inner_size)


def _flash_layer(config: Config, index: int) -> dict[str, Any]:
    """Phi-4-mini-flash: four vectors weigh the two maps of a pair of heads, whose result passes a norm."""
    if _flash_uses_mamba(config, index):
        return {}
    heads, _ = heads_of(config, "num_attention_heads", "num_key_value_heads")
    return {"other_parameters": 6 * (config.integer("hidden_size") // heads)}


def _flash_model(config: Config) -> dict[str, Any]:
    first = layer_count(config) // 2 + 2
    note = (
        f"layers from number {first + 1} on keep no keys of their own: an engine may run them for the last token of a prompt alone; "
        "here prefill counts every token in every layer"
    )
    return {"lm_head_bias": config.flag("lm_head_bias", default=False), "notes": (note,)}


FAMILIES: dict[str, Family] = {
    "plamo2": Family(attention=_plamo_mixer, ffn=dense(), norms=4, tied=True, ignored=_PLAMO_NOISE),
    "phi4flash": Family(
        attention=_flash_mixer,
        ffn=dense(bias="mlp_bias"),
        layer=_flash_layer,
        model=_flash_model,
        norm=LAYER,
        tied=True,
        defaults={"mamba_d_state": 16, "mamba_d_conv": 4},
        ignored=("sliding_window",),
    ),
}
