"""GPT-2 and its relatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gguf_cases.shapes import (
    ALIBI,
    DIM,
    FIELDS,
    GPT2_CONFIG,
    HEADS,
    HIDDEN,
    KV,
    LAYERS,
    PAIR,
    PAIR_BIASED,
    Case,
    Q,
    Shapes,
    fused,
    network,
    norms,
    stack,
)


def gpt2(
    arch: str,
    model_type: str,
    layer: Shapes,
    *,
    fields: Mapping[str, Any] | None = None,
    positions: bool = True,
    **more: Any,
) -> Case:
    """GPT-2 and its relatives, whose configs have names of their own."""
    config, tied = {**GPT2_CONFIG, **more.pop("config", {}), "model_type": model_type}, more.pop("tied", True)
    outer = {"position_embd.weight": (512, HIDDEN)} if positions else {}
    bias = more.pop("bias", True)
    return Case(
        arch=arch,
        config={key: value for key, value in config.items() if value != "absent"},
        fields={k: v for k, v in {**FIELDS, **ALIBI, "context_length": 512, **(fields or {})}.items() if v is not None},
        shapes=stack(*[layer] * LAYERS, outer=outer | more.pop("outer", {}), tied=tied, bias=bias),
    )


_MHA_ONLY = {"attention.head_count_kv": None, "attention.max_alibi_bias": None}
GPT2 = (
    gpt2(
        "gpt2", "gpt2", PAIR_BIASED | fused(k=Q, bias=True, out=True) | network(gate=False, bias=True), fields=_MHA_ONLY
    ),
    gpt2(
        "starcoder",
        "gpt_bigcode",
        PAIR_BIASED | fused(k=DIM, bias=True, out=True) | network(gate=False, bias=True),
        config={"multi_query": True},
        fields={"attention.head_count_kv": 1, "attention.max_alibi_bias": None},
    ),
    gpt2(
        "jais",
        "jais",
        PAIR_BIASED | fused(k=Q, bias=True, out=True) | network(bias=True),
        positions=False,
        fields={"attention.head_count_kv": None},
    ),
    gpt2(
        "bloom",
        "bloom",
        PAIR_BIASED | fused(k=Q, bias=True, out=True) | network(4 * HIDDEN, gate=False, bias=True),
        positions=False,
        outer=norms("token_embd_norm", bias=True),
        fields={"feed_forward_length": 4 * HIDDEN, "attention.head_count_kv": HEADS},
        config={"n_inner": "absent", "n_positions": "absent", "n_embed": HIDDEN, "n_embd": "absent"},
    ),
    gpt2(
        "mpt",
        "mpt",
        PAIR | fused(k=Q) | network(gate=False),
        positions=False,
        bias=False,
        fields={"attention.head_count_kv": None},
        config={
            "n_embd": "absent",
            "n_layer": "absent",
            "n_head": "absent",
            "n_inner": "absent",
            "n_positions": "absent",
            "d_model": HIDDEN,
            "n_layers": LAYERS,
            "n_heads": HEADS,
            "expansion_ratio": 2,
            "max_seq_len": 512,
            "attn_config": {"alibi": True},
        },
    ),
    gpt2(
        "falcon",
        "falcon",
        norms("attn_norm", bias=True) | fused(k=DIM) | network(4 * HIDDEN, gate=False),
        positions=False,
        fields={"feed_forward_length": 4 * HIDDEN, "attention.head_count_kv": 1, "tensor_data_layout": "jploski"},
        config={
            "n_embd": "absent",
            "n_inner": "absent",
            "n_positions": "absent",
            "hidden_size": HIDDEN,
            "multi_query": True,
            "parallel_attn": True,
            "bias": False,
            "alibi": False,
            "new_decoder_architecture": False,
        },
    ),
    gpt2(
        "falcon",
        "falcon",
        norms("attn_norm", "attn_norm_2", bias=True) | fused() | network(4 * HIDDEN, gate=False),
        positions=False,
        fields={"feed_forward_length": 4 * HIDDEN, "attention.head_count_kv": KV},
        config={
            "n_embd": "absent",
            "n_inner": "absent",
            "n_positions": "absent",
            "hidden_size": HIDDEN,
            "num_kv_heads": KV,
            "bias": False,
            "alibi": False,
            "new_decoder_architecture": True,
        },
    ),
)
