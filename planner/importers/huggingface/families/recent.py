"""Architectures of many kinds that the library has taken up lately, each a variation of one seen before."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import NO_WEIGHT, Family
from planner.importers.huggingface.families.glm import FAMILIES as GLM
from planner.importers.huggingface.families.llama_like import FAMILIES as LLAMA_LIKE
from planner.importers.huggingface.families.llama_like import LLAMA, llama_attention
from planner.importers.huggingface.families.moe import FAMILIES as MOE
from planner.importers.huggingface.families.moe import expert_count
from planner.importers.huggingface.parts.basics import (
    SLIDING,
    Rule,
    always,
    build,
    choose,
    each,
    every,
    first_layers,
    kinds,
    layer_count,
)
from planner.importers.huggingface.parts.latent import latent
from planner.importers.huggingface.parts.networks import (
    Experts,
    after_dense,
    dense,
    qwen_sparse,
    several,
    sparse_by_type,
    sparse_where,
)
from planner.importers.huggingface.parts.recurrent import short_convolution
from planner.importers.huggingface.parts.softmax import fixed, softmax, window_everywhere, window_on
from planner.model import MixtureOfExperts, Projection


def full_where(test: Any) -> Rule:
    """Return a rule: full attention where a test of index and number of layers holds, a window elsewhere."""

    def rule(config: Config, index: int) -> str:
        return "full_attention" if test(index, layer_count(config)) else "sliding_attention"

    return rule


def windowed(rule: Rule, *, biased: bool = True, **more: Any) -> Any:
    """Return a reader of attention with windows on some layers; `more` are facts of the block."""
    bias = "attention_bias" if biased else False
    qk_norm = more.pop("qk_norm", None)
    return softmax(
        window=window_on(kinds(rule, known=SLIDING)),
        bias=bias,
        output_bias=bias,
        qk_norm=qk_norm,
        more=fixed(**more),
    )


# ---- A.X, Laguna, Muse -----------------------------------------------------------------------------------------

_shared = several("n_shared_experts")
_axk_sparse = sparse_where(after_dense(default=1))


def _axk_layer(config: Config, index: int) -> dict[str, Any]:
    """A.X K1: a norm after the experts."""
    return {"norms": 3 if _axk_sparse(config, index) else 2}


def _muse_norms(config: Config, index: int) -> dict[str, Any]:
    """Muse Spark: norms of the experts' narrower stream, and a gate on each residual."""
    narrow = config.integer("moe_hidden_size")
    return {"norms": 3, "other_parameters": 2 * narrow + 2 * config.integer("hidden_size")}


def _laguna_heads(config: Config, index: int) -> int:
    """Laguna: layers may have numbers of query heads of their own."""
    listed = config.integers("num_attention_heads_per_layer", layer_count(config), least=1)
    return listed[index] if listed else config.integer("num_attention_heads")


def _beam_layer(config: Config, index: int) -> dict[str, Any]:
    """Beam: a bias for each head's gate."""
    return {"other_parameters": config.integer("num_attention_heads")}


# ---- ERNIE 4.5 VL, Molmo 2, Doge, nanochat ---------------------------------------------------------------------------


_ernie_sparse = sparse_by_type(first_layers("moe_layer_start_index", 1))


def _ernie_vl(config: Config, index: int) -> Any:
    """ERNIE 4.5 VL: experts for text and experts for images, each with a router, counts and widths in lists of two."""
    if not _ernie_sparse(config, index):
        return dense(bias="use_bias")(config, index)
    widths = config.integers("moe_intermediate_size", 2, least=1) or (1536, 512)
    number, top = config.integer("num_experts"), config.integer("num_experts_per_tok")
    shared = config.optional("n_shared_experts", 0, least=0) or 0
    common = {"kind": "moe", "num_experts": number, "num_experts_per_tok": top, "router_parameters": number}
    text = build(
        config,
        MixtureOfExperts,
        **common,
        moe_intermediate_size=widths[0],
        shared_intermediate_size=shared * widths[0] or None,
        shared_bias=config.flag("use_bias", default=False),
    )
    image = build(config, MixtureOfExperts, **common, moe_intermediate_size=widths[1], needs_source=True)
    return (text, image)


def _molmo_model(config: Config) -> dict[str, Any]:
    """Molmo 2: further rows of the embedding that are never scored."""
    return {"embedding_rows": config.integer("vocab_size") + config.integer("additional_vocab_size", 128, least=0)}


def _doge_layer(config: Config, index: int) -> dict[str, Any]:
    """Doge: a mask that depends on the values, and a scale on each residual."""
    heads = config.optional("num_key_value_heads") or config.integer("num_attention_heads")
    width = heads * max(config.integer("hidden_size") // config.integer("num_attention_heads"), 1)
    mask = Projection(
        name="dt_proj", input_size=width, output_size=heads, bias=config.flag("attention_bias", default=False)
    )
    return {"projections": (mask,), "other_parameters": heads + 2 * config.integer("hidden_size")}


_doge_network = dense(bias="mlp_bias")


def _doge_ffn(config: Config, index: int) -> Any:
    """Doge: a network that every token passes, and where `is_moe` says so experts of one neuron each, found by product keys."""
    always = _doge_network(config, index)
    if not config.flag("is_moe", default=False):
        config.get("num_experts")
        config.get("num_experts_per_tok")
        return always
    number = config.integer("num_experts")
    experts = build(
        config,
        MixtureOfExperts,
        kind="moe",
        num_experts=number,
        num_experts_per_tok=config.integer("num_experts_per_tok"),
        moe_intermediate_size=1,
        gated=False,
        router_outputs=2 * math.isqrt(number),
    )
    return (always, experts)


def _pruned_head(config: Config) -> dict[str, Any]:
    """Apertus 1.5: the LM head may score the first rows of the vocabulary alone."""
    rows = config.integer("vocab_size")
    return {"vocab_size": config.optional("output_vocab_size") or rows, "embedding_rows": rows}


# ---- LFM3 ------------------------------------------------------------------------------------------------------------


def _lfm3_rule(config: Config, index: int) -> str:
    if index % 4 == 2:  # the third of each four layers
        return "full_attention"
    return "sliding_attention" if index and index % 4 == 0 else "conv"


_lfm3_kinds = kinds(_lfm3_rule)
_lfm3_attention = softmax(
    window=window_on(_lfm3_kinds),
    bias="attention_bias",
    output_bias="attention_bias",
    qk_norm="head",
    more=fixed(
        output_gate=each(lambda config: "head" if config.flag("use_attention_gate", default=True) else None),
        gate_bias=False,
    ),
)
_lfm3 = choose(
    _lfm3_kinds,
    {"conv": short_convolution, "full_attention": _lfm3_attention, "sliding_attention": _lfm3_attention},
    "layer_types",
)

_forth = full_where(lambda index, count: (count - 1 - index) % 4 == 0)
_flint = full_where(lambda index, count: index < 2 or index % 4 == 1 or index == count - 1)
_beam = full_where(lambda index, count: not (index + 1) % 6 or index == count - 1)
_first_of_four = full_where(lambda index, count: index % 4 == 0)  # the signature of every test

PHI4_MULTIMODAL = replace(
    LLAMA_LIKE["phi3"],
    at_top=True,
    ignored=(
        "audio_config",
        "audio_processor",
        "embd_layer",
        "img_processor",
        "speech_lora",
        "vision_config",
        "vision_lora",
    ),
)
_SIGLIP = (
    "freeze_mm_mlp_adapter",
    "full_attn_mod",
    "max_num_patches",
    "min_num_patches",
    "mm_hidden_size",
    "mm_projector_lr",
    "mm_projector_type",
    "mm_vision_tower",
    "tokenizer_model_max_length",
    "tokenizer_padding_side",
    "tune_mm_mlp_adapter",
    "unfreeze_vision_tower",
    "use_mm_proj",
)
"""Fields of Phi-4 with a SigLIP tower that are not the text model's."""

_OCR = Family(
    attention=softmax(bias="attention_bias", output_bias="attention_bias", derived_dim=True),
    ffn=Experts(
        shared=_shared,
        sparse=sparse_by_type(first_layers("first_k_dense_replace", 1)),
        shared_bias="mlp_bias",
        otherwise=dense(bias="mlp_bias"),
    ),
    ignored=("sliding_window", "layer_types"),
)

FAMILIES: dict[str, Family] = {
    "apertus1p5_text": replace(LLAMA_LIKE["apertus"], model=_pruned_head),
    "granite_docling_text": LLAMA,
    "cosmos3_edge_text": replace(LLAMA, ffn=dense(kind="plain", bias="mlp_bias")),
    "phi4_multimodal": PHI4_MULTIMODAL,
    "phi4mm": PHI4_MULTIMODAL,
    "phi4-siglip": replace(LLAMA_LIKE["phi3"], at_top=True, ignored=_SIGLIP),
    "molmo2_text": Family(attention=softmax(bias="attention_bias", qk_norm="head"), ffn=dense(), model=_molmo_model),
    "nanochat": Family(attention=llama_attention, ffn=dense(kind="plain"), norm=NO_WEIGHT),
    "doge": Family(
        attention=softmax(
            window=window_everywhere, bias="attention_bias", output_bias="attention_bias", qk_norm="head"
        ),
        ffn=_doge_ffn,
        layer=_doge_layer,
    ),
    "granite_swa": Family(attention=windowed(_first_of_four, sinks=True), ffn=dense(bias="mlp_bias"), tied=True),
    "granitemoe_swa": Family(attention=windowed(_first_of_four, sinks=True), ffn=MOE["granitemoeshared"].ffn),
    "axk1": Family(attention=latent(), ffn=Experts(shared=_shared, sparse=_axk_sparse), layer=_axk_layer),
    "sarvam_mla": Family(attention=latent(), ffn=Experts(shared=_shared, sparse=after_dense(default=1))),
    "deepseek_ocr2_text": _OCR,
    "unlimited_ocr_text": _OCR,
    "beam": Family(
        attention=windowed(_beam, qk_norm="head", output_gate="element", gate_bias=False),
        ffn=Experts(sparse=sparse_by_type(first_layers("first_k_dense_replace", 3))),
        layer=_beam_layer,
        norms=4,
    ),
    "flint": Family(
        attention=windowed(_flint, qk_norm="head", sinks=True),
        ffn=Experts(shared="shared_expert_intermediate_size", sparse=qwen_sparse),
        defaults={"mlp_only_layers": [0, 1]},
    ),
    "kolibri1": Family(
        attention=windowed(every(5, other="sliding_attention"), biased=False, qk_norm="head"),
        ffn=Experts(shared="shared_expert_intermediate_size"),
        norms=4,
    ),
    "laguna": Family(
        attention=windowed(
            always("full_attention"),
            qk_norm="head",
            gate_bias=False,
            output_gate=each(lambda config: "head" if config.flag("gating", default=True) else "element"),
            num_attention_heads=_laguna_heads,
        ),
        ffn=Experts(
            shared="shared_expert_intermediate_size",
            router_parameters=expert_count,
            sparse=sparse_by_type(first_layers("first_k_dense_replace", 1)),
        ),
    ),
    "lfm3": Family(
        attention=_lfm3,
        ffn=dense(),
        norms=each(lambda config: 4 if config.flag("use_sandwich_norm", default=True) else 2),
        tied=True,
    ),
    "muse_glimmer_text": Family(
        attention=windowed(_forth, output_gate="element", gate_bias=False), ffn=dense(), norms=4
    ),
    "muse_spark_text": Family(
        attention=windowed(_forth, output_gate="element", gate_bias=False),
        ffn=Experts(latent="moe_hidden_size", sparse=sparse_by_type(always("sparse"))),
        layer=_muse_norms,
    ),
    "ernie4_5_vl_moe_text": replace(MOE["ernie4_5_moe"], ffn=_ernie_vl, model=None),
    "glm4_moe_text": GLM["glm4_moe"],
}
