"""Llama and its close relatives: grouped-query attention and a gated network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, LAYER_SCALE, NO_WEIGHT, Family, biased_head
from planner.importers.huggingface.parts.basics import SLIDING, build, each, every, flag, kinds, layer_count
from planner.importers.huggingface.parts.networks import dense
from planner.importers.huggingface.parts.softmax import (
    fixed,
    heads_of,
    shared_out,
    softmax,
    window_everywhere,
    window_on,
)
from planner.model import CrossAttention, Projection, SoftmaxAttention

llama_attention = softmax(bias="attention_bias", output_bias="attention_bias")

LLAMA = Family(attention=llama_attention, ffn=dense(bias="mlp_bias"))
MISTRAL = Family(attention=softmax(window=window_everywhere), ffn=dense())


def _ministral(config: Config, index: int) -> str:  # the signature of every rule
    return "sliding_attention" if config.optional("sliding_window", least=0) else "full_attention"


def _cwm(config: Config, index: int) -> str:
    return "sliding_attention" if index % 4 else "full_attention"


def _smollm(config: Config, index: int) -> str:
    """SmolLM3: a window, if used, holds on the layers without rotary embedding."""
    listed = config.integers("no_rope_layers")
    interval = config.integer("no_rope_layer_interval", 4)
    rotary = bool(listed[index]) if listed and index < len(listed) else bool((index + 1) % interval)
    used = config.flag("use_sliding_window", default=False) and config.optional("sliding_window", least=0)
    return "sliding_attention" if used and not rotary else "full_attention"


def pattern_kind(config: Config, index: int) -> str:
    """EXAONE 4: `sliding_window_pattern` is a period, or letters (L local, G global) that repeat; the last layer is global."""
    pattern = config.get("sliding_window_pattern")
    if not config.optional("sliding_window", least=0) or not pattern:
        return "full_attention"
    if isinstance(pattern, str):
        is_last = index == layer_count(config) - 1
        return "sliding_attention" if pattern[index % len(pattern)] == "L" and not is_last else "full_attention"
    return every("sliding_window_pattern", 4, other="sliding_attention")(config, index)


exaone_kinds = kinds(pattern_kind, known=SLIDING)


def _bitnet(config: Config, index: int) -> dict[str, Any]:
    """BitNet: a norm before each projection back."""
    return {"other_parameters": config.integer("hidden_size") + config.integer("intermediate_size")}


def _apertus(config: Config, index: int) -> dict[str, Any]:
    """Apertus: its activation function has two learned parameters."""
    return {"other_parameters": 2 if config.text("hidden_act", "xielu") == "xielu" else 0}


def _diff_llama(config: Config, index: int) -> dict[str, Any]:
    """Differential attention: four vectors of a head's width weigh the two maps."""
    heads = config.integer("num_attention_heads")
    return {"other_parameters": 4 * (config.optional("head_dim") or config.integer("hidden_size") // heads)}


def _motif(config: Config, index: int) -> dict[str, Any]:
    """Motif: differential attention with a norm of each pair of heads, and an activation with four learned parameters."""
    size = _diff_llama(config, index)["other_parameters"] // 4
    return {"other_parameters": 6 * size + (4 if config.text("hidden_act", "poly_norm") == "poly_norm" else 0)}


def _motif_inputs(config: Config, index: int) -> bool:
    return config.flag("qkv_bias", default=_motif_output(config, index))


def _motif_output(config: Config, index: int) -> bool:
    return flag(config, "attention_bias") or flag(config, "use_bias")


def _adaptive_norm(config: Config, index: int) -> dict[str, Any]:
    """Voxtral Realtime: a norm that depends on the delay, through a bottleneck of 32."""
    hidden, middle = config.integer("hidden_size"), 32
    into = Projection(name="ada_rms_norm.linear1", input_size=hidden, output_size=middle)
    back = Projection(name="ada_rms_norm.linear2", input_size=middle, output_size=hidden)
    return {"projections": (into, back)}


def _either(*fields: str) -> Callable[[Config, int], bool]:
    """Return a fact that older and newer files state under different names."""
    return each(lambda config: True in [config.flag(field, default=False) for field in fields])


def cohere_norm(config: Config, index: int) -> str | None:
    """Cohere: norms of queries and keys have weights for each head."""
    return "full" if config.flag("use_qk_norm", default=False) else None


def phi_norm(config: Config, index: int) -> str | None:
    """Phi and Persimmon: norms of queries and keys, one for all heads."""
    return "head" if config.flag("qk_layernorm", default=False) else None


def _stable_norm(config: Config, index: int) -> str | None:
    return "full" if config.flag("qk_layernorm", default=False) else None


def _parallel_norms(config: Config, index: int) -> int:
    return 1 if config.flag("use_parallel_residual", default=False) else 2


_olmo3 = kinds(every(4, other="sliding_attention"), known=SLIDING)
_starcoder = softmax(window=window_everywhere, bias="use_bias", output_bias="use_bias")


# ---- Llama 3.2 Vision ------------------------------------------------------------------------------------------------

_CROSS_LAYERS = (3, 8, 13, 18, 23, 28, 33, 38)
_mllama_self = softmax()


def _is_cross(config: Config, index: int) -> bool:
    listed = config.integers("cross_attention_layers")
    return index in (_CROSS_LAYERS if listed is None else listed)


def _mllama(config: Config, index: int) -> SoftmaxAttention | CrossAttention:
    """Llama 3.2 Vision: some layers attend to the image instead, and are skipped where there is none."""
    if not _is_cross(config, index):
        return _mllama_self(config, index)
    heads, kv_heads = heads_of(config, "num_attention_heads", "num_key_value_heads")
    return build(
        config,
        CrossAttention,
        kind="cross",
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=shared_out(config, heads),
        qk_norm="head",
    )


def _mllama_layer(config: Config, index: int) -> dict[str, Any]:
    """Llama 3.2 Vision: a layer that attends to the image has a gate on each half."""
    return {"needs_source": True, "other_parameters": 2} if _is_cross(config, index) else {}


def _mllama_model(config: Config) -> dict[str, Any]:
    """Llama 3.2 Vision: eight rows of the embedding stand for images."""
    return {"embedding_rows": config.integer("vocab_size") + 8}


HUNYUAN = Family(attention=softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="head"), ffn=dense())

FAMILIES: dict[str, Family] = {
    "mllama_text_model": Family(attention=_mllama, ffn=dense(), layer=_mllama_layer, model=_mllama_model),
    "llama": LLAMA,
    "granite": LLAMA,
    "helium": replace(LLAMA, attention=softmax(bias="attention_bias")),
    "iquestcoder": LLAMA,
    "telechat3": LLAMA,
    "mistral": MISTRAL,
    "ministral": replace(MISTRAL, attention=softmax(window=window_on(kinds(_ministral, known=SLIDING)))),
    "ministral3": MISTRAL,
    "voxtral_realtime_text": replace(MISTRAL, layer=_adaptive_norm),
    "arcee": replace(LLAMA, ffn=dense(kind="plain", bias="mlp_bias")),
    "cwm": Family(attention=softmax(window=window_on(kinds(_cwm, known=SLIDING))), ffn=dense(bias="mlp_bias")),
    "smollm3": Family(
        attention=softmax(
            window=window_on(kinds(_smollm, known=SLIDING)), bias="attention_bias", output_bias="attention_bias"
        ),
        ffn=dense(bias="mlp_bias"),
        tied=True,
    ),
    "exaone": LLAMA,
    "exaone4": Family(attention=softmax(window=window_on(exaone_kinds), qk_norm="head"), ffn=dense()),
    "ernie4_5": Family(attention=softmax(bias="use_bias", output_bias="use_bias"), ffn=dense(bias="use_bias")),
    "paddleocr_vl_text": Family(attention=softmax(bias="use_bias", output_bias="use_bias"), ffn=dense(bias="use_bias")),
    "seed_oss": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_out_bias"), ffn=dense(bias="mlp_bias")
    ),
    "internlm3": Family(
        attention=softmax(bias=_either("qkv_bias", "attention_bias"), output_bias=_either("bias", "attention_bias")),
        ffn=dense(bias=_either("bias", "mlp_bias")),
    ),
    "hyperclovax": replace(LLAMA, norms=each(lambda config: 4 if flag(config, "use_post_norm") else 2)),
    "hunyuan_v1_dense": HUNYUAN,
    "hunyuan_vl_text": HUNYUAN,
    "nemotron": Family(attention=llama_attention, ffn=dense(kind="plain", bias="mlp_bias"), norm=LAYER),
    "jais2": Family(attention=llama_attention, ffn=dense(kind="plain", bias="mlp_bias"), norm=LAYER),
    "apertus": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="head"),
        ffn=dense(kind="plain", bias="mlp_bias"),
        layer=_apertus,
    ),
    "bitnet": Family(attention=llama_attention, ffn=dense(), layer=_bitnet),
    "diffllama": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_bias", more=fixed(differential=True)),
        ffn=dense(),
        layer=_diff_llama,
    ),
    "motif": Family(
        attention=softmax(bias=_motif_inputs, output_bias=_motif_output, more=fixed(differential=True)),
        ffn=dense(bias="use_bias"),
        layer=_motif,
        ignored=("attn_rms_norm_eps", "max_window_layers", "use_sliding_window", "sliding_window"),
    ),
    "olmo": Family(attention=llama_attention, ffn=dense(), norm=NO_WEIGHT, ignored=("clip_qkv",)),
    "olmo2": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_bias", qk_norm="full"), ffn=dense()
    ),
    "olmo3": Family(
        attention=softmax(
            window=window_on(_olmo3), bias="attention_bias", output_bias="attention_bias", qk_norm="full"
        ),
        ffn=dense(),
    ),
    "cohere": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_bias", qk_norm=cohere_norm),
        ffn=dense(),
        norm=LAYER_SCALE,
        norms=1,
        tied=True,
    ),
    "cohere2": Family(
        attention=softmax(
            window=window_on(kinds(every("sliding_window_pattern", 4, other="sliding_attention"), known=SLIDING)),
            bias="attention_bias",
            output_bias="attention_bias",
            derived_dim=True,
        ),
        ffn=dense(),
        norm=LAYER_SCALE,
        norms=1,
        tied=True,
        ignored=(
            "head_dim",
            "layer_switch",
            "order_of_interleaved_layers",
            "position_embedding_type",
            "use_embedding_sharing",
            "use_gated_activation",
            "use_parallel_block",
            "use_parallel_embedding",
        ),
    ),
    "chameleon": Family(
        attention=softmax(
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="full",
            derived_dim=True,
            more=fixed(qk_norm_bias=True),
        ),
        ffn=dense(bias="mlp_bias"),
    ),
    "phi": Family(
        attention=softmax(bias=True, output_bias=True, qk_norm=phi_norm, more=fixed(qk_norm_bias=True)),
        ffn=dense(kind="plain", bias=True),
        norm=LAYER,
        norms=1,
        model=biased_head,
    ),
    "phi3": Family(attention=softmax(window=window_everywhere), ffn=dense(), ignored=("full_attn_mod",)),
    "stablelm": Family(
        attention=softmax(bias="use_qkv_bias", qk_norm=_stable_norm),
        ffn=dense(),
        norm=LAYER,
        norms=_parallel_norms,
    ),
    "starcoder2": Family(
        attention=_starcoder,
        ffn=dense(kind="plain", bias="use_bias"),
        norm=LAYER,
        tied=True,
        defaults={"use_bias": True},
        ignored=("mlp_type", "norm_type"),
    ),
    "persimmon": Family(
        attention=softmax(bias=True, output_bias=True, qk_norm=phi_norm, more=fixed(qk_norm_bias=True)),
        ffn=dense(kind="plain", bias=True),
        norm=LAYER,
        defaults={"qk_layernorm": True},
    ),
}
