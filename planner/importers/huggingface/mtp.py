"""Multi-token prediction: what checkpoints store beside the model, by a table of architectures.

DeepSeek-V3 (README_WEIGHTS.md of its repository): each module has the layout of a main layer, two norms before a projection of twice the
hidden size to once, and a norm before its head; embedding and head are shared with the main model, but the files hold copies of both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from planner.importers.huggingface.quantization.modules import unfolded
from planner.model import (
    FeedForward,
    LatentAttention,
    LayerGroup,
    MixtureOfExperts,
    Model,
    MultiTokenPrediction,
    Projection,
)

COUNTS = (
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_modules",
    "num_mtp_layers",
    "mtp_num_layers",
    "mtp_transformer_layers",
)
"""Fields that say how many modules there are, in the order in which they are looked for."""

SWITCH = "use_mtp"
"""The field that says whether there are any; the counts above hold where it is absent."""

USUAL: Mapping[str, int] = {
    # The released file has no count; Qwen3-Next-80B-A3B's files hold `mtp.layers.0`, Qwen3-Coder-Next's hold none, and vLLM reads one
    # where the file does not say (qwen3_next_mtp, 0.33.0).
    "qwen3_next": 1,
}
"""Modules in the checkpoints of architectures whose files do not count them."""

# The released files of MiniMax-M2, M2.5 and M2.7 hold none (MiniMax-AI/MiniMax-M2.7 issue 16, MiniMax-AI/MiniMax-M2.5 issue 8).
ABSENT = frozenset({"minimax_m2"})
"""Architectures whose files tell of modules that their checkpoints do not hold."""

MAX_MODULES = 100
"""More modules than this are a slip in the file."""

Reader = Callable[[Mapping[str, Any], Model, int], MultiTokenPrediction | None]
"""Returns so many modules of a model, by its config and its layers."""

LayerChoice = Callable[[Sequence[LayerGroup]], Sequence[LayerGroup]]
"""Picks the layers of one module from those of the model, by their layout."""


def _last(layers: Sequence[LayerGroup]) -> Sequence[LayerGroup]:
    """Take the last layer: a module is built like it."""
    return layers[-1:]


def _last_softmax(layers: Sequence[LayerGroup]) -> Sequence[LayerGroup]:
    """Take the last layer of softmax attention."""
    return [layer for layer in layers if hasattr(layer.attention, "num_key_value_heads")][-1:]


def _attention_then_experts(layers: Sequence[LayerGroup]) -> Sequence[LayerGroup]:
    """Take a layer of attention and a layer of experts, each alone."""
    attention = [layer for layer in layers if layer.ffn is None and hasattr(layer.attention, "num_key_value_heads")]
    experts = [layer for layer in layers if layer.attention is None]
    return [*attention[-1:], *experts[-1:]]


def _last_latent(layers: Sequence[LayerGroup]) -> Sequence[LayerGroup]:
    """Take the last layer of latent attention."""
    return [layer for layer in layers if isinstance(layer.attention, LatentAttention)][-1:]


def _window_then_dense(layers: Sequence[LayerGroup]) -> Sequence[LayerGroup]:
    """Take attention with a window, as the last layer of that kind has it, and a dense network."""
    windows = [layer for layer in layers if getattr(layer.attention, "sliding_window", None)]
    networks = [layer.ffn for layer in layers if isinstance(layer.ffn, FeedForward)]
    if not windows or not networks:
        return []
    return [windows[-1].model_copy(update={"ffn": networks[-1]})]


def _last_dense(layers: Sequence[LayerGroup]) -> Sequence[LayerGroup]:
    """Take the last layer with a dense network."""
    return [layer for layer in layers if isinstance(layer.ffn, FeedForward)][-1:]


def _module(layers: LayerChoice, *, embeddings: int = 0, heads: int = 0, norms: int = 3) -> Reader:
    def read(data: Mapping[str, Any], model: Model, count: int) -> MultiTokenPrediction | None:
        chosen = layers(tuple(unfolded(model.layers)))
        if not chosen:
            return None
        own = tuple(layer.model_copy(update={"repeat": count}) for layer in chosen)
        return MultiTokenPrediction(
            layers=own, projections=count, norms=norms * count, embeddings=embeddings * count, heads=heads * count
        )

    return read


def _dspark(data: Mapping[str, Any], model: Model, count: int) -> MultiTokenPrediction | None:
    """DeepSeek-V4.1: modules of one block, that reads several layers' inputs and ends with a head for the token just drafted.

    Each has a window alone and fewer experts; the first merges its inputs, the last scores a low-rank embedding of a token, and how
    sure it is (tensors `mtp.*` of deepseek-ai/DeepSeek-V4.1-Flash).
    """
    names = ("dspark_n_routed_experts", "dspark_num_experts_per_tok", "dspark_markov_rank")
    numbers = [data.get(name) for name in names]
    inputs = data.get("dspark_target_layer_ids")
    plain = next((la for la in unfolded(model.layers) if not getattr(la.attention, "compress_rate", None)), None)
    if plain is None or not isinstance(plain.ffn, MixtureOfExperts) or not isinstance(inputs, list) or not inputs:
        return None
    if any(isinstance(number, bool) or not isinstance(number, int) or number < 1 for number in numbers):
        return None
    experts, chosen, rank = (int(number or 1) for number in numbers)
    hidden, rows = model.hidden_size, model.vocab_size
    network = plain.ffn.model_copy(update={"num_experts": experts, "num_experts_per_tok": min(chosen, experts)})
    module = plain.model_copy(update={"ffn": network, "repeat": 1})
    first = Projection(name="main_proj", input_size=len(inputs) * hidden, output_size=hidden)
    last = (
        Projection(name="markov_head.head", input_size=rank, output_size=rows),
        Projection(name="confidence_head", input_size=hidden + rank, output_size=1),
    )
    own = [module] * count
    own[0] = own[0].model_copy(update={"projections": (*own[0].projections, first)})
    more = {"projections": (*own[-1].projections, *last), "other_parameters": module.other_parameters + rows * rank}
    own[-1] = own[-1].model_copy(update=more)
    return MultiTokenPrediction(layers=tuple(own), projections=0, norms=2)


MODULES: Mapping[str, Reader] = {
    # `layers.61.embed_tokens` and `layers.61.shared_head.head` are in the files (DeepSeek-V3 README_WEIGHTS.md).
    "deepseek_v3": _module(_last, embeddings=1, heads=1),
    "deepseek_v32": _module(_last, embeddings=1, heads=1),
    # Published parameters of GLM-4.5 and GLM-4.5-Air are met with copies of both.
    "glm4_moe": _module(_last, embeddings=1, heads=1),
    "glm_moe_dsa": _module(_last, embeddings=1, heads=1),
    # So are the sizes of GLM-4.7-Flash's GGUF files with the module (59G of 56G, ggml-org/llama.cpp pull request 24868).
    "glm4_moe_lite": _module(_last, embeddings=1, heads=1),
    # Embedding and head are taken from the model (DeepSeek-V4 inference code).
    "deepseek_v4": _module(_last),
    # `mtp.fc`, `mtp.layers`, `mtp.norm` and two norms before the projection; `mtp_use_dedicated_embeddings` is false.
    "qwen3_next": _module(_last_softmax),
    "qwen3_5": _module(_last_softmax),
    "qwen3_5_text": _module(_last_softmax),
    "qwen3_5_moe": _module(_last_softmax),
    "qwen3_5_moe_text": _module(_last_softmax),
    # `mtp_layers.0.input_proj` and three norms (XiaomiMiMo/MiMo modeling_mimo.py).
    "mimo": _module(_last),
    # A dense layer, `mtp_linear_proj`, and two norms; embedding and head are the model's (vLLM ernie_mtp, 0.33.0).
    "ernie4_5_moe": _module(_last_dense, norms=2),
    # `mtp_hybrid_override_pattern` is "*E".
    "nemotron_h": _module(_attention_then_experts),
    # Latent attention and experts, `eh_proj`, and three norms (vLLM bailing_moe_mtp, bailing_moe_v3_mtp, 0.33.0).
    "bailing_hybrid": _module(_last_latent),
    "bailing_moe_linear": _module(_last_latent),
    "bailing_moe_v3": _module(_last_latent),
    # A window and a dense network, `eh_proj`, and three norms (vLLM mimo_v2_mtp, 0.33.0).
    "mimo_v2": _module(_window_then_dense),
    "mimo_v2_flash": _module(_window_then_dense),
    "mimo_v2_omni": _module(_window_then_dense),
    # The same, each with a head of its own (tensors `model.layers.92` and on of Step-5-Preview; Step-3.5-Flash's card: "0.81B Head").
    "step3p5": _module(_window_then_dense, heads=1),
    "step4": _module(_window_then_dense, heads=1),
    "step5": _module(_window_then_dense, heads=1),
    "deepseek_v41_text": _dspark,
}
"""How modules are stored, by ``model_type``."""


def read_mtp(
    data: Mapping[str, Any], model_type: str, model: Model
) -> tuple[MultiTokenPrediction | None, tuple[str, ...]]:
    """Return the modules for multi-token prediction that a checkpoint holds, and what the reader should know.

    Parameters
    ----------
    data : mapping
        The config of the text model.
    model_type : str
        Its architecture.
    model : Model
        The model, from whose layers the modules are built.
    """
    told = [(name, data[name]) for name in COUNTS if _is_count(data.get(name))]
    if data.get(SWITCH) is False:
        return None, ()
    if not told and data.get(SWITCH) is True:
        return None, (f"{SWITCH}: modules for multi-token prediction, no field says how many: not counted",)
    usual = 0 if any(name in data for name in COUNTS) else USUAL.get(model_type, 0)
    name, count = told[0] if told else ("", usual)
    if not count:
        return None, ()
    if model_type in ABSENT:
        note = f"{name} tells of {_modules(count)}: not counted, released files of {model_type} hold none"
        return None, (note,)
    read = MODULES.get(model_type)
    found = read(data, model, count) if read else None
    if found is None:
        note = f"the config tells of {_modules(count)}, stored in a way that is not known: not counted"
        return None, (note,)
    return found, () if told else (UNCOUNTED.format(count=count, model_type=model_type),)


def _modules(count: int) -> str:
    return f"{count} module{'' if count == 1 else 's'} for multi-token prediction"


UNCOUNTED = (
    "the file has no count of modules for multi-token prediction: {count} counted, as the first checkpoints of {model_type} hold; "
    "some hold none"
)
"""The note where the count is the usual one."""


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_MODULES
