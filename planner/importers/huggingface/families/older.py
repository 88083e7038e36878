"""Language models of before the present fashion: XLM, XLNet, CPM-Ant, GPT-NeoX Japanese; and ModernBERT as a decoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, LAYER_SCALE, Family
from planner.importers.huggingface.families.llama_like import FAMILIES as LLAMA_LIKE
from planner.importers.huggingface.parts.basics import SLIDING, flag, kinds, layer_count
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.softmax import softmax, window_on
from planner.model import Norm, Projection, Table

# ---- GPT-NeoX Japanese -----------------------------------------------------------------------------------------------


def _times_hidden(config: Config, index: int) -> int:  # the signature of every reader
    return config.integer("intermediate_multiple_size", 4) * config.integer("hidden_size")


def _last_bias(config: Config, index: int) -> dict[str, Any]:
    """GPT-NeoX Japanese: the output projection of the last layer alone has a bias."""
    return {"other_parameters": config.integer("hidden_size") if index == layer_count(config) - 1 else 0}


# ---- CPM-Ant ---------------------------------------------------------------------------------------------------------


def _cpmant_model(config: Config) -> dict[str, Any]:
    """CPM-Ant: rows for prompts in the embedding, an embedding of segments, and one bias by relative position for all layers."""
    segments, hidden = config.integer("segment_types", 32), config.integer("hidden_size")
    prompts = config.integer("prompt_types", 32) * config.integer("prompt_length", 32)
    buckets = segments**2 + config.integer("position_bias_num_buckets", 512)
    return {
        "embedding_rows": config.integer("vocab_size") + prompts,
        "tables": (Table(name="segment_embedding", rows=segments, width=hidden),),
        "other_parameters": buckets * config.integer("num_attention_heads"),
    }


# ---- XLNet, XLM ------------------------------------------------------------------------------------------------------


def _xlnet_layer(config: Config, index: int) -> dict[str, Any]:
    """XLNet: a projection of relative positions; for each head biases of content, of position and of segment, and two segments."""
    hidden = config.integer("hidden_size")
    relative = Projection(name="rel_attn.r", input_size=hidden, output_size=hidden)
    return {"projections": (relative,), "other_parameters": 5 * hidden}


def _xlnet_model(config: Config) -> dict[str, Any]:
    return {"final_norm": False, "lm_head_bias": True, "other_parameters": config.integer("hidden_size")}


def _xlm_width(config: Config, index: int) -> int:
    return 4 * config.integer("hidden_size")


def _xlm_model(config: Config) -> dict[str, Any]:
    """XLM: learned positions, a norm of the embedding in place of the last one, and an embedding of the language."""
    hidden, languages = config.integer("hidden_size"), config.integer("n_langs", 1)
    spoken = languages > 1 and config.flag("use_lang_emb", default=True)
    return {
        "learned_positions": config.integer("max_position_embeddings"),
        "final_norm": False,
        "lm_head_bias": True,
        "other_parameters": 2 * hidden,
        "tables": (Table(name="lang_embeddings", rows=languages, width=hidden),) if spoken else (),
    }


# ---- ModernBERT as a decoder -----------------------------------------------------------------------------------------


def _modern_rule(config: Config, index: int) -> str:
    """ModernBERT: one layer in `global_attn_every_n_layers` looks at everything, the first among them."""
    return "sliding_attention" if index % config.integer("global_attn_every_n_layers", 3) else "full_attention"


_modern_kinds = kinds(_modern_rule, known=SLIDING)


def _modern_window(config: Config, index: int) -> int | None:
    """ModernBERT: `local_attention` counts both sides, of which a decoder sees one."""
    both = config.optional("local_attention", 128, least=0)
    return max(both // 2, 1) if both and _modern_kinds(config, index) == "sliding_attention" else None


def _modern_norm(config: Config) -> Norm:
    return LAYER if config.flag("norm_bias", default=False) else LAYER_SCALE


def _modern_norms(config: Config, index: int) -> int:
    """ModernBERT: the norm of the embedding stands for the one before the first attention."""
    return 2 if index else 1


def _modern_model(config: Config) -> dict[str, Any]:
    """ModernBERT: a norm of the embedding; a matrix and a norm before the LM head, which has a bias."""
    hidden = config.integer("hidden_size")
    return {
        "projections": (
            Projection(
                name="lm_head.dense", input_size=hidden, output_size=hidden, bias=flag(config, "classifier_bias")
            ),
        ),
        "other_parameters": 2 * hidden * _modern_norm(config).parameters_per_element,
        "lm_head_bias": config.flag("decoder_bias", default=True),
    }


FAMILIES: dict[str, Family] = {
    "gpt_neox_japanese": Family(
        attention=softmax(),
        ffn=dense(kind="plain", width=_times_hidden),
        norm=LAYER,
        layer=_last_bias,
        tied=True,
    ),
    "cohere_compass_text": replace(
        LLAMA_LIKE["cohere2"],
        attention=softmax(
            window=window_on(kinds(lambda config, index: "full_attention", known=SLIDING)),
            bias="attention_bias",
            output_bias="attention_bias",
            derived_dim=True,
        ),
        ignored=("pooling", "head_dim"),
    ),
    "cpmant": Family(
        attention=softmax(),
        ffn=dense(),
        model=_cpmant_model,
        tied="never",
        aliases={"intermediate_size": "dim_ff", "head_dim": "dim_head"},
        ignored=("position_bias_max_distance", "dropout_p"),
    ),
    "xlnet": Family(
        attention=softmax(derived_dim=True),
        ffn=dense(kind="plain", bias=True, width="d_inner"),
        layer=_xlnet_layer,
        model=_xlnet_model,
        norm=LAYER,
        tied=True,
        ignored=("d_head", "mem_len", "reuse_len", "bi_data", "clamp_len", "same_length", "attn_type", "ff_activation"),
    ),
    "xlm": Family(
        attention=softmax(bias=True, output_bias=True),
        ffn=dense(kind="plain", bias=True, width=_xlm_width),
        model=_xlm_model,
        norm=LAYER,
        tied=True,
        aliases={"hidden_size": "emb_dim"},
        ignored=(
            "asm",
            "causal",
            "gelu_activation",
            "is_encoder",
            "lang_id",
            "sinusoidal_embeddings",
            "embed_init_std",
        ),
    ),
    "modernbert-decoder": Family(
        attention=softmax(window=_modern_window, bias="attention_bias", output_bias="attention_bias"),
        ffn=dense(bias="mlp_bias"),
        norm=_modern_norm,
        norms=_modern_norms,
        model=_modern_model,
        tied=True,
        ignored=("sliding_window", "classifier_activation", "initializer_cutoff_factor", "deterministic_flash_attn"),
    ),
}
