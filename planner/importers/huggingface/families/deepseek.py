"""DeepSeek and other models of latent attention: with and without an indexer, compressed, with several residual streams."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import build, each, first_layers, kinds, layer_count
from planner.importers.huggingface.parts.latent import compressed, indexer_by_type, latent, own_indexer
from planner.importers.huggingface.parts.networks import Experts, after_dense, dense, several, sparse_by_type
from planner.importers.huggingface.parts.softmax import fixed, softmax
from planner.model import (
    CompressedAttention,
    FeedForward,
    LatentAttention,
    MixtureOfExperts,
    Projection,
    SoftmaxAttention,
    Table,
)

_shared = several("n_shared_experts")
_after_three = Experts(shared=_shared, sparse=after_dense(default=3))
_three_dense = sparse_by_type(first_layers("first_k_dense_replace", 3))
_one_dense = sparse_by_type(first_layers("first_k_dense_replace", 1))


# ---- several residual streams ----------------------------------------------------------------------------------------


def hyper_connections(config: Config, *, mixes: bool) -> dict[str, Any]:
    """Return what streams that are read from and written to bring to a layer: two projections of all streams together.

    `mixes`: the streams are also mixed with each other (manifold-constrained hyper-connections, arXiv 2512.24880).
    """
    streams, hidden = config.integer("hc_mult"), config.integer("hidden_size")
    outputs = (2 + streams if mixes else 2) * streams
    names = ("attn_hc", "ffn_hc")
    projections = tuple(Projection(name=n, input_size=streams * hidden, output_size=outputs) for n in names)
    return {"projections": projections, "other_parameters": 2 * (outputs + (3 if mixes else 2))}


def stream_head(config: Config) -> dict[str, Any]:
    """Return what merges the streams before the LM head."""
    streams, hidden = config.integer("hc_mult"), config.integer("hidden_size")
    head = Projection(name="hc_head", input_size=streams * hidden, output_size=streams)
    return {"projections": (head,), "other_parameters": streams + 1}


def streams_of(*, mixes: bool) -> Any:
    """Return a reader of a layer's hyper-connections."""
    return each(lambda config: config.derived("hc", lambda: hyper_connections(config, mixes=mixes)))


# ---- DeepSeek-V4 -----------------------------------------------------------------------------------------------------

_RATES = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}


def _v4_rule(config: Config, index: int) -> str:
    """DeepSeek-V4: `compress_ratios` lists the layers; else two heavily compressed ones, then both kinds in turn."""
    ratios = config.integers("compress_ratios")
    if ratios is not None:
        if index >= len(ratios) or ratios[index] not in _RATES:
            config.fault("compress_ratios", f"does not say one of {', '.join(map(str, _RATES))} for every layer")
            config.raise_faults()
        return _RATES[ratios[index]]
    return _RATES[4] if index >= 2 and index % 2 else _RATES[128]  # the first two layers


_v4_kinds = kinds(_v4_rule, known=tuple(_RATES.values()))


def _v4_attention(config: Config, index: int) -> CompressedAttention:
    kind = _v4_kinds(config, index)
    rates = config.part("compress_rates")
    sparse = kind == _RATES[4]
    older = ("compress_rate_csa", "compress_rate_hca")[0 if sparse else 1]
    rate = rates.optional(kind) or config.optional(older) or (4 if sparse else 128)
    return compressed(
        config,
        compress_rate=None if kind == _RATES[0] else rate,
        overlap=sparse,
        indexer=own_indexer(config, index) if sparse else None,
        index_topk=config.integer("index_topk") if sparse else None,
    )


# ---- LongCat ---------------------------------------------------------------------------------------------------------

_longcat_latent = latent()
_longcat_dense = dense(width="ffn_hidden_size")


def _longcat_attention(config: Config, index: int) -> tuple[LatentAttention, ...]:
    """LongCat: a layer is two of the usual kind, with experts that work beside the second."""
    one = _longcat_latent(config, index)
    return (one, one)


def _longcat_ffn(config: Config, index: int) -> tuple[FeedForward | MixtureOfExperts, ...]:
    one = _longcat_dense(config, index)
    routed = build(
        config,
        MixtureOfExperts,
        kind="moe",
        num_experts=config.integer("num_experts"),
        num_experts_per_tok=config.integer("num_experts_per_tok"),
        moe_intermediate_size=config.integer("expert_ffn_hidden_size"),
        zero_experts=config.integer("zero_expert_num", 0, least=0),
        router_bias=config.flag("router_bias", default=False),
    )
    return (one, one, routed)


def _longcat_model(config: Config) -> dict[str, Any]:
    """LongCat-Flash-Lite: tables of n-grams, each with a few rows more than the one before and a projection to the hidden size."""
    if not config.given("ngram_vocab_size_ratio"):
        return {}
    rows = int(config.real("ngram_vocab_size_ratio", 1.0) * config.integer("vocab_size"))
    number = config.integer("emb_split_num") * (config.integer("emb_neighbor_num") - 1)
    if not number or config.integer("hidden_size") % number:
        config.fault("emb_split_num", f"and emb_neighbor_num make {number} tables, which have to share out hidden_size")
        config.raise_faults()
    hidden = config.integer("hidden_size")
    width = hidden // number
    return {
        "tables": tuple(
            Table(name=f"ngram_embeddings.{place}", rows=rows + 2 * place + 1, width=width) for place in range(number)
        ),
        "projections": tuple(
            Projection(name=f"ngram_projection.{place}", input_size=width, output_size=hidden)
            for place in range(number)
        ),
    }


# ---- others ----------------------------------------------------------------------------------------------------------


def _hy4_rule(config: Config, index: int) -> str:
    return "full" if index == 0 or (index - 1) % 4 == 0 else "shared"


_hy4_index = indexer_by_type(kinds(_hy4_rule, "indexer_types", ("full", "shared")))


def _minicpm_values(config: Config) -> int:
    """MiniCPM3: values share out the hidden size."""
    return max(config.integer("hidden_size") // config.integer("num_attention_heads"), 1)


_v2_latent = latent()
_v2_softmax = softmax(bias="attention_bias", output_bias="attention_bias", derived_dim=True)


def _v2_attention(config: Config, index: int) -> LatentAttention | SoftmaxAttention:
    """DeepSeek-V2: small ones (of DeepSeek-VL2) have plain attention, with no latent vector in the file."""
    if config.flag("use_mla", default=True) and config.optional("qk_nope_head_dim", 1, least=0):
        return _v2_latent(config, index)
    for name in ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "v_head_dim", "head_dim"):
        config.get(name)
    return _v2_softmax(config, index)


V2 = Family(
    attention=_v2_attention,
    ffn=Experts(shared=_shared, shared_bias="mlp_bias", sparse=after_dense(), otherwise=dense(bias="mlp_bias")),
    ignored=("lm_head",),
)
V3 = Family(attention=latent(), ffn=_after_three)
V32 = Family(
    attention=latent(indexer=own_indexer),
    ffn=Experts(shared=_shared, sparse=_three_dense),
    ignored=("moe_layer_freq",),
)
HY4 = Family(
    attention=latent(indexer=_hy4_index, more=fixed(sinks=True, output_gate="element")),
    ffn=Experts(shared=_shared, sparse=_one_dense),
    layer=streams_of(mixes=False),
    model=stream_head,
)

FAMILIES: dict[str, Family] = {
    "deepseek_v2": V2,
    "deepseek_v3": V3,
    "kimi_k2": V3,
    "deepseek_v32": V32,
    "mistral4": V2,
    "deepseek_v4": Family(
        attention=_v4_attention,
        ffn=Experts(shared="moe_intermediate_size", shared_bias="mlp_bias"),
        layer=streams_of(mixes=True),
        model=stream_head,
        ignored=(
            "qk_rope_head_dim",
            "num_hash_layers",
            "mlp_layer_types",
            "compress_rope_theta",
            "expert_dtype",
            "n_shared_experts",
        ),
    ),
    "minicpm3": Family(attention=latent(values=_minicpm_values), ffn=dense(bias="mlp_bias"), tied=True),
    "youtu": Family(attention=latent(), ffn=dense(bias="mlp_bias")),
    "longcat_flash": Family(
        attention=_longcat_attention,
        ffn=_longcat_ffn,
        model=_longcat_model,
        norms=4,
        layers=layer_count,
        ignored=(
            "zero_expert_type",
            "mla_scale_kv_lora",
            "mla_scale_q_lora",
            "attention_method",
            "params_dtype",
            "rounter_params_dtype",
            "moe_impl",
        ),
    ),
    "hy_v4": HY4,
    "hy_v4_vl_text": HY4,
}
