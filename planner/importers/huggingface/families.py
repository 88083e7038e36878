"""The table of architectures: for each ``model_type``, how its layers are read and what its configuration class supplies.

Facts are those of the model classes of the transformers library, 5.24.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.importers.huggingface import parts
from planner.model import Norm


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How one architecture is read.

    Attributes
    ----------
    attention, ffn
        Readers of the two blocks of a layer.
    tied : bool
        What an absent `tie_word_embeddings` stands for.
    norm : Norm
        The kind of norm.
    norms : int or None
        Norms of the hidden width in a layer; one for each block where None.
    aliases, defaults
        See `planner.importers.huggingface.config.Config`.
    """

    attention: parts.AttentionReader
    ffn: parts.FeedForwardReader
    tied: bool = False
    norm: Norm = Norm()
    norms: int | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)


_LLAMA = Family(
    attention=parts.grouped_query(qkv_bias="attention_bias", output_bias="attention_bias"),
    ffn=parts.dense(bias="mlp_bias"),
)

FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": Family(
        attention=parts.grouped_query(window=parts.window_everywhere),
        ffn=parts.dense(),
        defaults={"sliding_window": 4096, "num_key_value_heads": 8},
    ),
    "mixtral": Family(
        attention=parts.grouped_query(window=parts.window_everywhere),
        ffn=parts.mixtral_experts,
        defaults={"num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2},
    ),
    "qwen2": Family(
        attention=parts.grouped_query(window=parts.window_if_used, qkv_bias=True),
        ffn=parts.dense(),
        defaults={"sliding_window": 4096, "num_key_value_heads": 32},
    ),
    "qwen3": Family(
        attention=parts.grouped_query(
            window=parts.window_if_used, qkv_bias="attention_bias", output_bias="attention_bias", qk_norm="head"
        ),
        ffn=parts.dense(),
        defaults={"sliding_window": 4096, "num_key_value_heads": 32, "head_dim": 128},
    ),
    "qwen3_moe": Family(
        attention=parts.grouped_query(
            window=parts.window_if_used, qkv_bias="attention_bias", output_bias="attention_bias", qk_norm="head"
        ),
        ffn=parts.qwen_experts,
        defaults={"sliding_window": 4096, "num_key_value_heads": 4},
    ),
    "deepseek_v3": Family(attention=parts.latent, ffn=parts.deepseek_experts, defaults={"first_k_dense_replace": 3}),
}
