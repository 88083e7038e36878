"""GGUF's architectures as Hugging Face configs: which metadata field is which config field, and what the tensors tell.

Names are those that llama.cpp writes (ggml-org/llama.cpp, gguf-py/gguf/constants.py). Reading goes on through the table of Hugging Face
architectures, so that a model is described in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Facts = Callable[["Source"], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Source:
    """What a file says.

    Attributes
    ----------
    fields : mapping
        Metadata of the architecture, without its name before them.
    tensors : frozenset of str
        Names of the tensors.
    """

    fields: Mapping[str, Any]
    tensors: frozenset[str]

    def has(self, tensor: str) -> bool:
        """Whether any layer has such a tensor, or the model outside its layers."""
        return any(name == tensor or name.endswith(f".{tensor}") for name in self.tensors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """How one architecture is read.

    Attributes
    ----------
    model_type : str
        Its name in Hugging Face configs.
    fields : mapping of str to str
        Config fields by metadata field, beside `COMMON`.
    facts : callable, optional
        Further config fields.
    """

    model_type: str
    fields: Mapping[str, str] = field(default_factory=dict)
    facts: Facts | None = None


COMMON: Mapping[str, str] = {
    "block_count": "num_hidden_layers",
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "vocab_size": "vocab_size",
}

_WINDOW = {"attention.sliding_window": "sliding_window"}

_EXPERTS = {
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}

_ROUTED = {
    "expert_count": "n_routed_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_count": "n_shared_experts",
    "leading_dense_block_count": "first_k_dense_replace",
    "nextn_predict_layers": "num_nextn_predict_layers",
}


def _biases(source: Source) -> Mapping[str, Any]:
    return {"attention_bias": source.has("attn_q.bias"), "mlp_bias": source.has("ffn_up.bias")}


def _qwen_window(source: Source) -> Mapping[str, Any]:
    return {"use_sliding_window": bool(source.fields.get("attention.sliding_window"))}


def _every_layer(source: Source) -> Mapping[str, Any]:  # noqa: ARG001 - the signature of all facts
    return {"decoder_sparse_step": 1, "use_sliding_window": False}


def _mla(source: Source) -> Mapping[str, Any]:
    """Latent attention: lengths of keys and values are those of the compressed form where the file has both."""
    fields = source.fields
    rope = fields.get("rope.dimension_count")
    key = fields.get("attention.key_length_mla", fields.get("attention.key_length"))
    value = fields.get("attention.value_length_mla", fields.get("attention.value_length"))
    nope = key - rope if isinstance(key, int) and isinstance(rope, int) else None
    return {
        "q_lora_rank": fields.get("attention.q_lora_rank"),
        "kv_lora_rank": fields.get("attention.kv_lora_rank"),
        "qk_rope_head_dim": rope,
        "qk_nope_head_dim": nope,
        "v_head_dim": value,
        "num_key_value_heads": fields.get("attention.head_count"),
    }


def _glm(source: Source) -> Mapping[str, Any]:
    return {"use_qk_norm": source.has("attn_q_norm.weight"), "attention_bias": source.has("attn_q.bias")}


_LLAMA = Architecture(model_type="llama", facts=_biases)
_MIXTRAL = Architecture(
    model_type="mixtral",
    fields={"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"},
    facts=lambda _: {"sliding_window": None},
)
_DEEPSEEK_V2 = Architecture(model_type="deepseek_v2", fields=_ROUTED, facts=_mla)
_DEEPSEEK_V3 = Architecture(model_type="deepseek_v3", fields=_ROUTED, facts=_mla)

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": _LLAMA,
    "qwen2": Architecture(model_type="qwen2", fields=_WINDOW, facts=_qwen_window),
    "qwen2moe": Architecture(
        model_type="qwen2_moe",
        fields=_EXPERTS | {"expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
        facts=_every_layer,
    ),
    "qwen3": Architecture(model_type="qwen3", fields=_WINDOW, facts=_qwen_window),
    "qwen3moe": Architecture(model_type="qwen3_moe", fields=_EXPERTS, facts=_every_layer),
    "gemma": Architecture(model_type="gemma"),
    "gemma2": Architecture(model_type="gemma2", fields=_WINDOW),
    "gemma3": Architecture(model_type="gemma3_text", fields=_WINDOW),
    "phi3": Architecture(model_type="phi3", fields=_WINDOW),
    "granite": Architecture(model_type="granite", facts=_biases),
    "olmo2": Architecture(model_type="olmo2"),
    "deepseek2": _DEEPSEEK_V2,
    "glm4moe": Architecture(model_type="glm4_moe", fields=_ROUTED, facts=_glm),
    "gpt-oss": Architecture(
        model_type="gpt_oss",
        fields=_WINDOW
        | {
            "expert_count": "num_local_experts",
            "expert_used_count": "num_experts_per_tok",
            "expert_feed_forward_length": "intermediate_size",
        },
    ),
}
"""Architectures by ``general.architecture``."""

VARIANTS: Mapping[str, tuple[Callable[[Source], bool], Architecture]] = {
    # llama.cpp writes Mixtral as a Llama with experts.
    "llama": (lambda source: bool(source.fields.get("expert_count")), _MIXTRAL),
    # DeepSeek-V3 has biases on the router's scores, V2 has not.
    "deepseek2": (lambda source: source.has("exp_probs_b.bias"), _DEEPSEEK_V3),
}
"""What goes under the name of another architecture, and how it is told."""
