"""Gemma: windows that alternate with full attention, norms on both sides, embeddings of each layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import SLIDING, each, every, kinds, layer_count
from planner.importers.huggingface.parts.networks import Experts, dense
from planner.importers.huggingface.parts.recurrent import gated_recurrence
from planner.importers.huggingface.parts.softmax import softmax, window_on
from planner.model import Projection, Table

_alternate = kinds(every(2, other="sliding_attention"), known=SLIDING)
_one_in_six = kinds(
    every("sliding_window_pattern", 6, other="sliding_attention"), known=(*SLIDING, "chunked_attention")
)
_one_in_five = kinds(every(5, other="sliding_attention"), known=SLIDING)
_plain_six = kinds(every(6, other="sliding_attention"), known=SLIDING)


def _bidirectional_window(config: Config, index: int) -> int | None:
    """Gemma 3: a model that looks both ways has its window halved to each side."""
    window = window_on(_one_in_six)(config, index)
    both = config.get("use_bidirectional_attention")
    return window // 2 + 1 if window and both is True else window


def _chunks(config: Config, index: int) -> dict[str, Any]:
    """Rnj-1: layers of chunks as long as the window, each of which sees the one before it as well."""
    if _one_in_six(config, index) != "chunked_attention":
        return {}
    return {"attention_chunk_size": config.integer("sliding_window"), "attention_chunk_lookback": 1}


# ---- per-layer embeddings (Gemma 3n, Gemma 4) ------------------------------------------------------------------------


def _per_layer_width(config: Config) -> int:
    return config.optional("hidden_size_per_layer_input", 0, least=0) or 0


def _per_layer_fields(config: Config) -> tuple[tuple[Projection, ...], int]:
    """Return the projections and further parameters that a layer's own embedding brings to it."""
    width, hidden = _per_layer_width(config), config.integer("hidden_size")
    if not width:
        return (), 0
    gate = Projection(name="per_layer_input_gate", input_size=hidden, output_size=width)
    back = Projection(name="per_layer_projection", input_size=width, output_size=hidden)
    return (gate, back), hidden


def _per_layer_model(config: Config) -> dict[str, Any]:
    """Return the table of per-layer embeddings, and the projection of the token's embedding to all of them."""
    width, layers = _per_layer_width(config), layer_count(config)
    if not width:
        return {}
    rows = config.optional("vocab_size_per_layer_input") or config.integer("vocab_size")
    hidden = config.integer("hidden_size")
    return {
        "tables": (Table(name="embed_tokens_per_layer", rows=rows, width=layers * width),),
        "projections": (Projection(name="per_layer_model_projection", input_size=hidden, output_size=layers * width),),
        "other_parameters": width,
    }


def _is_shared(config: Config, index: int) -> bool:
    """Whether a layer takes keys and values from an earlier one."""
    shared = config.optional("num_kv_shared_layers", 0, least=0) or 0
    return index >= layer_count(config) - shared


# ---- Gemma 3n --------------------------------------------------------------------------------------------------------


def _gemma3n_layer(config: Config, index: int) -> dict[str, Any]:  # the signature of every reader
    """Gemma 3n: alternating updates of several streams (AltUp), a low-rank residual (LAuReL), a layer's own embedding."""

    def read() -> dict[str, Any]:
        hidden, rank = config.integer("hidden_size"), config.integer("laurel_rank")
        streams = config.integer("altup_num_inputs")
        projections, others = _per_layer_fields(config)
        own = (
            Projection(name="altup.modality_router", input_size=hidden, output_size=streams),
            Projection(name="laurel.linear_left", input_size=hidden, output_size=rank),
            Projection(name="laurel.linear_right", input_size=rank, output_size=hidden),
        )
        coefficients = streams**2 + streams**3
        return {"projections": (*own, *projections), "other_parameters": others + coefficients + 3 * hidden}

    return config.derived("gemma3n", read)


def _gemma3n_model(config: Config) -> dict[str, Any]:
    hidden, streams = config.integer("hidden_size"), config.integer("altup_num_inputs")
    fields = _per_layer_model(config)
    names = [f"altup_{kind}projections.{i}" for kind in ("", "unembed_") for i in range(min(streams - 1, 64))]
    turned = tuple(Projection(name=name, input_size=hidden, output_size=hidden) for name in names)
    return {**fields, "projections": (*fields.get("projections", ()), *turned)}


def _gemma3n_heads(config: Config, index: int) -> dict[str, Any]:
    return {"shared_kv": _is_shared(config, index)}


# ---- Gemma 4 ---------------------------------------------------------------------------------------------------------


def _gemma4_kind(config: Config, index: int) -> str:
    """Gemma 4: the last layer attends to everything, whatever the list says."""
    return "full_attention" if index == layer_count(config) - 1 else _plain_six(config, index)


def _gemma4_heads(config: Config, index: int) -> dict[str, Any]:
    """Gemma 4: full layers have heads of their own size, and may take their values from their keys."""
    fields: dict[str, Any] = {"shared_kv": _is_shared(config, index)}
    if _gemma4_kind(config, index) == "sliding_attention":
        return fields
    own = config.part("per_layer_config").part(str(index)) if config.has("per_layer_config") else None
    alike = config.flag("attention_k_eq_v", default=False)
    global_dim, global_heads = config.optional("global_head_dim", 512), config.optional("num_global_key_value_heads")
    kv_heads = global_heads if alike else None
    if own is not None:
        global_dim, kv_heads = own.optional("head_dim", global_dim), own.optional("num_key_value_heads", kv_heads)
    fields["head_dim"] = global_dim
    if kv_heads:
        fields["num_key_value_heads"] = kv_heads
    if alike and not fields["shared_kv"]:
        fields["tied_values"] = True
    return fields


def _gemma4_width(config: Config, index: int) -> int:
    double = config.flag("use_double_wide_mlp", default=False) and _is_shared(config, index)
    return config.integer("intermediate_size") * (1 + double)


def _router_scales(config: Config, index: int) -> int:
    return config.integer("hidden_size") + config.integer("num_experts")


_gemma4_dense = dense(width=_gemma4_width)
_gemma4_experts = Experts(router_parameters=_router_scales)


def _gemma4_ffn(config: Config, index: int) -> Any:
    """Gemma 4: a dense network that every token passes, and experts beside it."""
    always = _gemma4_dense(config, index)
    return (always, _gemma4_experts(config, index)) if config.flag("enable_moe_block", default=False) else always


def _gemma4_layer(config: Config, index: int) -> dict[str, Any]:
    projections, others = config.derived("per_layer", lambda: _per_layer_fields(config))
    return {"projections": projections, "other_parameters": others}


def _gemma4_norms(config: Config, index: int) -> int:
    return 7 if config.flag("enable_moe_block", default=False) else 4


# ---- RecurrentGemma --------------------------------------------------------------------------------------------------

_griffin_attention = softmax(
    derived_dim=True,
    window=each(lambda config: config.optional("attention_window_size")),
    bias="attention_bias",
    output_bias=True,
)


def _griffin(config: Config, index: int) -> Any:
    """RecurrentGemma: `block_types` repeats over the layers."""
    pattern = config.listed("block_types") or ("recurrent", "recurrent", "attention")
    kind = pattern[index % len(pattern)] if pattern else ""
    if kind not in ("recurrent", "attention"):
        config.fault("block_types", f"{kind!r} is not recurrent or attention")
        config.raise_faults()
    return gated_recurrence(config, index) if kind == "recurrent" else _griffin_attention(config, index)


_biases = {"bias": "attention_bias", "output_bias": "attention_bias"}
GEMMA2 = Family(
    attention=softmax(window=window_on(_alternate), bias="attention_bias", output_bias="attention_bias"),
    ffn=dense(),
    norms=4,
    tied=True,
    ignored=("sliding_window_size", "_sliding_window_pattern", "sliding_window_pattern"),
)
GEMMA3 = replace(
    GEMMA2,
    attention=softmax(
        window=_bidirectional_window,
        bias="attention_bias",
        output_bias="attention_bias",
        qk_norm="head",
        more=_chunks,
    ),
)
GEMMA4 = Family(
    attention=softmax(
        window=window_on(_gemma4_kind),
        bias="attention_bias",
        output_bias="attention_bias",
        qk_norm="head",
        more=_gemma4_heads,
    ),
    ffn=_gemma4_ffn,
    layer=_gemma4_layer,
    model=_per_layer_model,
    norms=_gemma4_norms,
    tied=True,
)

FAMILIES: dict[str, Family] = {
    "gemma": Family(attention=softmax(bias="attention_bias", output_bias="attention_bias"), ffn=dense(), tied=True),
    "gemma2": GEMMA2,
    "vaultgemma": replace(GEMMA2, norms=2),
    "gemma3_text": GEMMA3,
    "rnj1": GEMMA3,
    "gemma3n_text": Family(
        attention=softmax(
            window=window_on(_one_in_five),
            bias="attention_bias",
            output_bias="attention_bias",
            qk_norm="head",
            more=_gemma3n_heads,
        ),
        ffn=dense(),
        layer=_gemma3n_layer,
        model=_gemma3n_model,
        norms=4,
        tied=True,
    ),
    "gemma4_text": GEMMA4,
    "gemma4_unified_text": GEMMA4,
    "recurrent_gemma": Family(
        attention=_griffin,
        ffn=dense(bias=True, width=each(lambda config: max(config.integer("intermediate_size") // 2, 1))),
        tied=True,
        ignored=("final_w_init_variance_scale",),
    ),
}
