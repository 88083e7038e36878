"""openPangu, as vLLM's model files define it (openpangu, openpangu_vl; 0.33.0)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import build, each, flag
from planner.importers.huggingface.parts.latent import latent
from planner.importers.huggingface.parts.networks import Experts, after_dense, dense, several
from planner.importers.huggingface.parts.softmax import heads_of, softmax, softmax_kind
from planner.model import SoftmaxAttention

_NOT_DESCRIBED = ("use_mhc", "use_mome", "index_topk", "block_post_layernorm_idx", "sliding_window_list")
_latent = latent(bias=False)


def _bias(config: Config, index: int) -> bool:  # the signature of every reader
    """openPangu: a bias everywhere in attention, unless `qkv_bias` says otherwise for the inputs."""
    everywhere = flag(config, "attention_bias") or flag(config, "bias")
    return config.flag("qkv_bias", default=everywhere)


def _output(config: Config, index: int) -> bool:
    return flag(config, "attention_bias") or flag(config, "bias")


def _window(config: Config, index: int) -> int | None:
    """openPangu: `interleaved_sliding_window` is a window, or a list of windows that repeats, with null or 0 for none."""
    stated = config.get("interleaved_sliding_window")
    if not isinstance(stated, list):
        return config.optional("interleaved_sliding_window", least=0) or None
    if not stated:
        return None
    found = stated[index % len(stated)]
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int):
        config.fault("interleaved_sliding_window", "has an item that is no whole number")
        config.raise_faults()
    return found if found > 0 else None


_softmax = softmax(window=_window, bias=_bias, output_bias=_output)


def _sink_attention(config: Config, index: int) -> SoftmaxAttention:
    """OpenPangu Pro V2: keys and values of widths of their own, and learned keys before the first token."""
    config.tell(
        "the learned keys before the first token (param_sink_number) are counted as parameters, not as positions"
    )
    heads, kv_heads = heads_of(config, "num_attention_heads", "num_key_value_heads")
    return build(
        config,
        SoftmaxAttention,
        kind=softmax_kind(heads, kv_heads),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=config.integer("qk_nope_dim") + config.integer("qk_rope_dim"),
        v_head_dim=config.integer("v_channels"),
        qkv_bias=_bias(config, index),
        output_bias=_output(config, index),
        sliding_window=_window(config, index),
    )


def _attention(config: Config, index: int) -> Any:
    """openPangu: latent attention where the file has its ranks; what later models add to it is not supported."""
    for field in _NOT_DESCRIBED:
        if config.get(field):
            config.fault(field, "is not supported")
    config.raise_faults()
    if config.given("kv_lora_rank"):
        if config.optional("param_sink_number", least=0):
            config.fault("param_sink_number", "is not supported with latent attention")
            config.raise_faults()
        return _latent(config, index)
    return (_sink_attention if _sinks(config) else _softmax)(config, index)


def _sinks(config: Config) -> int:
    return config.optional("param_sink_number", 0, least=0) or 0


def _sink_layer(config: Config, index: int) -> dict[str, Any]:
    """OpenPangu Pro V2: the learned keys, with values where `param_sink_with_value` says so, and a norm of the keys."""
    if config.given("kv_lora_rank") or not _sinks(config):
        return {}
    block = _sink_attention(config, index)
    width = block.head_dim + (block.value_dim if flag(config, "param_sink_with_value") else 0)
    return {"other_parameters": _sinks(config) * block.kv_heads * width + block.head_dim}


_dense = dense(bias="mlp_bias")
_experts = Experts(shared=several("n_shared_experts"), sparse=after_dense(), otherwise=_dense)


def _ffn(config: Config, index: int) -> Any:
    return (_experts if config.has("num_experts") else _dense)(config, index)


PANGU = Family(
    attention=_attention,
    ffn=_ffn,
    layer=_sink_layer,
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
    ignored=("router_enable_expert_bias", "param_sink_scalar", "param_sink_of_head_dim"),
)

FAMILIES: dict[str, Family] = {
    "PanguEmbedded": PANGU,
    "pangu_embedded": PANGU,
    "PanguUltraMoE": PANGU,
    "pangu_ultra_moe": PANGU,
    "PanguProMoE": PANGU,
    "PanguProMoEV2": PANGU,
    "openpangu_vl": replace(PANGU, at_top=True),
}
