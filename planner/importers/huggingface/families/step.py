"""Step-1 and Step 5, as vLLM's model files define them (step1, models/step5; 0.33.0)."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import SLIDING, build, flag, kinds
from planner.importers.huggingface.parts.networks import Experts, dense, sparse_listed
from planner.importers.huggingface.parts.softmax import softmax, window_on
from planner.model import Indexer, Projection

# ---- Step 5 ----------------------------------------------------------------------------------------------------------


def _step5_rule(config: Config, index: int) -> str:
    """Step 5: `layer_types_with_mtp` lists the layers where `layer_types` does not; else every other one has a window."""
    listed = config.listed("layer_types_with_mtp")
    if listed is not None and index < len(listed):
        return str(listed[index])
    return "full_attention" if index % 2 else "sliding_attention"


_kinds = kinds(_step5_rule, known=SLIDING)


def _is_sparse(config: Config, index: int) -> bool:
    """Whether a layer has an indexer: those without a window, where `sparse_config` is there and not switched off."""
    sparse = config.part("sparse_config")
    used = config.given("sparse_config") and sparse.flag("enabled", default=True)
    return used and _kinds(config, index) == "full_attention"


def _heads(config: Config, index: int) -> dict[str, Any]:
    """Step 5: layers of one kind may have heads of their own; an indexer scores runs of tokens, of which the best are attended to."""
    fields: dict[str, Any] = {}
    if flag(config, "use_head_wise_attn_gate"):
        fields |= {"output_gate": "head", "gate_bias": False}
    kind, other = _kinds(config, index), config.part("attention_other_setting")
    if kind == "sliding_attention" and config.optional("swa_num_attention_heads"):
        fields["num_attention_heads"] = config.integer("swa_num_attention_heads")
    if config.given("attention_other_setting") and kind == other.text("attention_type"):
        fields |= {
            "num_attention_heads": other.integer("num_attention_heads"),
            "num_key_value_heads": other.integer("num_attention_groups"),
            "head_dim": other.integer("head_dim"),
        }
    return fields | (_index(config) if _is_sparse(config, index) else {})


def _index(config: Config) -> dict[str, Any]:
    sparse = config.part("sparse_config")
    run = sparse.integer("region_block_size", 8)
    indexer = build(
        config,
        Indexer,
        num_heads=sparse.integer("sparse_indexer_num_heads", 16),
        head_dim=sparse.integer("proxy_dim", 256),
        pool=run,
    )
    return {"indexer": indexer, "index_topk": run * sparse.integer("topk", 512)}


def _layer(config: Config, index: int) -> dict[str, Any]:
    """Step 5: a gate by which the indexer's keys are merged, a norm of its queries, and a number for each query head."""
    if not _is_sparse(config, index):
        return {}
    size = config.part("sparse_config").integer("proxy_dim", 256)
    gate = Projection(name="sparse_indexer_z", input_size=config.integer("hidden_size"), output_size=size)
    return {"projections": (gate,), "other_parameters": size + config.integer("num_attention_heads")}


def _shared(config: Config, index: int) -> int:  # the signature of every reader
    chosen = config.integer("num_experts_per_tok") * config.integer("moe_intermediate_size")
    return config.optional("share_expert_dim") or chosen


STEP5 = Family(
    attention=softmax(window=window_on(_kinds), qk_norm="head", more=_heads),
    ffn=Experts(shared=_shared, sparse=sparse_listed("moe_layers_enum", "moe_layer_list")),
    layer=_layer,
    aliases={"num_key_value_heads": "num_attention_groups"},
    ignored=(
        "att_impl_type",
        "head_dim_full_attention",
        "head_dim_sliding_attention",
        "max_seq_len",
        "moe_router_activation",
        "need_fp32_gate",
        "norm_dtype",
        "norm_expert_weight",
        "num_attention_groups_full_attention",
        "num_attention_groups_sliding_attention",
        "num_sliding_attention_heads",
        "partial_rotary_factors",
        "swiglu_limits",
        "swiglu_limits_shared",
        "use_moe",
        "use_rope_layers",
        "yarn_only_types",
        "zero_centered",
    ),
)


# ---- Step-1 ----------------------------------------------------------------------------------------------------------


def _groups(config: Config, index: int) -> dict[str, Any]:
    """Step-1: one KV head where nothing is said of them."""
    return {} if config.given("num_key_value_heads") else {"num_key_value_heads": 1}


FAMILIES: dict[str, Family] = {
    "step1": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_bias", derived_dim=True, more=_groups),
        ffn=dense(bias="mlp_bias"),
        tied=True,
        aliases={"num_key_value_heads": "num_attention_groups"},
    ),
    "step4": STEP5,
    "step5": STEP5,
    "step5_vl": Family(text="step5"),
    "step3p5v": Family(text="step5"),
    "step_robotics": Family(text="qwen3"),
}
"""A preview of Step 5 calls its text part `step4`, and the whole `step3p5v`."""
