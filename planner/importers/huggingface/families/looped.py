"""Models whose layers run several times for a token: the weights are stored once, each run has a cache of its own."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import NO_WEIGHT, Family
from planner.importers.huggingface.parts.basics import build, flag, layer_count
from planner.importers.huggingface.parts.softmax import head_dim, heads_of, softmax_kind
from planner.model import FeedForward, SoftmaxAttention
from planner.model.stack import MAX_LAYERS


def _checked(config: Config, field: str, count: int) -> int:
    """Return a number of runs of layers; more than make sense are a fault."""
    if count > MAX_LAYERS:
        config.fault(field, f"layers run {count} times altogether, at most {MAX_LAYERS} make sense")
        config.raise_faults()
    return count


def _attention(config: Config, **more: Any) -> SoftmaxAttention:
    heads, kv_heads = heads_of(config, "num_attention_heads", "num_key_value_heads")
    bias = flag(config, "attention_bias")
    fields: dict[str, Any] = {
        "kind": softmax_kind(heads, kv_heads),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim(config, heads),
        "qkv_bias": bias,
        "output_bias": bias,
    }
    return build(config, SoftmaxAttention, **fields | more)


def _network(config: Config, *, shared: bool) -> FeedForward:
    return build(
        config,
        FeedForward,
        kind="gated",
        intermediate_size=config.integer("intermediate_size"),
        bias=flag(config, "mlp_bias"),
        shared_weights=shared,
    )


# ---- HRM: two stacks, a slow one that runs once after each few runs of a fast one -------------------------------------


def _hrm_first(config: Config, index: int) -> bool:
    """Whether a layer is one of the first run of its stack: the fast stack's first, the slow one's after all fast ones."""
    size, fast = config.integer("num_layers_per_stack"), config.integer("L_cycles")
    run = index // size
    return run in (0, fast)


def _hrm_layers(config: Config) -> int:
    size, slow, fast = (config.integer(f) for f in ("num_layers_per_stack", "H_cycles", "L_cycles"))
    return _checked(config, "num_layers_per_stack", size * slow * (fast + 1))


def _hrm_attention(config: Config, index: int) -> SoftmaxAttention:
    return _attention(config, output_gate="element", shared_weights=not _hrm_first(config, index))


def _hrm_ffn(config: Config, index: int) -> FeedForward:
    return _network(config, shared=not _hrm_first(config, index))


def _hrm_model(config: Config) -> dict[str, Any]:
    """HRM: the fast state starts from a stored vector; norms have no weights."""
    return {"other_parameters": config.integer("hidden_size")}


# ---- Dory: layers in the middle run several times ---------------------------------------------------------------------


def _dory_stack(config: Config) -> list[tuple[str, bool, bool]]:
    """Return every run of a layer: its kind, whether it stores weights, and whether it keeps a cache.

    Files list attention and feed-forward network as layers of their own; the class's arguments list them as one.
    """

    def read() -> list[tuple[str, bool, bool]]:
        listed = config.listed("layer_types")
        halves = 2 if listed is not None and "mlp" in listed else 1
        count = layer_count(config, "num_hidden_layers") // halves
        types = [str(t) for t in (listed or ())[::halves]][:count] or [
            "sliding_attention" if (i + 1) % 4 else "full_attention" for i in range(count)
        ]
        first = config.integer("n_input_layers", 8, least=0) // halves
        last = config.integer("n_output_layers", 8, least=0) // halves
        middle, loops = count - first - last, config.integer("n_recurrent_loops", 2)
        strange = sorted(set(types) - {"sliding_attention", "full_attention"})
        if middle < 0 or len(types) != count or strange:
            config.fault("layer_types", "and the numbers of layers before, in and after the loop do not fit together")
            config.raise_faults()
        config.get("n_recurrent_layers")
        _checked(config, "n_recurrent_loops", first + middle * loops + last)
        kept = config.text("recurrent_kv_cache_mode", "per_loop") == "per_loop"
        runs = [(kind, True, True) for kind in types[:first]]
        for loop in range(loops):
            runs += [(kind, loop == loops - 1, kept or loop == loops - 1) for kind in types[first : first + middle]]
        return runs + [(kind, True, True) for kind in types[first + middle :]]

    return config.derived("dory", read)


def _dory_attention(config: Config, index: int) -> SoftmaxAttention:
    kind, stored, cached = _dory_stack(config)[index]
    window = config.integer("sliding_window")
    return _attention(
        config,
        output_gate="element",
        gate_bias=False,
        sliding_window=window if kind == "sliding_attention" else None,
        shared_weights=not stored,
        shared_kv=not cached,
    )


def _dory_layer(config: Config, index: int) -> dict[str, Any]:
    """Dory: learned steps of the residual, and scales of queries and keys, of the gate and of the network's two inputs."""
    attention = _attention(config)
    scales = 2 * attention.num_attention_heads * attention.head_dim + 2 * config.integer("intermediate_size")
    stored = _dory_stack(config)[index][1]
    return {"other_parameters": 2 * config.integer("hidden_size") + scales if stored else 0}


def _dory_model(config: Config) -> dict[str, Any]:
    return {"final_norm": False, "other_parameters": config.integer("vocab_size")}


# ---- Ouro: the whole stack runs several times -------------------------------------------------------------------------


def _ouro_layers(config: Config) -> int:
    runs = config.integer("num_hidden_layers") * config.integer("total_ut_steps", 4)
    return _checked(config, "total_ut_steps", runs)


def _ouro_attention(config: Config, index: int) -> SoftmaxAttention:
    return _attention(config, shared_weights=index >= config.integer("num_hidden_layers"))


def _ouro_ffn(config: Config, index: int) -> FeedForward:
    return _network(config, shared=index >= config.integer("num_hidden_layers"))


def _ouro_layer(config: Config, index: int) -> dict[str, Any]:
    """Ouro: norms before and after each half, stored by the first run; later runs pass them as well."""
    first = index < config.integer("num_hidden_layers")
    return {"norms": 0, "other_parameters": 4 * config.integer("hidden_size") if first else 0}


def _ouro_model(config: Config) -> dict[str, Any]:
    """Ouro: a gate that says after each run whether to stop; engines run all of them."""
    return {"other_parameters": config.integer("hidden_size") + 1}


# ---- IQuest-LoopCoder: the stack runs again, and looks back at what the first run kept --------------------------------


def _loop_layers(config: Config) -> int:
    runs = config.integer("num_hidden_layers") * config.integer("loop_num", 2)
    return _checked(config, "loop_num", runs)


def _again(config: Config, index: int) -> bool:
    return index >= config.integer("num_hidden_layers")


def _loop_attention(config: Config, index: int) -> SoftmaxAttention:
    """IQuest-LoopCoder: later runs have a window of their own, and attend to the whole cache of the first run as well."""
    if not _again(config, index):
        return _attention(config)
    window = config.integer("loop_window_size", 64)
    return _attention(config, shared_weights=True, sliding_window=window, earlier_run=True)


def _loop_layer(config: Config, index: int) -> dict[str, Any]:
    """IQuest-LoopCoder: a vector and an offset for each head, by which later runs mix both results; norms are stored once."""
    if _again(config, index):
        return {"norms": 0}
    attention = _attention(config)
    return {"other_parameters": attention.num_attention_heads * (attention.head_dim + 1)}


# ---- Nanbeige: the whole stack runs several times ---------------------------------------------------------------------

_NANBEIGE_MORE = (
    "enable_depth_attention",
    "enable_double_loop_split",
    "enable_hyper_connection",
    "enable_mhc",
    "emb_neighbor_num",
    "emb_split_num",
    "insert_ngram_layer_idx",
    "loop_middle_layers",
    "loop_share_kv",
    "ngram_vocab_size_ratio",
    "qk_layernorm",
)


def _nanbeige_layers(config: Config) -> int:
    for field in _NANBEIGE_MORE:
        if config.get(field):
            config.fault(field, "is not supported")
    config.raise_faults()
    runs = config.integer("num_hidden_layers") * config.integer("num_loops", 1)
    return _checked(config, "num_loops", runs)


def _nanbeige_layer(config: Config, index: int) -> dict[str, Any]:
    return {"norms": 0} if _again(config, index) else {}


FAMILIES: dict[str, Family] = {
    "iquestloopcoder": Family(
        attention=_loop_attention,
        ffn=lambda config, index: _network(config, shared=_again(config, index)),
        layers=_loop_layers,
        layer=_loop_layer,
        ignored=("max_window_layers", "use_sliding_window", "sliding_window"),
    ),
    "nanbeige": Family(
        attention=lambda config, index: _attention(config, shared_weights=_again(config, index)),
        ffn=lambda config, index: _network(config, shared=_again(config, index)),
        layers=_nanbeige_layers,
        layer=_nanbeige_layer,
        ignored=("skip_loop_final_norm", "loop_loss_weights"),
    ),
    "hrm_text": Family(
        attention=_hrm_attention,
        ffn=_hrm_ffn,
        layers=_hrm_layers,
        norm=NO_WEIGHT,
        model=_hrm_model,
        ignored=("num_hidden_layers", "L_bp_cycles", "prefix_lm", "embedding_scale"),
    ),
    "dory": Family(
        attention=_dory_attention,
        ffn=lambda config, index: _network(config, shared=not _dory_stack(config)[index][1]),
        layers=lambda config: len(_dory_stack(config)),
        norm=NO_WEIGHT,
        layer=_dory_layer,
        model=_dory_model,
        ignored=("ngpt_alpha_init",),
    ),
    "ouro": Family(
        attention=_ouro_attention,
        ffn=_ouro_ffn,
        layers=_ouro_layers,
        layer=_ouro_layer,
        model=_ouro_model,
        ignored=("early_exit_threshold", "early_exit_step", "max_window_layers", "use_sliding_window", "layer_types"),
    ),
}
