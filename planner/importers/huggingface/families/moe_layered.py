"""Mixtures of experts whose layers differ in their attention: sparse ones, windows with heads of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import SLIDING, build, each, flag, kinds
from planner.importers.huggingface.parts.networks import (
    Experts,
    after_dense,
    dense,
    qwen_sparse,
    several,
    sparse_listed,
    sparse_where,
)
from planner.importers.huggingface.parts.softmax import softmax, softmax_kind, window_on
from planner.model import Indexer, SoftmaxAttention

_shared = several("n_shared_experts")

# ---- MiniMax-M3, MiMo, Step ------------------------------------------------------------------------------------------


def _m3_rule(config: Config, index: int) -> str:
    """MiniMax-M3: `sparse_attention_freq` lists the layers with an indexer."""
    listed = config.part("sparse_attention_config").integers("sparse_attention_freq")
    if listed is not None and index >= len(listed):
        config.fault(
            "sparse_attention_config", f"sparse_attention_freq has {len(listed)} items, one for each layer is expected"
        )
        config.raise_faults()
    return "minimax_m3_sparse" if listed and listed[index] else "full_attention"


def _m3_index(config: Config, index: int) -> dict[str, Any]:
    """MiniMax-M3: an indexer picks blocks of positions; those of the block scores' best are attended to."""
    if _m3_kinds(config, index) != "minimax_m3_sparse":
        return {}
    older = config.part("sparse_attention_config")
    heads = older.optional("sparse_num_index_heads") or config.integer("index_n_heads", 4)
    dim = older.optional("sparse_index_dim") or config.integer("index_head_dim", 128)
    size = older.optional("sparse_block_size") or config.integer("index_block_size", 128)
    blocks = older.optional("sparse_topk_blocks") or config.integer("index_topk_blocks", 16)
    return {
        "indexer": build(config, Indexer, num_heads=heads, head_dim=dim, head_weights=False),
        "index_topk": size * blocks,
    }


_m3_kinds = kinds(_m3_rule, known=("full_attention", "minimax_m3_sparse"))
_m3_sparse = sparse_where(after_dense())


def _mimo_rule(config: Config, index: int) -> str:
    """MiMo-V2: `hybrid_layer_pattern` marks the layers with a window; else all but the first and every sixth."""
    listed = config.integers("hybrid_layer_pattern")
    if listed is not None and index < len(listed):
        return "sliding_attention" if listed[index] else "full_attention"
    return "full_attention" if index == 0 or not (index + 1) % 6 else "sliding_attention"


_mimo_kinds = kinds(_mimo_rule, known=SLIDING)


def _mimo_window(config: Config, index: int) -> int | None:
    """MiMo-V2: `sliding_window_size` counts the tokens before the query, `sliding_window` the query as well."""
    before, window = config.optional("sliding_window_size"), config.optional("sliding_window")
    if _mimo_kinds(config, index) == "full_attention":
        return None
    return before + 1 if before is not None else window


def _mimo_heads(config: Config, index: int) -> dict[str, Any]:
    """MiMo-V2: layers with a window have head counts of their own, twice the KV heads where nothing is said, and sinks."""
    fields: dict[str, Any] = {"v_head_dim": config.optional("v_head_dim")}
    if _mimo_kinds(config, index) == "full_attention":
        return {**fields, "sinks": config.flag("add_full_attention_sink_bias", default=False)}
    heads = config.integer("swa_num_attention_heads", config.integer("num_attention_heads"))
    return {
        "num_attention_heads": heads,
        "num_key_value_heads": config.integer("swa_num_key_value_heads", 2 * config.integer("num_key_value_heads")),
        "head_dim": config.integer("swa_head_dim", config.integer("head_dim")),
        "v_head_dim": config.optional("swa_v_head_dim") or fields["v_head_dim"],
        "sinks": config.flag("add_swa_attention_sink_bias", default=True),
    }


_MIMO_NOISE = ("attention_chunk_size", "attention_projection_layout")


def _step_rule(config: Config, index: int) -> str:
    return "full_attention"


_step_kinds = kinds(_step_rule, known=SLIDING)


def _step_heads(config: Config, index: int) -> dict[str, Any]:
    """Step 3.5: layers with a window have query heads of their own; every head has a gate, unless the file says it has none."""
    other = config.part("attention_other_setting").optional("num_attention_heads")
    heads = config.optional("num_sliding_attention_heads") or other
    gated = config.flag("use_head_wise_attn_gate", default=True)
    fields: dict[str, Any] = {"output_gate": "head", "gate_bias": False} if gated else {}
    if _step_kinds(config, index) == "sliding_attention" and heads:
        fields["num_attention_heads"] = heads
    return fields


def _jet_attention(config: Config, index: int) -> SoftmaxAttention:  # the signature of every reader
    """JetMoE: attention has experts too, each a projection of queries and of the output, over the same keys and values."""
    chosen, groups = config.integer("num_experts_per_tok"), config.integer("num_key_value_heads")
    return build(
        config,
        SoftmaxAttention,
        kind=softmax_kind(chosen * groups, groups),
        num_attention_heads=chosen * groups,
        num_key_value_heads=groups,
        head_dim=config.integer("head_dim"),
        query_experts=config.integer("num_experts"),
        query_experts_per_tok=chosen,
    )


def _jet_layer(config: Config, index: int) -> dict[str, Any]:
    """JetMoE: a bias on the sum of the experts' results, of attention and of the network."""
    return {"other_parameters": 2 * config.integer("hidden_size")}


# ---- K2 Horizon ------------------------------------------------------------------------------------------------------


def _horizon_heads(config: Config, index: int) -> dict[str, Any]:
    """K2 Horizon: layers with experts have experts of values as well; a gate for each element of the result."""
    fields: dict[str, Any] = {}
    if config.given("attention_gate_func"):
        fields |= {"output_gate": "element", "gate_bias": False}
    experts = config.optional("mova_num_experts", 0, least=0)
    if experts and _horizon_sparse(config, index):
        fields |= {"value_experts": experts, "value_experts_per_tok": config.integer("mova_num_experts_per_tok")}
    return fields


def _horizon_sparse(config: Config, index: int) -> bool:
    return qwen_sparse(config, index) and bool(config.optional("num_experts", 0, least=0))


def _horizon_layer(config: Config, index: int) -> dict[str, Any]:
    """K2 Horizon: a correction for each expert of values."""
    more = _horizon_heads(config, index).get("value_experts", 0)
    return {"other_parameters": more if flag(config, "moe_gate_bias") else 0}


MIMO = Family(
    attention=softmax(window=_mimo_window, bias="attention_bias", more=_mimo_heads),
    ffn=Experts(
        shared=_shared,
        sparse=sparse_where(after_dense(default=1)),
    ),
    ignored=_MIMO_NOISE,
)

FAMILIES: dict[str, Family] = {
    "k2_horizon": Family(
        attention=softmax(
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm=each(lambda config: "full" if flag(config, "query_key_norm") else None),
            more=_horizon_heads,
        ),
        ffn=Experts(shared=_shared, router_bias="moe_gate_bias", sparse=_horizon_sparse),
        layer=_horizon_layer,
        ignored=(
            "layernorm_num_groups",
            "rope_head_dim",
            "router_score_func",
            "mlp_only_layers",
            "decoder_sparse_step",
        ),
    ),
    "jetmoe": Family(
        attention=_jet_attention,
        ffn=Experts(width="intermediate_size"),
        layer=_jet_layer,
        tied=True,
        aliases={"head_dim": "kv_channels"},
        ignored=("num_attention_heads",),
    ),
    "minimax_m3_vl_text": Family(
        attention=softmax(qk_norm="head", more=_m3_index),
        ffn=Experts(
            width="intermediate_size",
            shared="shared_intermediate_size",
            sparse=_m3_sparse,
            otherwise=dense(width="dense_intermediate_size"),
        ),
        ignored=("moe_intermediate_size", "use_qk_norm", "qk_norm_type", "attention_output_gate", "n_shared_experts"),
    ),
    "mimo_v2_flash": MIMO,
    "mimo_v2": MIMO,
    "mimo_v2_omni": replace(MIMO, at_top=True),
    "step3p5": Family(
        attention=softmax(
            window=window_on(_step_kinds),
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
            more=_step_heads,
        ),
        ffn=Experts(
            shared="share_expert_dim",
            shared_bias="mlp_bias",
            sparse=sparse_where(sparse_listed("moe_layers_enum", first=3)),
            otherwise=dense(bias="mlp_bias"),
        ),
        aliases={"num_key_value_heads": "num_attention_groups", "share_expert_dim": "share_expert_dims"},
        ignored=("per_layer_config", "use_qk_norm"),
    ),
}
