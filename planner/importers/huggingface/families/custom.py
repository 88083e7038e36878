"""Architectures that the transformers library has no class for, as their own code and vLLM's model registry define them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import LAYER, Family, biased_head
from planner.importers.huggingface.families.gpt_like import FAMILIES as GPT_LIKE
from planner.importers.huggingface.families.hybrid import FAMILIES as HYBRID
from planner.importers.huggingface.families.llama_like import FAMILIES as LLAMA_LIKE
from planner.importers.huggingface.families.llama_like import LLAMA
from planner.importers.huggingface.families.moe import FAMILIES as MOE
from planner.importers.huggingface.families.moe import reads_earlier_keys
from planner.importers.huggingface.families.moe_layered import FAMILIES as LAYERED
from planner.importers.huggingface.families.qwen import QWEN2, qwen_window
from planner.importers.huggingface.parts.basics import build, each, flag, layer_count
from planner.importers.huggingface.parts.networks import Experts, after_dense, dense, four_times, half_of, several
from planner.importers.huggingface.parts.softmax import fixed, softmax, softmax_kind, window_everywhere
from planner.model import FeedForward, Norm, Projection, SoftmaxAttention

# ---- ChatGLM ---------------------------------------------------------------------------------------------------------


def _chatglm_heads(config: Config, index: int) -> dict[str, Any]:  # the signature of every reader
    """ChatGLM: `multi_query_group_num` KV heads, where `multi_query_attention` says so."""
    grouped = config.flag("multi_query_attention", default=False)
    heads = config.integer("num_attention_heads")
    return {
        "num_key_value_heads": config.integer("multi_query_group_num", 1) if grouped else heads,
        "qkv_bias": config.flag("add_qkv_bias", default=False) or config.flag("add_bias_linear", default=False),
    }


def _chatglm_norm(config: Config) -> Norm:
    return Norm() if config.flag("rmsnorm", default=True) else LAYER


def _chatglm_model(config: Config) -> dict[str, Any]:
    return {"final_norm": config.flag("post_layer_norm", default=True)}


# ---- Qwen 1, Phi-3-small, Phi of Microsoft's own code ----------------------------------------------------------------


_qwen1 = softmax(bias=True, output_bias=each(lambda config: not config.flag("no_bias", default=True)))


# ---- Nemotron NAS (DeciLM) -------------------------------------------------------------------------------------------


def _block(config: Config, index: int, half: str) -> Config:
    """Return what a neural architecture search chose for one half of a layer."""

    def read() -> list[Config]:
        listed = config.listed("block_configs", layer_count(config))
        if listed is None:
            config.fault("block_configs", "is missing, it says what each layer is")
            config.raise_faults()
        found = []
        for place, block in enumerate(listed or ()):
            whole = Config({"block": block}, "", prefix=f"block_configs.{place}.")
            whole.faults = config.faults
            found.append(whole.part("block"))
        return found

    return config.derived("blocks", read)[index].part(half)


def _nas_attention(config: Config, index: int) -> SoftmaxAttention | FeedForward | None:
    """Nemotron NAS: a layer has attention with its own number of query heads to a KV head, a linear map in its place, or none."""
    block = _block(config, index, "attention")
    if block.flag("no_op", default=False) or block.flag("replace_with_linear", default=False):
        return None
    heads, group = config.integer("num_attention_heads"), block.integer("n_heads_in_group")
    if heads % group:
        config.conflict("block_configs", f"n_heads_in_group {group} does not divide num_attention_heads {heads}")
        config.raise_faults()
    hidden = config.integer("hidden_size")
    bias = flag(config, "attention_bias")
    return build(
        config,
        SoftmaxAttention,
        kind=softmax_kind(heads, heads // group),
        num_attention_heads=heads,
        num_key_value_heads=heads // group,
        head_dim=config.optional("head_dim") or max(hidden // heads, 1),
        qkv_bias=bias,
        output_bias=bias,
    )


def _nas_ffn(config: Config, index: int) -> FeedForward | None:
    """Nemotron NAS: a width by a factor, two thirds of it rounded up to a multiple of 256."""
    block = _block(config, index, "ffn")
    if block.flag("no_op", default=False) or block.flag("replace_with_linear", default=False):
        return None
    stated, multiple = block.optional("intermediate_size"), 256
    width = int(2 * block.real("ffn_mult", 1.0) * config.integer("hidden_size") / 3)
    rounded = max(-(-width // multiple) * multiple, 1)
    return build(config, FeedForward, kind="gated", intermediate_size=stated or rounded, bias=flag(config, "mlp_bias"))


def _nas_layer(config: Config, index: int) -> dict[str, Any]:
    """Nemotron NAS: a half that is replaced by a linear map is one matrix of the hidden width; one that is left out has no norm."""
    hidden = config.integer("hidden_size")
    names = [
        half for half in ("attention", "ffn") if _block(config, index, half).flag("replace_with_linear", default=False)
    ]
    kept = [half for half in ("attention", "ffn") if not _block(config, index, half).flag("no_op", default=False)]
    projections = tuple(Projection(name=f"{name}.linear", input_size=hidden, output_size=hidden) for name in names)
    return {"norms": len(kept), "projections": projections}


# ---- Arctic ----------------------------------------------------------------------------------------------------------

_arctic_experts = Experts(number="num_local_experts", width="intermediate_size")
_arctic_dense = dense()
_arctic_residual = dense(width="hidden_size")


def _arctic_ffn(config: Config, index: int) -> Any:
    """Arctic: experts, and beside them a dense network of the hidden width."""
    if (index + 1) % config.integer("moe_layer_frequency", 2):
        return _arctic_dense(config, index)
    routed = _arctic_experts(config, index)
    return (_arctic_residual(config, index), routed) if config.flag("use_residual", default=False) else routed


def _arctic_norms(config: Config, index: int) -> int:
    beside = config.flag("use_residual", default=False)
    return 3 if beside and (index + 1) % config.integer("moe_layer_frequency", 2) == 0 else 2


# ---- the table -------------------------------------------------------------------------------------------------------

_MHA = replace(LLAMA, attention=softmax(bias="bias", output_bias="bias"), ffn=dense())
_PHI_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "num_key_value_heads": "n_head_kv",
}
_minimax_01 = replace(
    HYBRID["minimax"],
    ignored=("shared_intermediate_size", "shared_moe_mode", "postnorm", "layernorm_full_attention_alpha"),
)

_KIMI_AUDIO = (
    "kimia_adaptor_input_dim",
    "kimia_audio_output_vocab",
    "kimia_media_begin",
    "kimia_media_end",
    "kimia_mimo_audiodelaytokens",
    "kimia_mimo_layers",
    "kimia_mimo_transformer_from_layer_index",
    "kimia_text_output_vocab",
    "kimia_token_offset",
    "num_audio_special_tokens",
    "num_base_tokens",
    "use_whisper_feature",
)
"""Fields of Kimi-Audio that are not the text model's."""

FAMILIES: dict[str, Family] = {
    "arctic": Family(attention=softmax(window=window_everywhere), ffn=_arctic_ffn, norms=_arctic_norms),
    "RefinedWeb": GPT_LIKE["falcon"],
    "RefinedWebModel": GPT_LIKE["falcon"],
    "phi3_v": replace(LLAMA_LIKE["phi3"], at_top=True, ignored=("embd_layer", "img_processor")),
    "baichuan": replace(LLAMA, attention=softmax()),
    "xverse": replace(LLAMA, attention=softmax()),
    "internlm": _MHA,
    "internlm2": _MHA,
    "minicpm": replace(LLAMA, tied=True),
    "orion": Family(attention=softmax(bias="attention_bias"), ffn=dense(), norm=LAYER),
    "mimo": replace(
        QWEN2, attention=softmax(window=qwen_window, bias="attention_bias"), defaults={"attention_bias": True}
    ),
    "aquila": LLAMA,
    "yi": LLAMA,
    "solar": LLAMA,
    "fm9g": LLAMA,
    "teleflm": LLAMA,
    "deepseek": Family(
        attention=softmax(bias="attention_bias", output_bias="attention_bias"),
        ffn=Experts(shared=several("n_shared_experts"), sparse=after_dense(default=0)),
    ),
    "chatglm": Family(
        attention=softmax(output_bias="add_bias_linear", more=_chatglm_heads),
        ffn=dense(bias="add_bias_linear"),
        norm=_chatglm_norm,
        model=_chatglm_model,
        aliases={
            "num_hidden_layers": "num_layers",
            "vocab_size": "padded_vocab_size",
            "intermediate_size": "ffn_hidden_size",
            "head_dim": "kv_channels",
            "max_position_embeddings": "seq_length",
        },
        ignored=("hidden_dropout", "interleaved_qkv"),
    ),
    "qwen": Family(
        attention=_qwen1,
        ffn=dense(width=half_of()),
        aliases={"head_dim": "kv_channels"},
        ignored=("num_key_value_heads", "visual"),
    ),
    "kimi_audio": replace(QWEN2, at_top=True, ignored=_KIMI_AUDIO),
    "phi-msft": Family(
        attention=softmax(bias=True, output_bias=True),
        ffn=dense(kind="plain", bias=True, width=four_times("n_inner")),
        norm=LAYER,
        norms=1,
        model=biased_head,
        aliases=_PHI_NAMES,
        ignored=("rotary_dim", "flash_rotary", "fused_dense"),
    ),
    "phi3small": Family(
        attention=softmax(bias=True, output_bias=True),
        ffn=dense(bias=True, width="ff_intermediate_size"),
        norm=LAYER,
        tied=True,
        ignored=("ff_dim_multiplier", "dummy_token_indices"),
    ),
    "grok-1": Family(
        attention=softmax(),
        ffn=Experts(width="intermediate_size"),
        norms=4,
        tied=True,
    ),
    "nemotron-nas": Family(
        attention=_nas_attention, ffn=_nas_ffn, layer=_nas_layer, ignored=("num_key_value_heads", "intermediate_size")
    ),
    "minimax_text_01": _minimax_01,
    "minimax_m1": _minimax_01,
    "minimax_m3": LAYERED["minimax_m3_vl_text"],
    "minimax_m3_text": LAYERED["minimax_m3_vl_text"],
    "stablelm_epoch": LLAMA_LIKE["stablelm"],
    "hunyuan": replace(
        MOE["hunyuan_v1_moe"],
        attention=softmax(
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm=each(lambda config: "head" if config.flag("use_qk_norm", default=False) else None),
            more=fixed(shared_kv=reads_earlier_keys),
        ),
    ),
    "jais": Family(
        attention=softmax(bias=True, output_bias=True),
        ffn=dense(kind="gated", bias=True, width=four_times("n_inner")),
        norm=LAYER,
        tied=True,
        aliases={"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"},
        ignored=("position_embedding_type", "alibi_scaling", "width_scale", "embeddings_scale"),
    ),
}
