"""Multi-token prediction: what checkpoints store beside the model, by a table of architectures.

DeepSeek-V3 (README_WEIGHTS.md of its repository): each module has the layout of a main layer, two norms before a projection of twice the
hidden size to once, and a norm before its head; embedding and head are shared with the main model, but the files hold copies of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from planner.importers.huggingface.modules import unfolded
from planner.model import LayerGroup, Model, MultiTokenPrediction

COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
"""Fields that say how many modules there are."""

MAX_MODULES = 100
"""More modules than this are a slip in the file."""

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


def _module(layers: LayerChoice, *, copies: int = 0) -> Callable[[Model, int], MultiTokenPrediction | None]:
    def read(model: Model, count: int) -> MultiTokenPrediction | None:
        chosen = layers(tuple(unfolded(model.layers)))
        if not chosen:
            return None
        own = tuple(layer.model_copy(update={"repeat": count}) for layer in chosen)
        return MultiTokenPrediction(
            layers=own, projections=count, norms=3 * count, embeddings=copies * count, heads=copies * count
        )

    return read


MODULES: Mapping[str, Callable[[Model, int], MultiTokenPrediction | None]] = {
    # `layers.61.embed_tokens` and `layers.61.shared_head.head` are in the files (DeepSeek-V3 README_WEIGHTS.md).
    "deepseek_v3": _module(_last, copies=1),
    "deepseek_v32": _module(_last, copies=1),
    # Published parameters of GLM-4.5 and GLM-4.5-Air are met with copies of both.
    "glm4_moe": _module(_last, copies=1),
    "glm_moe_dsa": _module(_last, copies=1),
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
    # `mtp_hybrid_override_pattern` is "*E".
    "nemotron_h": _module(_attention_then_experts),
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
    count = next(_counts(data), 0)
    if not count:
        return None, ()
    read = MODULES.get(model_type)
    found = read(model, count) if read else None
    if found is None:
        note = f"the config tells of {count} modules for multi-token prediction, how they are stored is not known: not counted"
        return None, (note,)
    return found, ()


def _counts(data: Mapping[str, Any]) -> Iterator[int]:
    for name in COUNTS:
        count = data.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and 0 < count <= MAX_MODULES:
            yield count
