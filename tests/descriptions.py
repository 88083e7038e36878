"""Small models and chips for tests, with round numbers."""

from typing import Any

from planner.engine import Engine
from planner.hardware import Hardware
from planner.model import Model

FIGURE = {"source": "made up"}


def dense(layers: int = 4, heads: int = 16, kv_heads: int = 4, **changes: Any) -> Model:
    return Model.model_validate(
        {
            "name": "dense",
            "hidden_size": 256,
            "vocab_size": 1024,
            "tie_word_embeddings": False,
            "layers": [
                {
                    "repeat": layers,
                    "attention": {
                        "kind": "gqa",
                        "num_attention_heads": heads,
                        "num_key_value_heads": kv_heads,
                        "head_dim": 32,
                    },
                    "ffn": {"kind": "gated", "intermediate_size": 512},
                }
            ],
            **changes,
        }
    )


def experts(layers: int = 4, count: int = 16, chosen: int = 4, shared: int | None = 256, kv_heads: int = 4) -> Model:
    ffn = {
        "kind": "moe",
        "num_experts": count,
        "num_experts_per_tok": chosen,
        "moe_intermediate_size": 128,
        "shared_intermediate_size": shared,
    }
    base = dense(layers, kv_heads=kv_heads).model_dump(exclude_none=True)
    return Model.model_validate({**base, "name": "experts", "layers": [{**base["layers"][0], "ffn": ffn}]})


def latent(layers: int = 4) -> Model:
    attention = {
        "kind": "mla",
        "num_attention_heads": 16,
        "q_lora_rank": 96,
        "kv_lora_rank": 64,
        "qk_nope_head_dim": 32,
        "qk_rope_head_dim": 16,
        "v_head_dim": 32,
    }
    ffn = {"kind": "gated", "intermediate_size": 512}
    return Model.model_validate(
        {
            **dense().model_dump(exclude={"layers"}),
            "name": "latent",
            "layers": [{"repeat": layers, "attention": attention, "ffn": ffn}],
        }
    )


def chip(
    *,
    chips: int = 64,
    one_way: float = 100e9,
    latency: float | None = 1e-6,
    out: float | None = None,
    topology: str = "switch",
    capacity: float = 80e9,
) -> Hardware:
    links: dict[str, Any] = {
        "scale_up": {"name": "link", "topology": topology, "chips": chips, "one_way": {"value": one_way, **FIGURE}}
    }
    if latency:
        links["scale_up"]["latency"] = {"value": latency, **FIGURE}
    if out:
        links["scale_out"] = {"one_way": {"value": out, **FIGURE}}
    return Hardware.model_validate(
        {
            "name": "chip",
            "vendor": "v",
            "kind": "gpu",
            "peak": {"bf16": {"value": 100e12, **FIGURE}},
            "memory": {"capacity": {"value": capacity, **FIGURE}, "bandwidth": {"value": 1e12, **FIGURE}},
            "links": links,
        }
    )


def engine(
    *, fraction: float = 1.0, of: str = "total", page: int = 1, tokens: int = 256, runtime: float = 1.0
) -> Engine:
    """With 1 byte of runtime: nothing beside what is counted."""
    return Engine.model_validate(
        {
            "name": "engine",
            "memory_fraction": {"value": fraction, **FIGURE},
            "fraction_of": of,
            "page_tokens": {"value": page, **FIGURE},
            "batched_tokens": {"value": tokens, **FIGURE},
            "runtime": {"value": runtime, **FIGURE},
        }
    )
