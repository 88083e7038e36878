"""Latent attention with a turn of its own: A.X K2, Mistral Large 4, dots3.note, GLM-5 Next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.deepseek import hyper_connections
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import (
    choose,
    first_layers,
    kinds,
)
from planner.importers.huggingface.parts.latent import full_by_frequency, indexer_by_type, latent, own_indexer
from planner.importers.huggingface.parts.networks import Experts, after_dense, several, sparse_by_type, sparse_where
from planner.importers.huggingface.parts.recurrent import kimi_delta
from planner.importers.huggingface.parts.softmax import fixed
from planner.model import Projection

_shared = several("n_shared_experts")


# ---- A.X K2 ----------------------------------------------------------------------------------------------------------

_axk2_sparse = sparse_where(after_dense(default=1))


def _axk2_layer(config: Config, index: int) -> dict[str, Any]:
    """A.X K2: norms whose result is gated by a low-rank projection, the second one before experts only."""
    hidden, rank = config.integer("hidden_size"), config.integer("gated_norm_rank")
    names = ("input_layernorm", "post_attention_layernorm")[: 2 if _axk2_sparse(config, index) else 1]
    projections = []
    for name in names:
        projections.append(Projection(name=f"{name}.fc1", input_size=hidden, output_size=rank))
        projections.append(Projection(name=f"{name}.fc2", input_size=rank, output_size=hidden))
    return {"projections": tuple(projections)}


# ---- Mistral Large 4 -------------------------------------------------------------------------------------------------

_indexed = indexer_by_type(kinds(full_by_frequency, "indexer_types", ("full", "shared")))


def _large_rotates(config: Config, index: int) -> bool:
    """Mistral Large 4: every fourth layer has no rotary embedding, or those that `no_rope_layers` marks with 0."""
    listed = config.integers("no_rope_layers")
    if listed is not None and index < len(listed):
        return bool(listed[index])
    return (index + 1) % config.integer("no_rope_layer_interval", 4) != 0


def _large_heads(config: Config, index: int) -> dict[str, Any]:
    sources = config.integers("kv_source_layers")
    if sources is not None and any(source != place for place, source in enumerate(sources)):
        config.fault("kv_source_layers", "layers that use another's keys and values are not supported")
        config.raise_faults()
    if _large_rotates(config, index):
        return {}
    whole = config.integer("qk_nope_head_dim") + config.integer("qk_rope_head_dim", least=0)
    return {"qk_nope_head_dim": whole, "qk_rope_head_dim": 0}


def _large_layer(config: Config, index: int) -> dict[str, Any]:
    """Mistral Large 4: a scale and an offset for each head, and where there is an indexer for its heads and its input."""
    others = 2 * config.integer("num_attention_heads")
    if _indexed(config, index) is not None:
        others += 2 * config.integer("index_n_heads") + 2 * config.integer("hidden_size")
    return {"other_parameters": others}


def _large_model(config: Config) -> dict[str, Any]:
    """Mistral Large 4: a learned correction for each frequency of the rotary embedding."""
    return {"other_parameters": config.integer("qk_rope_head_dim", least=0) // 2}


# ---- dots3.note ------------------------------------------------------------------------------------------------------


def _dots_rule(config: Config, index: int) -> str:
    """dots3.note: the first two layers and the second of each four look at everything, the others through a window."""
    if not config.flag("use_sliding_window", default=True) or index < 2 or index % 4 == 1:
        return "indexed_attention"
    return "sliding_attention"


_dots_kinds = kinds(_dots_rule, known=("full_attention", "indexed_attention", "sliding_attention"))
_SLIDING_DEFAULTS = {
    "num_attention_heads": 64,
    "q_lora_rank": 2 * 512,
    "kv_lora_rank": 2 * 512,
    "qk_nope_head_dim": 192,
    "v_head_dim": 128,
}


def _dots_sliding(config: Config, index: int) -> dict[str, Any]:
    """Return the shape of a layer with a window: from `per_layer_config`, or fields with the prefix ``swa_``."""
    stated = config.get("per_layer_config")
    own = stated.get(str(index)) if isinstance(stated, Mapping) else None
    part = Config(own if isinstance(own, Mapping) else {}, "", prefix=f"per_layer_config.{index}.", is_part=True)
    part.faults = config.faults
    found: dict[str, Any] = {}
    for name, default in _SLIDING_DEFAULTS.items():
        usual = config.integer(name) if isinstance(own, Mapping) else config.integer(f"swa_{name}", default)
        found[name] = part.integer(name, usual)
    rope = config.integer("swa_head_dim", 256) - config.integer("swa_qk_nope_head_dim", 192)
    usual = config.integer("qk_rope_head_dim") if isinstance(own, Mapping) else rope
    found["qk_rope_head_dim"] = part.integer("qk_rope_head_dim", config.integer("swa_qk_rope_head_dim", usual))
    found["sliding_window"] = config.optional("sliding_window") or config.integer("sliding_window_size", 512)
    return found | {"indexer": None, "index_topk": None}


def _dots_sparse_attention(config: Config, index: int) -> bool:
    kind = _dots_kinds(config, index)
    stated = config.get("use_dsa")
    dsa = stated if stated is not None else (kind == "indexed_attention" or config.get("per_layer_config") is None)
    return kind != "sliding_attention" and bool(dsa)


_dots_attention = latent(
    indexer=own_indexer,
    indexed=_dots_sparse_attention,
    more=lambda config, index: {
        "output_gate": "head",
        **(_dots_sliding(config, index) if _dots_kinds(config, index) == "sliding_attention" else {}),
    },
)


def _dots_layer(config: Config, index: int) -> dict[str, Any]:
    """dots3.note: a norm of the rotated part of the key."""
    return {"other_parameters": _dots_attention(config, index).qk_rope_head_dim}


# ---- GLM-5 Next ------------------------------------------------------------------------------------------------------


def _next_rule(config: Config, index: int) -> str:  # the signature of every rule
    return "linear_attention" if (index + 1) % 4 else "indexed_attention"


_next_kinds = kinds(_next_rule, known=("linear_attention", "full_attention", "indexed_attention"))
_next_latent = latent(indexer=_indexed)
_next_delta = kimi_delta("linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim")


def _next_linear(config: Config, index: int) -> Any:
    """GLM-5 Next: older files keep the shape of linear attention in a part of its own."""
    if config.get("linear_attn_config") is not None:
        config.fault("linear_attn_config", "older files with this part are not supported, state linear_num_heads etc.")
        config.raise_faults()
    return _next_delta(config, index)


def _next_layer(config: Config, index: int) -> dict[str, Any]:
    """GLM-5 Next: several residual streams; the indexer's keys are merged in runs, by gates and a bias by position."""
    fields = config.derived("hc", lambda: hyper_connections(config, mixes=True))
    if _next_kinds(config, index) == "linear_attention" or _indexed(config, index) is None:
        return fields
    dim = config.integer("index_head_dim")
    gate = Projection(name="indexer.compress_gate", input_size=config.integer("hidden_size"), output_size=dim)
    return {
        "projections": (*fields["projections"], gate),
        "other_parameters": fields["other_parameters"] + config.integer("index_kpool") * dim,
    }


_next_attention = choose(
    _next_kinds,
    {"linear_attention": _next_linear, "full_attention": _next_latent, "indexed_attention": _next_latent},
    "layer_types",
)


FAMILIES: dict[str, Family] = {
    "axk2": Family(
        attention=latent(indexer=own_indexer, more=fixed(output_gate="element", fused_gate=True)),
        ffn=Experts(shared=_shared, sparse=_axk2_sparse),
        layer=_axk2_layer,
        ignored=("layer_types", "moe_layer_freq"),
    ),
    "mistral_large4_text": Family(
        attention=latent(indexer=_indexed, indexed=lambda config, index: True, more=_large_heads),
        ffn=Experts(shared=_shared, sparse=sparse_where(after_dense(default=1))),
        layer=_large_layer,
        model=_large_model,
        ignored=("layer_types",),
    ),
    "dots3_note_text": Family(
        attention=_dots_attention,
        ffn=Experts(
            shared=several("n_shared_experts", "shared_experts_intermediate_size"),
            sparse=sparse_where(after_dense(default=1)),
        ),
        layer=_dots_layer,
        aliases={"shared_experts_intermediate_size": "moe_shared_expert_intermediate_size"},
        ignored=("mlp_bias", "swa_num_key_value_heads"),
    ),
    "glm5_next_text": Family(
        attention=_next_attention,
        ffn=Experts(
            shared=_shared,
            sparse=sparse_by_type(first_layers("first_k_dense_replace", 3)),
        ),
        layer=_next_layer,
        ignored=("index_kpool_always_select_tail", "linear_lower_bound", "head_dim"),
    ),
}
