"""GPT-2 and its relatives: LayerNorm with offsets, a network of two matrices, learned or relative positions."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.bert import bert_norms, crossed_like, is_crossed
from planner.importers.huggingface.families.family import LAYER, LAYER_SCALE, Family, biased_head
from planner.importers.huggingface.parts.basics import each
from planner.importers.huggingface.parts.networks import dense, four_times
from planner.importers.huggingface.parts.softmax import softmax
from planner.model import Norm, Projection

GPT2_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
}


def _learned(field: str = "max_position_embeddings", extra: int = 0) -> Any:
    def read(config: Config) -> dict[str, Any]:
        return {"learned_positions": config.integer(field) + extra}

    return read


def _gpt2_attention(config: Config, index: int) -> Any:
    """GPT-2: with `add_cross_attention`, each layer attends to an encoder's output as well."""
    own = _all_biased(config, index)
    return (own, crossed_like(config, own)) if is_crossed(config) else own


def _one_kv_head(config: Config, index: int) -> dict[str, Any]:
    """GPT-BigCode: `multi_query` keeps one KV head."""
    one = config.flag("multi_query", default=True)
    return {"num_key_value_heads": 1 if one else config.integer("num_attention_heads")}


def _falcon_heads(config: Config, index: int) -> dict[str, Any]:
    """Falcon: the new architecture has `num_kv_heads`, the old one a single KV head if `multi_query`, else one for each query head."""
    heads = config.integer("num_attention_heads")
    grouped = config.optional("num_kv_heads") or heads
    if config.flag("new_decoder_architecture", default=False):
        if heads % grouped:
            config.conflict("num_kv_heads", f"{grouped} does not divide num_attention_heads {heads}")
            config.raise_faults()
        return {"num_key_value_heads": grouped}
    return {"num_key_value_heads": 1 if config.flag("multi_query", default=True) else heads}


def _falcon_norms(config: Config, index: int) -> int:
    """Falcon: parallel halves share a norm, save in the new architecture, which has two unless told otherwise."""
    new = config.flag("new_decoder_architecture", default=False)
    beside = config.integer("num_ln_in_parallel_attn", 2 if new else 1)
    return 2 if beside == 2 or not config.flag("parallel_attn", default=True) else 1  # one for each half


def _bloom(config: Config) -> dict[str, Any]:
    """BLOOM: a norm after the embedding."""
    return {"other_parameters": 2 * config.integer("hidden_size")}


def _mpt_heads(config: Config, index: int) -> dict[str, Any]:
    attention = config.part("attn_config")
    kv = attention.optional("kv_n_heads")
    return {"num_key_value_heads": kv} if kv else {}


def _mpt(config: Config) -> dict[str, Any]:
    attention = config.part("attn_config")
    learned = config.flag("learned_pos_emb", default=True) and not attention.flag("alibi", default=True)
    return {"learned_positions": config.integer("max_position_embeddings")} if learned else {}


def _opt(config: Config) -> dict[str, Any]:
    """OPT: positions start at 2; a narrower embedding is projected to the hidden size and back."""
    hidden, positions = config.integer("hidden_size"), config.integer("max_position_embeddings")
    width = config.optional("word_embed_proj_dim") or hidden
    before = config.flag("do_layer_norm_before", default=True)
    fields: dict[str, Any] = {
        "learned_positions": positions + 2,
        "final_norm": before and not config.flag("_remove_final_layer_norm", default=False),
    }
    if width != hidden:
        fields["embedding_size"] = width
        fields["projections"] = (
            Projection(name="project_in", input_size=width, output_size=hidden),
            Projection(name="project_out", input_size=hidden, output_size=width),
        )
    return fields


def _opt_norm(config: Config) -> Norm:
    weighted = config.flag("layer_norm_elementwise_affine", default=True)
    return Norm(kind="layer_norm", weight=weighted, bias=weighted)


_plain = dense(kind="plain", bias=True)
_all_biased = softmax(bias=True, output_bias=True)
_inner = dense(kind="plain", bias=True, width=four_times("n_inner"))
_biogpt = Family(attention=_all_biased, ffn=_plain, norm=LAYER, model=_learned(extra=2), tied=True)

_gpt2 = Family(
    attention=_gpt2_attention,
    ffn=_inner,
    norm=LAYER,
    norms=bert_norms,
    model=_learned(),
    tied=True,
    aliases=GPT2_NAMES,
)

FAMILIES: dict[str, Family] = {
    "gpt2": _gpt2,
    "gpt-sw3": _gpt2,
    "gpt_bigcode": Family(
        attention=softmax(bias=True, output_bias=True, more=_one_kv_head),
        ffn=_inner,
        norm=LAYER,
        model=_learned(),
        tied=True,
        aliases=GPT2_NAMES,
    ),
    "openai-gpt": Family(
        attention=_all_biased,
        ffn=dense(kind="plain", bias=True, width=each(lambda config: 4 * config.integer("hidden_size"))),
        norm=LAYER,
        model=lambda config: {"learned_positions": config.integer("max_position_embeddings"), "final_norm": False},
        tied=True,
        aliases=GPT2_NAMES,
    ),
    "gpt_neo": Family(
        attention=softmax(output_bias=True),
        ffn=dense(kind="plain", bias=True, width=four_times("intermediate_size")),
        norm=LAYER,
        model=_learned(),
        tied=True,
        aliases={"num_hidden_layers": "num_layers", "num_attention_heads": "num_heads"},
        ignored=("attention_types", "attention_layers", "window_size"),
    ),
    "gpt_neox": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_bias"),
        ffn=_plain,
        norm=LAYER,
        defaults={"attention_bias": True},
        ignored=("use_parallel_residual",),
    ),
    "gptj": Family(
        attention=softmax(),
        ffn=_inner,
        norm=LAYER,
        norms=1,
        model=biased_head,
        aliases=GPT2_NAMES,
    ),
    "codegen": Family(attention=softmax(), ffn=_inner, norm=LAYER, norms=1, model=biased_head, aliases=GPT2_NAMES),
    "ctrl": Family(
        attention=_all_biased,
        ffn=dense(kind="plain", bias=True, width="dff"),
        norm=LAYER,
        model=biased_head,
        tied=True,
        aliases=GPT2_NAMES,
    ),
    "opt": Family(
        attention=softmax(bias="enable_bias", output_bias="enable_bias"),
        ffn=dense(kind="plain", bias="enable_bias", width="ffn_dim"),
        norm=_opt_norm,
        model=_opt,
        tied=True,
        defaults={"enable_bias": True},
    ),
    "bloom": Family(
        attention=_all_biased,
        ffn=dense(kind="plain", bias=True, width=each(lambda config: 4 * config.integer("hidden_size"))),
        norm=LAYER,
        model=_bloom,
        tied=True,
        aliases={"hidden_size": "n_embed", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
    ),
    "falcon": Family(
        attention=softmax(bias="bias", output_bias="bias", more=_falcon_heads),
        ffn=dense(kind="plain", bias="bias", width=four_times("ffn_hidden_size")),
        norm=LAYER,
        norms=_falcon_norms,
        tied=True,
        aliases={"hidden_size": "n_embed"},
        ignored=("alibi",),
    ),
    "mpt": Family(
        attention=softmax(more=_mpt_heads),
        ffn=dense(
            kind="plain",
            width=each(lambda config: int(config.real("expansion_ratio", 4) * config.integer("hidden_size"))),
        ),
        norm=LAYER_SCALE,
        model=_mpt,
        tied=True,
        aliases={
            "hidden_size": "d_model",
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "max_position_embeddings": "max_seq_len",
        },
    ),
    "biogpt": _biogpt,
    "xglm": Family(
        attention=_all_biased,
        ffn=dense(kind="plain", bias=True, width="ffn_dim"),
        norm=LAYER,
        tied=True,
        aliases={
            "hidden_size": "d_model",
            "num_hidden_layers": "num_layers",
            "num_attention_heads": "attention_heads",
        },
    ),
}
