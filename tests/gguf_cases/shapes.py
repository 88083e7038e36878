"""Builders: tensors of a layer under the names of GGUF, and what all cases share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Shapes = dict[str, tuple[int, ...]]

HIDDEN, HEADS, KV, DIM, WIDTH, LAYERS, VOCABULARY = 256, 8, 2, 32, 512, 6, 1024
Q, K = HEADS * DIM, KV * DIM

CONFIG: Mapping[str, Any] = {
    "hidden_size": HIDDEN,
    "intermediate_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
FIELDS: Mapping[str, Any] = {
    "context_length": 2048,
    "block_count": LAYERS,
    "embedding_length": HIDDEN,
    "feed_forward_length": WIDTH,
    "attention.head_count": HEADS,
    "attention.head_count_kv": KV,
    "attention.layer_norm_rms_epsilon": 1e-6,
    "rope.dimension_count": DIM,
    "rope.freq_base": 10000.0,
}
GPT2_CONFIG: Mapping[str, Any] = {
    "n_embd": HIDDEN,
    "n_layer": LAYERS,
    "n_head": HEADS,
    "n_inner": WIDTH,
    "n_positions": 512,
    "vocab_size": VOCABULARY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One architecture: its GGUF name, its config, its metadata and its tensors."""

    arch: str
    config: Mapping[str, Any]
    fields: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]
    note: str = ""


# ---- tensors of a layer, by their names within it --------------------------------------------------------------------


def norms(*names: str, bias: bool = False, size: int = HIDDEN) -> Shapes:
    return {f"{name}.{end}": (size,) for name in names for end in (("weight", "bias") if bias else ("weight",))}


def matrix(name: str, output: int, width: int = HIDDEN, *, bias: bool = False, copies: int = 0) -> Shapes:
    many = (copies,) if copies else ()
    return {f"{name}.weight": (*many, output, width)} | ({f"{name}.bias": (*many, output)} if bias else {})


def attention(
    *, q: int = Q, k: int = K, bias: bool = False, out: bool = False, dim: int = 0, full: bool = False
) -> Shapes:
    """Queries, keys, values and output; norms of queries and keys of `dim` elements, or of all heads together."""
    found = matrix("attn_q", q, bias=bias) | matrix("attn_k", k, bias=bias) | matrix("attn_v", k, bias=bias)
    found |= matrix("attn_output", HIDDEN, q, bias=out)
    if full:
        found |= norms("attn_q_norm", size=q) | norms("attn_k_norm", size=k)
    return found | (norms("attn_q_norm", "attn_k_norm", size=dim) if dim else {})


def fused(*, bias: bool = False, out: bool = False, k: int = K) -> Shapes:
    return matrix("attn_qkv", Q + 2 * k, bias=bias) | matrix("attn_output", HIDDEN, Q, bias=out)


def network(width: int = WIDTH, *, gate: bool = True, bias: bool = False) -> Shapes:
    found = matrix("ffn_up", width, bias=bias) | matrix("ffn_down", HIDDEN, width, bias=bias)
    return found | (matrix("ffn_gate", width, bias=bias) if gate else {})


def experts(number: int, width: int, *, shared: int = 0, bias: bool = False, gate: bool = True) -> Shapes:
    found = matrix("ffn_gate_inp", number, bias=bias) | matrix("ffn_up_exps", width, bias=bias, copies=number)
    found |= matrix("ffn_down_exps", HIDDEN, width, bias=bias, copies=number)
    found |= matrix("ffn_gate_exps", width, bias=bias, copies=number) if gate else {}
    if shared:
        found |= matrix("ffn_up_shexp", shared) | matrix("ffn_down_shexp", HIDDEN, shared)
        found |= matrix("ffn_gate_shexp", shared) if gate else {}
    return found


def stack(*layers: Shapes, outer: Shapes | None = None, tied: bool = False, bias: bool = False) -> Shapes:
    """Give the layers their numbers, and add the embedding, the last norm and the LM head."""
    found: Shapes = {"token_embd.weight": (VOCABULARY, HIDDEN)} | norms("output_norm", bias=bias)
    found |= {} if tied else {"output.weight": (VOCABULARY, HIDDEN)}
    found |= outer or {}
    found = {name: shape for name, shape in found.items() if shape}
    for index, layer in enumerate(layers):
        found |= {f"blk.{index}.{name}": shape for name, shape in layer.items()}
    return found


PAIR = norms("attn_norm", "ffn_norm")
PAIR_BIASED = norms("attn_norm", "ffn_norm", bias=True)
FOUR = norms("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")


def plain(arch: str, model_type: str, *layers: Shapes, **more: Any) -> Case:
    """An architecture of the common fields: `config` and `fields` are added to them, None takes one away."""
    tied, bias, outer = more.pop("tied", False), more.pop("bias", False), more.pop("outer", None)
    config = {**CONFIG, "tie_word_embeddings": tied, **more.pop("config", {}), "model_type": model_type}
    fields = {**FIELDS, **more.pop("fields", {})}
    whole = layers if len(layers) > 1 else layers * int(fields["block_count"])
    return Case(
        arch=arch,
        config={key: value for key, value in config.items() if value != "absent"},
        fields={key: value for key, value in fields.items() if value is not None},
        shapes=stack(*whole, outer=outer, tied=tied, bias=bias),
        **more,
    )


def of_kinds(letters: str, kinds: Mapping[str, Shapes]) -> tuple[Shapes, ...]:
    return tuple(kinds[letter] for letter in letters)


BIASED: Mapping[str, Any] = {"attention_bias": True, "mlp_bias": False}
QWEN_HEADS = {"head_dim": 64}
WIDE = {"attention.key_length": 64, "attention.value_length": 64}
WIDE_ATTENTION = attention(q=HEADS * 64, k=KV * 64, dim=64)
WINDOW = {"attention.sliding_window": 128}
MHA = {"num_key_value_heads": HEADS}
ALIBI = {"attention.max_alibi_bias": 8.0, "rope.dimension_count": None, "rope.freq_base": None}


ROUTED = {"expert_count": 8, "expert_used_count": 2, "expert_feed_forward_length": 64}
ROUTED_CONFIG = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
LOCAL = {"expert_count": 8, "expert_used_count": 2}
LOCAL_CONFIG = {"num_local_experts": 8, "num_experts_per_tok": 2}
FIRST = {"leading_dense_block_count": 1, "expert_shared_count": 1, **ROUTED}
FIRST_CONFIG = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
}
CORRECTED = {"exp_probs_b.bias": (8,)}
NARROW = experts(8, 64)
SHARING = experts(8, 64, shared=64)


def after_first(dense: Shapes, sparse: Shapes) -> tuple[Shapes, ...]:
    return (dense, *[sparse] * (LAYERS - 1))
