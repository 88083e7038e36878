"""Mixtures of experts with softmax attention."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, LAYER_SCALE, Family
from planner.importers.huggingface.families.llama_like import exaone_kinds
from planner.importers.huggingface.parts.basics import (
    build,
    every,
    first_layers,
    is_kind,
    kinds,
    layer_count,
)
from planner.importers.huggingface.parts.networks import after_dense, dense, experts, several
from planner.importers.huggingface.parts.softmax import (
    fixed,
    head_dim,
    softmax,
    softmax_kind,
    window_everywhere,
    window_on,
)
from planner.model import Indexer, SoftmaxAttention

SLIDING = ("full_attention", "sliding_attention")
MLP_KINDS = ("dense", "sparse")
_biased = softmax(bias="attention_bias", output_bias="attention_bias")
_normed = softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="head")
_full_normed = softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="full")
_plain_experts = experts(width="intermediate_size")
_shared = several("n_shared_experts")
_one_dense = is_kind(kinds(first_layers("first_k_dense_replace", 1), "mlp_layer_types", MLP_KINDS), "sparse")
_none_dense = is_kind(kinds(first_layers("first_k_dense_replace", 0), "mlp_layer_types", MLP_KINDS), "sparse")


# ---- gpt-oss, Llama 4, ERNIE, Command A ------------------------------------------------------------------------------

_gpt_oss = softmax(
    window=window_on(kinds(every(2, other="sliding_attention"), known=SLIDING)),
    bias="attention_bias",
    output_bias="attention_bias",
    more=fixed(sinks=True),
)


def _llama4_rule(config: Config, index: int) -> str:
    """Llama 4: layers with rotary embedding attend within chunks."""
    listed = config.integers("no_rope_layers")
    interval = config.integer("no_rope_layer_interval", 4)
    rotary = bool(listed[index]) if listed and index < len(listed) else bool((index + 1) % interval)
    return "chunked_attention" if rotary else "full_attention"


_llama4_kinds = kinds(_llama4_rule, known=("full_attention", "chunked_attention"))


def _chunk(config: Config, index: int) -> dict[str, Any]:
    chunk = config.optional("attention_chunk_size")
    return {"attention_chunk_size": chunk if _llama4_kinds(config, index) == "chunked_attention" else None}


def _llama4_sparse(config: Config, index: int) -> bool:
    """Llama 4: `moe_layers` lists the layers with experts; else every `interleave_moe_layer_step`-th has them."""
    listed = config.integers("moe_layers")
    step = config.integer("interleave_moe_layer_step", 1)
    return index in listed if listed is not None else (index + 1) % step == 0


def _ernie_sparse(config: Config, index: int) -> bool:
    last = config.get("moe_layer_end_index")
    end = layer_count(config) - 1 if last in (None, -1) else config.integer("moe_layer_end_index", least=0)
    start, interval = config.integer("moe_layer_start_index", 1, least=0), config.integer("moe_layer_interval", 1)
    return start <= index <= end and (index + 1) % interval == 0


def _expert_count(config: Config, index: int) -> int:  # noqa: ARG001 - the signature of every reader
    return config.integer("num_experts")


def _ernie_head(config: Config) -> dict[str, Any]:
    return {"lm_head_bias": config.flag("use_bias", default=False)}


def _command_rule(config: Config, index: int) -> str:
    """Command A MoE: the dense layers at the start have a pattern of windows of their own."""
    first = config.integer("first_k_dense_replace", 0, least=0)
    field = "prefix_dense_sliding_window_pattern" if index < first else "sliding_window_pattern"
    place = index if index < first else index - first
    return "sliding_attention" if (place + 1) % config.integer(field, 4) else "full_attention"


_command = experts(
    width="intermediate_size",
    shared=several("n_shared_experts", "intermediate_size"),
    sparse=_none_dense,
    otherwise=dense(
        width=lambda config, index: config.optional("prefix_dense_intermediate_size")  # noqa: ARG005
        or config.integer("intermediate_size")
    ),
)


# ---- MiniMax-M3, MiMo, Step ------------------------------------------------------------------------------------------


def _m3_rule(config: Config, index: int) -> str:
    """MiniMax-M3: `sparse_attention_freq` lists the layers with an indexer."""
    listed = config.part("sparse_attention_config").integers("sparse_attention_freq")
    if listed is not None and index >= len(listed):
        config.fault("sparse_attention_config", f"sparse_attention_freq has {len(listed)} items, one for each layer is expected")
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
_m3_sparse = is_kind(
    kinds(
        lambda config, index: "sparse" if after_dense("first_k_dense_replace", 0)(config, index) else "dense",
        "mlp_layer_types",
        MLP_KINDS,
    ),
    "sparse",
)


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


def _step_rule(config: Config, index: int) -> str:  # noqa: ARG001
    return "full_attention"


_step_kinds = kinds(_step_rule, known=SLIDING)


def _step_heads(config: Config, index: int) -> dict[str, Any]:
    """Step 3.5: layers with a window have query heads of their own; every head has a gate."""
    other = config.part("attention_other_setting").optional("num_attention_heads")
    heads = config.optional("num_sliding_attention_heads") or other
    fields: dict[str, Any] = {"output_gate": "head", "gate_bias": False}
    if _step_kinds(config, index) == "sliding_attention" and heads:
        fields["num_attention_heads"] = heads
    return fields


def _step_mlp(config: Config, index: int) -> str:
    listed = config.get("moe_layers_enum")
    if listed is None:
        return "dense" if index < 3 else "sparse"  # noqa: PLR2004 - the first three layers
    names = listed.split(",") if isinstance(listed, str) else (config.listed("moe_layers_enum") or ())
    return "sparse" if str(index) in {str(name).strip() for name in names} else "dense"


# ---- DBRX, Phi-3.5-MoE, AFMoE, Doge ----------------------------------------------------------------------------------


def _dbrx_attention(config: Config, index: int) -> SoftmaxAttention:  # noqa: ARG001
    heads = config.integer("num_attention_heads")
    kv_heads = config.part("attn_config").integer("kv_n_heads", 1)
    if heads % kv_heads:
        config.fault("attn_config", f"kv_n_heads {kv_heads} does not divide n_heads {heads}")
        config.raise_faults()
    return build(
        config,
        SoftmaxAttention,
        kind=softmax_kind(heads, kv_heads),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim(config, heads),
    )


def _dbrx_ffn(config: Config, index: int) -> Any:
    return experts(width="ffn_hidden_size")(config.part("ffn_config", _DBRX_FFN), index)


_DBRX_FFN = {"ffn_hidden_size": 3584, "moe_num_experts": 4, "moe_top_k": 1}


def _phimoe_head(config: Config) -> dict[str, Any]:
    return {"lm_head_bias": config.flag("lm_head_bias", default=False)}


_af_kinds = kinds(every("global_attn_every_n_layers", 4, other="sliding_attention"), known=SLIDING)


_exaone_moe = softmax(window=window_on(exaone_kinds), qk_norm="head")

FAMILIES: dict[str, Family] = {
    "mixtral": Family(attention=softmax(window=window_everywhere), ffn=_plain_experts),
    "gpt_oss": Family(attention=_gpt_oss, ffn=experts(width="intermediate_size", bias=True, router_bias=True)),
    "llama4_text": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_bias", more=_chunk),
        ffn=experts(
            width="intermediate_size",
            shared=lambda config, index: config.integer("intermediate_size"),  # noqa: ARG005
            sparse=_llama4_sparse,
            otherwise=dense(width="intermediate_size_mlp"),
        ),
        ignored=("use_qk_norm", "attn_temperature_tuning", "for_llm_compressor"),
    ),
    "phimoe": Family(
        attention=softmax(window=window_everywhere, bias="attention_bias", output_bias="attention_bias"),
        ffn=_plain_experts,
        norm=LAYER,
        model=_phimoe_head,
    ),
    "olmoe": Family(attention=_full_normed, ffn=_plain_experts, ignored=("clip_qkv",)),
    "flex_olmo": Family(attention=_full_normed, ffn=_plain_experts),
    "granitemoe": Family(attention=_biased, ffn=_plain_experts),
    "granitemoeshared": Family(
        attention=_biased, ffn=experts(width="intermediate_size", shared="shared_intermediate_size")
    ),
    "ernie4_5_moe": Family(
        attention=softmax(bias="use_bias", output_bias="use_bias"),
        ffn=experts(
            router_parameters=_expert_count,
            shared=several("n_shared_experts"),
            shared_bias="use_bias",
            sparse=_ernie_sparse,
            otherwise=dense(bias="use_bias"),
        ),
        model=_ernie_head,
        tied=True,
    ),
    "cohere2_moe": Family(
        attention=softmax(
            window=window_on(kinds(_command_rule, known=SLIDING)),
            bias="attention_bias",
            output_bias="attention_bias",
        ),
        ffn=_command,
        norm=LAYER_SCALE,
        norms=1,
        tied=True,
    ),
    "exaone_moe": Family(
        attention=_exaone_moe, ffn=experts(shared=several("n_shared_experts"), sparse=_one_dense)
    ),
    "hunyuan_v1_moe": Family(
        attention=_normed,
        ffn=experts(
            width="intermediate_size", shared=lambda config, index: config.integer("intermediate_size")  # noqa: ARG005
        ),
    ),
    "hy_v3": Family(
        attention=_normed,
        ffn=experts(
            shared=several("n_shared_experts"),
            shared_bias="mlp_bias",
            sparse=_one_dense,
            otherwise=dense(bias="mlp_bias"),
        ),
    ),
    "sarvam_moe": Family(attention=_normed, ffn=experts(shared=several("n_shared_experts"), sparse=_one_dense)),
    "dots1": Family(
        attention=softmax(
            window=window_on(
                kinds(
                    lambda config, index: "sliding_attention"
                    if config.optional("sliding_window") and index >= config.integer("max_window_layers", 62, least=0)
                    else "full_attention",
                    known=SLIDING,
                )
            ),
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
        ),
        ffn=experts(shared=_shared, sparse=after_dense()),
    ),
    "solar_open": Family(attention=softmax(bias="attention_bias"), ffn=experts(shared=_shared)),
    "minimax_m2": Family(
        attention=softmax(qk_norm=lambda config, index: "full" if config.flag("use_qk_norm", default=True) else None),  # noqa: ARG005
        ffn=_plain_experts,
    ),
    "minimax_m3_vl_text": Family(
        attention=softmax(qk_norm="head", more=_m3_index),
        ffn=experts(
            width="intermediate_size",
            shared="shared_intermediate_size",
            sparse=_m3_sparse,
            otherwise=dense(width="dense_intermediate_size"),
        ),
        ignored=("moe_intermediate_size", "use_qk_norm", "qk_norm_type", "attention_output_gate", "n_shared_experts"),
    ),
    "mimo_v2_flash": Family(
        attention=softmax(window=_mimo_window, bias="attention_bias", more=_mimo_heads),
        ffn=experts(
            shared=_shared,
            sparse=is_kind(
                kinds(
                    lambda config, index: "sparse" if after_dense("first_k_dense_replace", 1)(config, index) else "dense",
                    "mlp_layer_types",
                    MLP_KINDS,
                ),
                "sparse",
            ),
        ),
        ignored=("attention_chunk_size", "head_dim"),
    ),
    "step3p5": Family(
        attention=softmax(
            window=window_on(_step_kinds),
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
            more=_step_heads,
        ),
        ffn=experts(
            shared="share_expert_dim",
            shared_bias="mlp_bias",
            sparse=is_kind(kinds(_step_mlp, "mlp_layer_types", MLP_KINDS), "sparse"),
            otherwise=dense(bias="mlp_bias"),
        ),
        aliases={"num_key_value_heads": "num_attention_groups", "share_expert_dim": "share_expert_dims"},
    ),
    "dbrx": Family(
        attention=_dbrx_attention,
        ffn=_dbrx_ffn,
        norm=LAYER_SCALE,
        aliases={"num_attention_heads": "n_heads", "num_hidden_layers": "n_layers", "hidden_size": "d_model"},
    ),
    "afmoe": Family(
        attention=softmax(
            window=window_on(_af_kinds),
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
            more=fixed(output_gate="element", gate_bias=False),
        ),
        ffn=experts(
            router_parameters=_expert_count,
            shared=several("n_shared_experts"),
            sparse=lambda config, index: index >= config.integer("num_dense_layers", 0, least=0),
        ),
        norms=4,
    ),
    "aria_text": Family(
        attention=_biased,
        ffn=experts(
            width="intermediate_size", shared=several("n_shared_experts", "intermediate_size")
        ),
    ),
    "mellum": Family(
        attention=softmax(
            window=window_on(kinds(lambda config, index: "full_attention", known=SLIDING)),  # noqa: ARG005
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
        ),
        ffn=experts(),
    ),
}

