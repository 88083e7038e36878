"""Architectures that engines serve from the model's own code, as vLLM's model files and the model's configuration define them."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.families.qwen import QWEN3
from planner.importers.huggingface.parts.basics import each, every, flag, kinds
from planner.importers.huggingface.parts.latent import latent
from planner.importers.huggingface.parts.networks import Experts, after_dense, dense, several
from planner.importers.huggingface.parts.softmax import softmax, window_on

SLIDING = ("full_attention", "sliding_attention")

# ---- TeleChat --------------------------------------------------------------------------------------------------------


def _telechat_layer(config: Config, index: int) -> dict[str, Any]:  # noqa: ARG001 - the signature of every reader
    """TeleChat: of the network's projections only the last has a bias."""
    return {"other_parameters": config.integer("hidden_size")}


# ---- openPangu -------------------------------------------------------------------------------------------------------

_PANGU_MORE = (
    "param_sink_number",
    "use_mhc",
    "use_mome",
    "index_topk",
    "block_post_layernorm_idx",
    "sliding_window_list",
)
_pangu_latent = latent(bias=False)


def _pangu_bias(config: Config, index: int) -> bool:  # noqa: ARG001
    """openPangu: a bias everywhere in attention, unless `qkv_bias` says otherwise for the inputs."""
    everywhere = flag(config, "attention_bias") or flag(config, "bias")
    return config.flag("qkv_bias", default=everywhere)


def _pangu_output(config: Config, index: int) -> bool:  # noqa: ARG001
    return flag(config, "attention_bias") or flag(config, "bias")


_pangu_softmax = softmax(bias=_pangu_bias, output_bias=_pangu_output)


def _pangu_attention(config: Config, index: int) -> Any:
    """openPangu: latent attention where the file has its ranks; what later models add to it is not supported."""
    for field in _PANGU_MORE:
        if config.get(field):
            config.fault(field, "is not supported")
    config.raise_faults()
    return (_pangu_latent if config.given("kv_lora_rank") else _pangu_softmax)(config, index)


_pangu_dense = dense(bias="mlp_bias")
_pangu_experts = Experts(shared=several("n_shared_experts"), sparse=after_dense(), otherwise=_pangu_dense)


def _pangu_ffn(config: Config, index: int) -> Any:
    return (_pangu_experts if config.has("num_experts") else _pangu_dense)(config, index)


PANGU = Family(
    attention=_pangu_attention,
    ffn=_pangu_ffn,
    norms=each(lambda config: 4 if flag(config, "sandwich_norm") else 2),
    aliases={
        "num_experts": "num_routed_experts",
        "first_k_dense_replace": "num_dense_layers",
        "q_lora_rank": "attention_q_lora_dim",
        "kv_lora_rank": "attention_kv_lora_dim",
        "qk_nope_head_dim": "attention_qk_dim",
        "qk_rope_head_dim": "attention_qk_rope_dim",
        "v_head_dim": "attention_v_dim",
    },
    ignored=("router_enable_expert_bias",),
)

# ---- Step 3, Grok 2, Molmo, PLaMo 3, MiniCPM-V ---------------------------------------------------------------------------


def _step_sparse(config: Config, index: int) -> bool:
    """Step 3: `moe_layers_enum` lists the layers with experts; all but the first where it is absent."""
    listed = config.get("moe_layers_enum")
    if listed is None:
        return index > 0
    names = listed.split(",") if isinstance(listed, str) else (config.listed("moe_layers_enum") or ())
    return str(index) in {str(name).strip() for name in names}


def _step_heads(config: Config, index: int) -> dict[str, Any]:  # noqa: ARG001
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


def _half_width(config: Config, index: int) -> int:  # noqa: ARG001
    """Molmo: `intermediate_size` counts gate and up together."""
    return max(config.integer("intermediate_size") // 2, 1)


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

_telechat = Family(
    attention=softmax(output_bias=True),
    ffn=dense(),
    layer=_telechat_layer,
    aliases={"intermediate_size": "ffn_hidden_size"},
    ignored=("apply_residual_connection_post_layernorm", "base_seqlen", "embed_layernorm", "logn", "training_seqlen"),
)

FAMILIES: dict[str, Family] = {
    "telechat": _telechat,
    "telechat2": _telechat,
    "PanguEmbedded": PANGU,
    "pangu_embedded": PANGU,
    "PanguUltraMoE": PANGU,
    "pangu_ultra_moe": PANGU,
    "step3_text": Family(
        attention=softmax(more=_step_heads),
        ffn=Experts(shared="share_expert_dim", sparse=_step_sparse),
        ignored=("num_attention_groups", "num_key_value_heads", "norm_expert_weight"),
    ),
    "step3_vl": Family(text="step3_text", tie="text"),
    "grok-2": Family(attention=softmax(), ffn=_grok_ffn, norms=4, ignored=("moe_intermediate_size",)),
    "molmo": Family(
        attention=softmax(
            bias="qkv_bias", qk_norm=each(lambda config: "full" if flag(config, "attention_layer_norm") else None)
        ),
        ffn=dense(width=_half_width),
        model=_molmo_model,
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
    "keye": QWEN3,
    "Keye": QWEN3,
    "KeyeVL1_5": QWEN3,
    "keye_vl1_5": QWEN3,
    "ultravox": Family(text="llama", tie="text"),
}
