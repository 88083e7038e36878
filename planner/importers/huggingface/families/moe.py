"""Mixtures of experts with softmax attention."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, LAYER_SCALE, Family
from planner.importers.huggingface.families.llama_like import exaone_kinds
from planner.importers.huggingface.parts.basics import (
    SLIDING,
    always,
    build,
    each,
    every,
    first_layers,
    kinds,
    layer_count,
)
from planner.importers.huggingface.parts.networks import Experts, after_dense, dense, several, sparse_by_type
from planner.importers.huggingface.parts.softmax import (
    fixed,
    head_dim,
    softmax,
    softmax_kind,
    window_everywhere,
    window_on,
)
from planner.model import FeedForward, MixtureOfExperts, SoftmaxAttention

_biased = softmax(bias="attention_bias", output_bias="attention_bias")
_normed = softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="head")
_full_normed = softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="full")
_plain_experts = Experts(width="intermediate_size")
_shared = several("n_shared_experts")
_one_dense = sparse_by_type(first_layers("first_k_dense_replace", 1))
_none_dense = sparse_by_type(first_layers("first_k_dense_replace", 0))


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


def expert_count(config: Config, index: int) -> int:  # the signature of every reader
    """Return the number of experts: a learned correction for each of them."""
    return config.integer("num_experts")


def _ernie_head(config: Config) -> dict[str, Any]:
    return {"lm_head_bias": config.flag("use_bias", default=False)}


def _command_rule(config: Config, index: int) -> str:
    """Command A MoE: the dense layers at the start have a pattern of windows of their own."""
    first = config.integer("first_k_dense_replace", 0, least=0)
    field = "prefix_dense_sliding_window_pattern" if index < first else "sliding_window_pattern"
    place = index if index < first else index - first
    return "sliding_attention" if (place + 1) % config.integer(field, 4) else "full_attention"


_command = Experts(
    width="intermediate_size",
    shared=several("n_shared_experts", "intermediate_size"),
    sparse=_none_dense,
    otherwise=dense(
        width=each(
            lambda config: config.optional("prefix_dense_intermediate_size") or config.integer("intermediate_size")
        )
    ),
)


# ---- DBRX, Phi-3.5-MoE, AFMoE, Doge ----------------------------------------------------------------------------------


def _dbrx_attention(config: Config, index: int) -> SoftmaxAttention:
    heads = config.integer("num_attention_heads")
    kv_heads = config.part("attn_config").integer("kv_n_heads", 1)
    if heads % kv_heads:
        config.conflict("attn_config", f"kv_n_heads {kv_heads} does not divide n_heads {heads}")
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
    return Experts(width="ffn_hidden_size")(config.part("ffn_config", _DBRX_FFN), index)


_DBRX_FFN = {"ffn_hidden_size": 3584, "moe_num_experts": 4, "moe_top_k": 1}


def _phimoe_head(config: Config) -> dict[str, Any]:
    return {"lm_head_bias": config.flag("lm_head_bias", default=False)}


_af_kinds = kinds(every("global_attn_every_n_layers", 4, other="sliding_attention"), known=SLIDING)


_exaone_moe = softmax(window=window_on(exaone_kinds), qk_norm="head")

# ---- Hunyuan ---------------------------------------------------------------------------------------------------------


def reads_earlier_keys(config: Config, index: int) -> bool:
    """Hunyuan-Large: a layer in so many makes keys and values, which those after it read as well (cross-layer attention)."""
    factor = config.optional("cla_share_factor") or 1
    return config.flag("use_cla", default=False) and index % factor != 0


def hunyuan_network(config: Config, index: int) -> FeedForward | MixtureOfExperts:
    """Hunyuan: numbers may be lists by layer, one expert is a dense network, shared experts are so many of the dense width.

    Facts: vLLM's class of Hunyuan (model_executor/models/hunyuan_v1.py).
    """

    def number(field: str, default: int) -> int:
        return config.at_layer(field, index, layer_count(config)) if config.has(field) else default

    width, total, top = config.integer("intermediate_size"), number("num_experts", 1), number("num_experts_per_tok", 1)
    own, shared = number("moe_intermediate_size", width), number("num_shared_expert", 1)
    if total == 1:
        config.get("use_mixed_mlp_moe")
        return build(config, FeedForward, kind="gated", intermediate_size=width)
    if top > total:
        config.conflict("num_experts_per_tok", f"{top} is more than the {total} experts")
    is_mixed = config.flag("use_mixed_mlp_moe", default=True)
    return build(
        config,
        MixtureOfExperts,
        kind="moe",
        num_experts=total,
        num_experts_per_tok=min(top, total),
        moe_intermediate_size=own,
        shared_intermediate_size=shared * width if is_mixed else None,
    )


FAMILIES: dict[str, Family] = {
    "mixtral": Family(attention=softmax(window=window_everywhere), ffn=_plain_experts),
    "gpt_oss": Family(attention=_gpt_oss, ffn=Experts(width="intermediate_size", bias=True, router_bias=True)),
    "llama4_text": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_bias", more=_chunk),
        ffn=Experts(
            width="intermediate_size",
            shared=each(lambda config: config.integer("intermediate_size")),
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
        attention=_biased, ffn=Experts(width="intermediate_size", shared="shared_intermediate_size")
    ),
    "ernie4_5_moe": Family(
        attention=softmax(bias="use_bias", output_bias="use_bias"),
        ffn=Experts(
            router_parameters=expert_count,
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
    "exaone_moe": Family(attention=_exaone_moe, ffn=Experts(shared=several("n_shared_experts"), sparse=_one_dense)),
    "hunyuan_v1_moe": Family(
        attention=softmax(
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
            more=fixed(shared_kv=reads_earlier_keys),
        ),
        ffn=hunyuan_network,
        aliases={"head_dim": "attention_head_dim"},
    ),
    "hy_v3": Family(
        attention=_normed,
        ffn=Experts(
            shared=several("n_shared_experts"),
            shared_bias="mlp_bias",
            sparse=_one_dense,
            otherwise=dense(bias="mlp_bias"),
        ),
        ignored=("expert_hidden_dim",),
    ),
    "dots1": Family(
        attention=softmax(
            window=window_on(
                kinds(
                    lambda config, index: (
                        "sliding_attention"
                        if config.optional("sliding_window")
                        and index >= config.integer("max_window_layers", 62, least=0)
                        else "full_attention"
                    ),
                    known=SLIDING,
                )
            ),
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
        ),
        ffn=Experts(shared=_shared, sparse=after_dense()),
    ),
    "solar_open": Family(attention=softmax(bias="attention_bias"), ffn=Experts(shared=_shared)),
    "minimax_m2": Family(
        attention=softmax(qk_norm=each(lambda config: "full" if config.flag("use_qk_norm", default=True) else None)),
        ffn=_plain_experts,
        ignored=("qk_norm_type", "shared_intermediate_size"),
    ),
    "dbrx": Family(
        attention=_dbrx_attention,
        ffn=_dbrx_ffn,
        norm=LAYER_SCALE,
        aliases={"num_attention_heads": "n_heads", "num_hidden_layers": "n_layers", "hidden_size": "d_model"},
        ignored=("num_key_value_heads",),
    ),
    "afmoe": Family(
        attention=softmax(
            window=window_on(_af_kinds),
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
            more=fixed(output_gate="element", gate_bias=False),
        ),
        ffn=Experts(
            router_parameters=expert_count,
            shared=several("n_shared_experts"),
            sparse=lambda config, index: index >= config.integer("num_dense_layers", 0, least=0),
        ),
        norms=4,
    ),
    "aria_text": Family(
        attention=_biased,
        ffn=Experts(
            width="intermediate_size",
            shared=several("n_shared_experts", "intermediate_size"),
            shared_bias="mlp_bias",
        ),
    ),
    "mellum": Family(
        attention=softmax(
            window=window_on(kinds(always("full_attention"), known=SLIDING)),
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
        ),
        ffn=Experts(sparse=sparse_by_type(always("sparse"))),
    ),
}
