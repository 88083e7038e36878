"""Architectures that engines serve from the model's own code, as vLLM's model files and the model's configuration define them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, Family
from planner.importers.huggingface.families.qwen import QWEN3
from planner.importers.huggingface.parts.basics import SLIDING, each, every, flag, kinds, layer_count
from planner.importers.huggingface.parts.networks import Experts, dense, half_of, sparse_listed
from planner.importers.huggingface.parts.softmax import softmax, window_on
from planner.model import Projection

# ---- TeleChat --------------------------------------------------------------------------------------------------------


def _telechat_layer(config: Config, index: int) -> dict[str, Any]:  # the signature of every reader
    """TeleChat: of the network's projections only the last has a bias."""
    return {"other_parameters": config.integer("hidden_size")}


# ---- Step 3, Grok 2, Molmo, PLaMo 3, MiniCPM-V ---------------------------------------------------------------------------


def _step_heads(config: Config, index: int) -> dict[str, Any]:
    """Step 3: one KV head, and queries by a low-rank projection with a norm in between."""
    return {
        "num_key_value_heads": 1,
        "q_lora_rank": config.optional("share_q_dim") or config.integer("head_dim"),
    }


_grok_experts = Experts()
_grok_alone = Experts(width="intermediate_size")
_grok_beside = dense()


def _grok_ffn(config: Config, index: int) -> Any:
    """Grok 2: with `residual_moe`, a dense network works beside the experts."""
    if not flag(config, "residual_moe"):
        return _grok_alone(config, index)
    return (_grok_beside(config, index), _grok_experts(config, index))


def _molmo_model(config: Config) -> dict[str, Any]:
    """Molmo: 128 further rows of the embedding that are never scored."""
    rows = config.optional("embedding_size") or config.integer("vocab_size")
    return {"vocab_size": rows, "embedding_rows": rows + 128}


def _minicpm_version(config: Config) -> str:
    """MiniCPM-V and -o: `version` says which language model the file holds the fields of."""
    version = str(config.get("version"))
    known = {"2.5": "llama", "2.6": "qwen2", "4.0": "llama", "4": "llama", "4.5": "qwen3"}
    if version not in known:
        config.fault(
            "version", f"{version[:20]!r} is not one of {', '.join(known)}, which say what the language model is"
        )
        config.raise_faults()
    return known[version]


_minicpm_v = Family(
    at_top=True,
    attention=softmax(
        bias=each(lambda config: _minicpm_version(config) == "qwen2"),
        qk_norm=each(lambda config: "head" if _minicpm_version(config) == "qwen3" else None),
    ),
    ffn=dense(),
    ignored=(
        "audio_chunk_length",
        "audio_pool_step",
        "batch_vision_input",
        "drop_vision_last_layer",
        "image_size",
        "init_audio",
        "init_tts",
        "init_vision",
        "listen_speak_type",
        "max_window_layers",
        "patch_size",
        "query_num",
        "slice_config",
        "slice_mode",
        "sliding_window",
        "stream_input",
        "tts_config",
        "use_image_id",
        "use_sliding_window",
        "vision_batch_size",
    ),
)

# ---- Domyn Edge, Moondream 3 -----------------------------------------------------------------------------------------


def _domyn_heads(config: Config, index: int) -> dict[str, Any]:
    """Domyn Edge: each layer may have a head dimension and a window of its own."""
    fields: dict[str, Any] = {}
    listed = config.listed("per_layer_config", layer_count(config))
    own = listed[index] if listed is not None else None
    if isinstance(own, Mapping):
        part = Config(own, "", prefix=f"per_layer_config.{index}.", is_part=True)
        part.faults = config.faults
        fields["head_dim"] = part.optional("head_dim") or config.integer("head_dim")
    windows = config.listed("window_sizes", layer_count(config))
    before = windows[index] if windows is not None else None
    before = before[0] if isinstance(before, list) and before else before
    if isinstance(before, int) and not isinstance(before, bool) and before >= 0:
        fields["sliding_window"] = before + 1
    return fields


def _domyn_layer(config: Config, index: int) -> dict[str, Any]:
    """Domyn Edge: a norm of the keys with weights, and one of the queries without."""
    return {"other_parameters": _domyn_attention(config, index).head_dim}


_domyn_attention = softmax(more=_domyn_heads)


def _moondream_part(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Moondream 3: the text part stands under `text` in `config`, with its experts in a part of their own."""
    inner = data.get("config")
    text = inner.get("text") if isinstance(inner, Mapping) else data.get("text_config")
    part = dict(text) if isinstance(text, Mapping) else {}
    moe = part.pop("moe", None)
    for key, value in (moe or {}).items() if isinstance(moe, Mapping) else ():
        part[f"moe_{key}"] = value
    return {**part, "architectures": data.get("architectures")}


def _moondream_layer(config: Config, index: int) -> dict[str, Any]:
    """Moondream 3: two vectors and a number for each head, which scale queries and values by token and position."""
    heads, hidden = config.integer("num_attention_heads"), config.integer("hidden_size")
    tau = tuple(Projection(name=f"tau.{name}", input_size=3 * hidden, output_size=heads) for name in ("wq", "wv"))
    return {"projections": tau, "other_parameters": heads}


def _moondream_model(config: Config) -> dict[str, Any]:
    return {"lm_head_bias": True}


_MOONDREAM = Family(
    attention=softmax(bias=True, output_bias=True, derived_dim=True),
    ffn=Experts(
        router_bias=True,
        sparse=lambda config, index: index >= config.integer("moe_start_layer", 4, least=0),
        otherwise=dense(kind="plain", bias=True),
    ),
    layer=_moondream_layer,
    model=_moondream_model,
    norm=LAYER,
    norms=1,
    tied="never",
    flat=_moondream_part,
    at_top=True,
    aliases={
        "hidden_size": "dim",
        "intermediate_size": "ff_dim",
        "num_key_value_heads": "n_kv_heads",
        "max_position_embeddings": "max_context",
        "num_experts": "moe_n_experts",
        "num_experts_per_tok": "moe_n_experts_per_tok",
        "moe_intermediate_size": "moe_expert_inner_dim",
    },
    defaults={
        "dim": 2048,
        "ff_dim": 8192,
        "n_layers": 24,
        "vocab_size": 51200,
        "max_context": 4096,
        "n_heads": 32,
        "n_kv_heads": 32,
        "moe_start_layer": 4,
        "moe_n_experts": 64,
        "moe_n_experts_per_tok": 8,
        "moe_expert_inner_dim": 2 * 512,
    },
    ignored=("prefix_attn", "group_size"),
)

_KEYE = replace(QWEN3, at_top=True)

_telechat = Family(
    attention=softmax(output_bias=True),
    ffn=dense(),
    layer=_telechat_layer,
    aliases={"intermediate_size": "ffn_hidden_size"},
    ignored=("apply_residual_connection_post_layernorm", "base_seqlen", "embed_layernorm", "logn", "training_seqlen"),
)

FAMILIES: dict[str, Family] = {
    "domyn_edge": Family(
        attention=_domyn_attention,
        ffn=dense(),
        layer=_domyn_layer,
        norms=4,
        ignored=("position_layers",),
    ),
    "moondream3": _MOONDREAM,
    "telechat": _telechat,
    "telechat2": _telechat,
    "step3_text": Family(
        attention=softmax(more=_step_heads),
        ffn=Experts(shared="share_expert_dim", sparse=sparse_listed("moe_layers_enum")),
        ignored=("num_attention_groups", "num_key_value_heads", "norm_expert_weight"),
    ),
    "step3_vl": Family(text="step3_text", tie="text"),
    "grok-2": Family(attention=softmax(), ffn=_grok_ffn, norms=4, ignored=("moe_intermediate_size",)),
    "molmo": Family(
        attention=softmax(
            bias="qkv_bias", qk_norm=each(lambda config: "full" if flag(config, "attention_layer_norm") else None)
        ),
        ffn=dense(width=half_of()),
        model=_molmo_model,
        at_top=True,
        ignored=("clip_qkv", "layer_norm_type", "norm_after", "use_position_ids", "weight_tying"),
    ),
    "plamo3": Family(
        attention=softmax(
            window=window_on(kinds(every("sliding_window_pattern", 8, other="sliding_attention"), known=SLIDING)),
            qk_norm="head",
        ),
        ffn=dense(),
        norms=4,
        aliases={"sliding_window": "window_size"},
        ignored=("rope_local_theta",),
    ),
    "minicpmv": _minicpm_v,
    "minicpmo": _minicpm_v,
    "keye": _KEYE,
    "Keye": _KEYE,
    "KeyeVL1_5": _KEYE,
    "keye_vl1_5": _KEYE,
    "ultravox": Family(text="llama", tie="text"),
}
