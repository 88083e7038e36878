"""Softmax attention whose inputs pass short convolutions over the sequence: Inkling, ZAYA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from planner.importers.huggingface.class_defaults import class_defaults
from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import always, build, first_layers, kinds, layer_count
from planner.importers.huggingface.parts.networks import Experts, dense, several, sparse_by_type
from planner.importers.huggingface.parts.softmax import head_dim, heads_of, softmax_kind
from planner.model import Projection, SoftmaxAttention
from planner.model.stack import MAX_LAYERS

HYBRID = ("hybrid", "hybrid_sliding")

# ---- Inkling ---------------------------------------------------------------------------------------------------------


def _ink_rule(config: Config, index: int) -> str:
    """Inkling: `local_layer_ids` lists the layers with a window; else all but every sixth have one."""
    listed = config.integers("local_layer_ids")
    local = index in listed if listed is not None else (index + 1) % 6 != 0
    return "hybrid_sliding" if local else "hybrid"


_ink_kinds = kinds(_ink_rule, known=HYBRID)


def _is_local(config: Config, index: int) -> bool:
    return _ink_kinds(config, index) == "hybrid_sliding"


def _ink_shape(config: Config, index: int) -> tuple[int, int, int]:
    """Return query heads, KV heads and their elements, which layers with a window have of their own."""
    if _is_local(config, index):
        heads, kv_heads = heads_of(config, "swa_num_attention_heads", "swa_num_key_value_heads")
        return heads, kv_heads, config.integer("swa_head_dim")
    heads, kv_heads = heads_of(config, "num_attention_heads", "num_key_value_heads")
    return heads, kv_heads, head_dim(config, heads)


def _ink_attention(**more: Any) -> Any:
    """Return a reader; keys, values and the two halves' results each pass a convolution, whose inputs are kept."""

    def read(config: Config, index: int) -> SoftmaxAttention:
        heads, kv_heads, dim = _ink_shape(config, index)
        inputs = 2 * (kv_heads * dim + config.integer("hidden_size"))
        return build(
            config,
            SoftmaxAttention,
            kind=softmax_kind(heads, kv_heads),
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=dim,
            sliding_window=config.integer("sliding_window_size") if _is_local(config, index) else None,
            state_elements=config.integer("conv_kernel_size") * inputs,
            **more,
        )

    return read


def _relative(config: Config, index: int) -> tuple[Projection, int]:
    """Return what a bias by distance takes: a small vector for each head, and a table of distances that it is multiplied by."""
    heads, small = _ink_shape(config, index)[0], config.integer("d_rel")
    reach = config.integer("sliding_window_size") if _is_local(config, index) else config.integer("rel_extent")
    states = Projection(name="relative", input_size=config.integer("hidden_size"), output_size=heads * small)
    return states, small * reach


_ink_sparse = sparse_by_type(first_layers("dense_mlp_idx", 0))


def _ink_layer(config: Config, index: int) -> dict[str, Any]:
    """Inkling: a bias by distance, four convolutions, a scale of the network, and a router's rows for the shared experts."""
    hidden, kernel = config.integer("hidden_size"), config.integer("conv_kernel_size")
    _, kv_heads, dim = _ink_shape(config, index)
    states, table = _relative(config, index)
    projections = [states]
    shared = config.optional("n_shared_experts", least=0)
    if shared and _ink_sparse(config, index):
        projections.append(Projection(name="shared_experts.weights", input_size=hidden, output_size=shared))
    convolutions = 2 * kernel * (kv_heads * dim + hidden)
    return {"projections": tuple(projections), "other_parameters": table + convolutions + 1}


def _ink_model(config: Config) -> dict[str, Any]:
    """Inkling: a norm of the embedding."""
    return {"other_parameters": config.integer("hidden_size")}


def _ink_width(config: Config, index: int) -> int:  # the signature of every reader
    """Inkling: where `dense_intermediate_size` is given, `intermediate_size` is the width of an expert."""
    return config.optional("dense_intermediate_size") or config.integer("intermediate_size")


_ink_experts = Experts(shared=several("n_shared_experts"), sparse=_ink_sparse, otherwise=dense(width=_ink_width))
_ink_older = Experts(
    width="intermediate_size",
    shared=several("n_shared_experts", "intermediate_size"),
    sparse=_ink_sparse,
    otherwise=dense(width=_ink_width),
)


def _ink_ffn(config: Config, index: int) -> Any:
    reader = _ink_older if config.optional("dense_intermediate_size") else _ink_experts
    return reader(config, index)


def _ink2_layer(config: Config, index: int) -> dict[str, Any]:
    """Inkling 2: gates and sinks that depend on the token, norms for each head, attention over the results of earlier blocks.

    Layers that look at everything have a convolution of keys and one of values whose weights depend on the token, and queries, keys
    and values each with a norm of its own.
    """
    hidden, kernel = config.integer("hidden_size"), config.integer("conv_kernel_size")
    heads, kv_heads, dim = _ink_shape(config, index)
    local = _is_local(config, index)
    states, table = _relative(config, index)
    projections = [states, Projection(name="sink_proj", input_size=hidden, output_size=heads)]
    if not local:
        projections += [
            Projection(name=f"{name}.sconv.weight_proj", input_size=hidden, output_size=kernel * kv_heads)
            for name in ("k_proj", "v_proj")
        ]
    convolutions = 2 * kernel * (kv_heads * dim + hidden)
    norms = heads * dim + states.output_size
    sources = hidden * (1 + (0 if index == 0 else 1 if local else 3))
    return {
        "norms": 2 if local else 4,
        "projections": tuple(projections),
        "other_parameters": table + convolutions + norms + sources,
    }


def _ink2_model(config: Config) -> dict[str, Any]:
    """Inkling 2: the last result, too, is a mixture of those of earlier blocks; rows that only pad the LM head are not stored."""
    rows = config.integer("vocab_size")
    return {
        "vocab_size": config.optional("unpadded_vocab_size") or rows,
        "embedding_rows": rows,
        "other_parameters": 2 * config.integer("hidden_size"),
    }


# ---- Inkling 2 with a loop: layers in the middle run several times, hearing from the run before ------------------------


def _loop_field(config: Config, nested: str, field: str, default: int, least: int = 1) -> int:
    """Return a field of the loop, which may stand in `loop_config` under another name."""
    stated = config.part("loop_config").optional(nested, least=least)
    return config.integer(field, default, least=least) if stated is None else stated


def _loop_bounds(config: Config) -> tuple[int, int, int]:
    """Return the first layer of the loop, the first after it, and how often it runs."""
    start = _loop_field(config, "core_start", "loop_layer_index_start", 6)
    end = _loop_field(config, "core_end", "loop_layer_index_end", 18)
    if end < start:
        config.fault("loop_layer_index_end", f"{end} is before loop_layer_index_start {start}")
        config.raise_faults()
    return start, end, _loop_field(config, "num_passes", "loop_num_passes", 3)


def _loop_runs(config: Config) -> list[tuple[int, int]]:
    """Return every run of a layer: which one it is, and the pass."""

    def read() -> list[tuple[int, int]]:
        count = layer_count(config)
        start, end, passes = _loop_bounds(config)
        looped = range(start, min(end, count))
        if count + len(looped) * passes > MAX_LAYERS:
            config.fault("loop_num_passes", f"layers run more often than makes sense (at most {MAX_LAYERS} times)")
            config.raise_faults()
        before, after = range(min(start, count)), range(min(end, count), count)
        again = [(layer, number) for number in range(passes if looped else 0) for layer in looped]
        return [*((layer, 0) for layer in before), *again, *((layer, 0) for layer in after)]

    return config.derived("inkling2 loop", read)


def _looped(reader: Callable[[Config, int], Any]) -> Callable[[Config, int], Any]:
    """Return a reader of a run from one of a layer."""
    return lambda config, index: reader(config, _loop_runs(config)[index][0])


def _loop_layer(config: Config, index: int) -> dict[str, Any]:
    """Inkling 2 with a loop: from the second pass on, four inputs of a layer are mixed with messages by gates of low rank."""
    layer, number = _loop_runs(config)[index]
    start, end, _ = _loop_bounds(config)
    found = _ink2_layer(config, layer)
    hidden, rank = config.integer("hidden_size"), _loop_field(config, "gate_rank", "loop_gate_rank", 64)
    gates = []
    for name in ("q", "k", "v", "mlp"):
        gates.append(Projection(name=f"{name}_message_gate.down_proj", input_size=2 * hidden, output_size=rank))
        gates.append(Projection(name=f"{name}_message_gate.gates", input_size=rank, output_size=2 * hidden))
    if number:
        return {**found, "projections": (*found["projections"], *gates), "shared_weights": True}
    # The first pass hears from nobody, but it is where the weights of all passes stand.
    stored = sum(gate.tensor.parameters for gate in gates) if start <= layer < end else 0
    return {**found, "other_parameters": found["other_parameters"] + stored}


def _loop_model(config: Config) -> dict[str, Any]:
    """Inkling 2 with a loop: what each layer of the loop asks the blocks of the pass before, for four inputs."""
    fields = _ink2_model(config)
    start, end, _ = _loop_bounds(config)
    asked = 4 * (end - start) * config.integer("hidden_size")
    return {**fields, "other_parameters": fields["other_parameters"] + asked}


# ---- ZAYA ------------------------------------------------------------------------------------------------------------

_zaya_kinds = kinds(always("hybrid"), known=HYBRID)


def _zaya_attention(config: Config, index: int) -> SoftmaxAttention:
    """ZAYA (compressed convolutional attention): queries and keys pass two convolutions, half of the values are a token late."""
    heads, kv_heads = heads_of(config, "num_attention_heads", "num_key_value_heads")
    dim, bias = head_dim(config, heads), config.flag("attention_bias", default=False)
    early = config.integer("cca_time0", 2) + config.integer("cca_time1", 2) - 2
    return build(
        config,
        SoftmaxAttention,
        kind=softmax_kind(heads, kv_heads),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=dim,
        qkv_bias=bias,
        output_bias=bias,
        sliding_window=config.integer("sliding_window") if _zaya_kinds(config, index) == "hybrid_sliding" else None,
        state_elements=early * (heads + kv_heads) * dim + kv_heads * dim // 2,
    )


def _zaya_layer(config: Config, index: int) -> dict[str, Any]:
    """ZAYA: the convolutions, a temperature for each KV head, the router's network, scales and offsets of both residuals."""
    hidden, small = config.integer("hidden_size"), config.integer("router_hidden_size")
    heads, kv_heads = heads_of(config, "num_attention_heads", "num_key_value_heads")
    dim = head_dim(config, heads)
    channels = (heads + kv_heads) * dim
    grouped = Projection(
        name="conv_qk_grouped", input_size=dim * config.integer("cca_time1", 2), output_size=channels, bias=True
    )
    router = (
        Projection(name="gate.down_proj", input_size=hidden, output_size=small, bias=True),
        Projection(name="gate.fc1", input_size=small, output_size=small, bias=True),
        Projection(name="gate.fc2", input_size=small, output_size=small, bias=True),
    )
    depthwise = channels * (config.integer("cca_time0", 2) + 1)
    others = depthwise + kv_heads + small + 8 * hidden + (small if index else 0)
    return {"projections": (grouped, *router), "other_parameters": others}


def _zaya_model(config: Config) -> dict[str, Any]:
    return {
        "other_parameters": 2 * config.integer("hidden_size"),
        "lm_head_bias": config.flag("lm_head_bias", default=False),
    }


INKLING = Family(
    attention=_ink_attention(qk_norm="head"),
    ffn=_ink_ffn,
    layer=_ink_layer,
    model=_ink_model,
    tied="never",
    ignored=(
        "shared_expert_sink",
        "unpadded_vocab_size",
        "logits_mup_width_multiplier",
        "number_of_conv_states",
        "mtp_local_layer_ids",
    ),
)

FAMILIES: dict[str, Family] = {
    "inkling_text": INKLING,
    "inkling_model": replace(
        INKLING, aliases={"conv_kernel_size": "sconv_kernel_size"}, defaults=dict(class_defaults("inkling_text"))
    ),
    "inkling2_text": Family(
        attention=_ink_attention(output_gate="element"),
        ffn=Experts(),
        layer=_ink2_layer,
        model=_ink2_model,
        tied="never",
        ignored=("n_layers_per_attn_res_block", "local_layer_ids"),
    ),
    "inkling2_loop_text": Family(
        attention=_looped(_ink_attention(output_gate="element")),
        ffn=_looped(Experts()),
        layer=_loop_layer,
        layers=lambda config: len(_loop_runs(config)),
        model=_loop_model,
        tied="never",
        ignored=("n_layers_per_attn_res_block", "local_layer_ids"),
    ),
    "zaya": Family(
        attention=_zaya_attention,
        ffn=Experts(router_size="router_hidden_size", zero_experts=1),
        layer=_zaya_layer,
        model=_zaya_model,
        tied=True,
    ),
}
