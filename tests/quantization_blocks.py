"""Small models to read quantisation blocks with, and the bits that a block says their tensors are stored in."""

from __future__ import annotations

from planner.importers.huggingface import read_config
from planner.model import Model

DENSE = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
}
EXPERTS = {
    "model_type": "qwen3_moe",
    "hidden_size": 64,
    "intermediate_size": 256,
    "moe_intermediate_size": 32,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 1000,
    "decoder_sparse_step": 2,
}


def read(block: object, config: dict[str, object] = DENSE) -> Model:
    """Return the model of a config with a quantisation block."""
    return read_config({**config, "quantization_config": block}, name="m", where="config.json")


def bits(model: Model, tensor: str) -> float:
    """Return the bits of a stored element of a tensor, its share of a scale included."""
    outside = [model.embedding, model.lm_head]
    inside = [tensor for kind in model.layer_kinds for tensor in kind.tensors(model)]
    role = next(one.role for one in [*outside, *inside] if one.name == tensor)
    return model.quantization.precision("bf16").scheme(role, tensor).weights.bytes_per_element * 8
