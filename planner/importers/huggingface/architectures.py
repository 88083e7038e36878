"""What ``architectures`` in a file says where it and ``model_type`` disagree.

Files are copied and edited, and the two fields then drift apart. The ``model_type`` is heeded, as the transformers library does; but
where it leaves fields unread that the named class would read, the class is.
"""

from __future__ import annotations

from collections.abc import Mapping

ARCHITECTURES: Mapping[str, str] = {
    "Cohere2ForCausalLM": "cohere2",
    "DeepseekForCausalLM": "deepseek",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "DeepseekV32ForCausalLM": "deepseek_v32",
    "Exaone4ForCausalLM": "exaone4",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3_text",
    "Glm4ForCausalLM": "glm4",
    "Glm4MoeForCausalLM": "glm4_moe",
    "GlmForCausalLM": "glm",
    "Grok1ForCausalLM": "grok-2",
    "GlmMoeDsaForCausalLM": "glm_moe_dsa",
    "GraniteMoeForCausalLM": "granitemoe",
    "GraniteMoeHybridForCausalLM": "granitemoehybrid",
    "DeciLMForCausalLM": "nemotron-nas",
    "LlamaForCausalLM": "llama",
    "MiniMaxM2ForCausalLM": "minimax_m2",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "NemotronHForCausalLM": "nemotron_h",
    "Olmo2ForCausalLM": "olmo2",
    "Olmo3ForCausalLM": "olmo3",
    "OlmoeForCausalLM": "olmoe",
    "Phi4FlashForCausalLM": "phi4flash",
    "PhiMoEForCausalLM": "phimoe",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen2MoeForCausalLM": "qwen2_moe",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "Qwen3NextForCausalLM": "qwen3_next",
    "RWKV6ForCausalLM": "rwkv6",
    "RWKV6Qwen2ForCausalLM": "rwkv6qwen2",
    "RWKV7ForCausalLM": "rwkv7",
    "Rwkv5ForCausalLM": "rwkv5",
    "Rwkv6ForCausalLM": "rwkv6",
}
"""Names of classes, and the ``model_type`` that goes with each."""


def stated_architecture(data: Mapping[str, object]) -> str | None:
    """Return the ``model_type`` that ``architectures`` stands for, if it names one class that is known."""
    names = data.get("architectures")
    if not isinstance(names, list) or len(names) != 1 or not isinstance(names[0], str):
        return None
    return ARCHITECTURES.get(names[0])
