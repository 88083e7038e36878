"""Reads Mistral's own ``params.json``, which stands beside consolidated weights, by translating it to config fields.

The names are those that vLLM translates (transformers_utils/configs/mistral.py, 0.33.0). Mamba's file leaves out what the mamba_ssm
library supplies (Mamba2, 2.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.errors import CatalogueError, shown
from planner.importers.huggingface import read_config
from planner.model import Model
from planner.model.stack import MAX_LAYERS

_NAMES: Mapping[str, str] = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "hidden_dim": "intermediate_size",
    "norm_eps": "rms_norm_eps",
    "tied_embeddings": "tie_word_embeddings",
    "tie_embeddings": "tie_word_embeddings",
}
"""Mistral's name for a field, and the config's."""

_EXPERTS: Mapping[str, str] = {
    "route_every_n": "moe_layer_freq",
    "first_k_dense_replace": "first_k_dense_replace",
    "num_experts_per_tok": "num_experts_per_tok",
    "num_experts": "n_routed_experts",
    "expert_hidden_dim": "moe_intermediate_size",
    "routed_scale": "routed_scaling_factor",
    "num_shared_experts": "n_shared_experts",
    "num_expert_groups": "n_group",
    "num_expert_groups_per_tok": "topk_group",
}
"""The same inside `moe`."""

_HARMLESS = frozenset(
    {
        "activation",
        "biases",
        "causal",
        "expert_model_parallel",
        "llama_4_scaling",
        "max_seq_len",
        "model_parallel",
        "pad_vocab_size_multiple",
        "renorm_strategy",
        "rms_norm",
        "rope_theta",
        "ssm_cfg",
        "use_biases",
        "use_load_balancing_bias",
        "yarn",
    }
)
"""Fields that change nothing that is counted, as they stand in released files; any that is set in another way is kept and named."""

_MUST_BE_OFF = ("biases", "use_biases", "ssm_cfg")
_MAMBA: Mapping[str, Any] = {
    "expand": 2,
    "head_dim": 64,
    "state_size": 128,
    "conv_kernel": 4,
    "use_conv_bias": True,
    "use_bias": False,
}
_DELAY_RANK = 32
"""Rank of the norm that depends on the delay, in the one model that has it."""


def read_params(data: Mapping[str, Any], *, name: str, where: str) -> Model:
    """Return the model that a ``params.json`` describes.

    Parameters
    ----------
    data : mapping
        The parsed file.
    name : str
        What to call the model.
    where : str
        The file, for messages.

    Raises
    ------
    CatalogueError
        If a field is missing or wrong, or a quantisation is not known.
    """
    config, has_towers = translate(data, where)
    model = read_config(config, name=name, where=where)
    note = f"translated from Mistral's params.json: read as a config of type {config['model_type']}"
    fields: dict[str, Any] = {"source": f"{where}, a params.json of Mistral's", "notes": (note, *model.notes)}
    return model.model_copy(update=fields | ({"vision_parameters": None} if has_towers else {}))


def translate(data: Mapping[str, Any], where: str) -> tuple[dict[str, Any], bool]:
    """Return the config that a ``params.json`` stands for, and whether the model has towers beside its text part.

    Examples
    --------
    >>> translate({"dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 16, "vocab_size": 9}, "params.json")[0]["model_type"]
    'mistral'
    """
    _check_present(data, where)
    parts = ("multimodal", "vision_encoder", "moe", "quantization", "sliding_window", "model_type")
    config = {_NAMES.get(key, key): value for key, value in data.items() if key not in parts and key not in _HARMLESS}
    config |= {key: data[key] for key in _MUST_BE_OFF if data.get(key)}
    config.setdefault("tie_word_embeddings", False)
    config |= {"model_type": "mistral", **_window(data, where), **_quantization(data.get("quantization"), where)}
    special = _mamba(data) if _is_mamba(data) else _latent_or_experts(data, where)
    config |= special or _delay(config, where)
    return config, bool(data.get("multimodal") or data.get("vision_encoder"))


def _is_mamba(data: Mapping[str, Any]) -> bool:
    kind = data.get("model_type")
    return isinstance(kind, str) and kind.startswith("mamba")


def _check_present(data: Mapping[str, Any], where: str) -> None:
    needed = ["dim", "n_layers", "vocab_size"]
    if not _is_mamba(data):
        needed += ["n_heads", "hidden_dim"]
    missing = [f"{name}: is missing, the architecture needs it" for name in needed if data.get(name) is None]
    if missing:
        raise CatalogueError(where, missing)


def _window(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the window of every layer, or of those for which a list that repeats names one."""
    window, layers = data.get("sliding_window"), data["n_layers"]
    if not isinstance(window, Sequence) or isinstance(window, str):
        return {"sliding_window": window}
    if isinstance(layers, bool) or not isinstance(layers, int) or not 0 < layers <= MAX_LAYERS:
        return {"sliding_window": None}
    widths = {width for width in window if isinstance(width, int)}
    whole = all(width is None or type(width) is int for width in window)
    if not window or not whole or len(widths) > 1 or layers % len(window):
        fault = "sliding_window: is to list one width, and nulls, in a pattern that the layers are a multiple of"
        raise CatalogueError(where, [fault])
    kinds = ["full_attention" if width is None else "sliding_attention" for width in window]
    repeated = kinds * (layers // len(window))
    return {"model_type": "ministral", "sliding_window": next(iter(widths), None), "layer_types": repeated}


def _latent_or_experts(data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return what latent attention and experts bring; nothing for a plain model."""
    moe, is_latent = data.get("moe"), bool(data.get("qk_nope_head_dim"))
    if moe is not None and not isinstance(moe, Mapping):
        raise CatalogueError(where, ["moe: is no mapping of fields"])
    if not moe:
        return _dense_latent(data) if is_latent else {}
    if is_latent or moe.get("num_shared_experts"):
        fields = {_EXPERTS.get(key, key): value for key, value in moe.items() if key not in _HARMLESS}
        return {"model_type": "deepseek_v3", "n_shared_experts": 0, "first_k_dense_replace": 0, **fields}
    fields = {key: value for key, value in moe.items() if key not in ("num_experts", *_HARMLESS)}
    return {"model_type": "mixtral", "num_local_experts": moe.get("num_experts"), **fields}


def _dense_latent(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of latent attention with dense networks alone: experts from a layer on that is not there."""
    none = {"n_routed_experts": 1, "num_experts_per_tok": 1, "moe_intermediate_size": data["hidden_dim"]}
    return {"model_type": "deepseek_v3", "first_k_dense_replace": data["n_layers"], **none}


def _mamba(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of Mamba-2, most of which its file leaves to the library."""
    inner = _MAMBA["expand"] * data["dim"] if isinstance(data["dim"], int) else 0
    return {"model_type": "mamba2", **_MAMBA, "num_heads": inner // _MAMBA["head_dim"]}


def _delay(config: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the type of a model whose norms depend on the delay of its answers (Voxtral Realtime)."""
    used, rank = config.pop("ada_rms_norm_t_cond", None), config.pop("ada_rms_norm_t_cond_dim", _DELAY_RANK)
    if not used:
        return {}
    if rank != _DELAY_RANK:
        raise CatalogueError(where, [f"ada_rms_norm_t_cond_dim: {shown(rank)} is not {_DELAY_RANK}"])
    return {"model_type": "voxtral_realtime_text"}


def _quantization(block: Any, where: str) -> dict[str, Any]:
    """Return the quantisation block that Mistral's stands for."""
    if not block:
        return {}
    if not isinstance(block, Mapping):
        raise CatalogueError(where, ["quantization: is no mapping of fields"])
    if block.get("qformat_weight") == "fp8_e4m3":
        scheme = "dynamic" if block.get("qscheme_act") == "NO_SCALES" else "static"
        return {"quantization_config": {"quant_method": "fp8", "activation_scheme": scheme}}
    method = block.get("quant_method")
    if isinstance(method, str) and method.lower().replace("_", "-") == "compressed-tensors":
        return {"quantization_config": {**block, "quant_method": "compressed-tensors"}}
    stated = shown(block.get("qformat_weight", method))
    raise CatalogueError(where, [f"quantization: {stated} is not known (fp8_e4m3, or compressed-tensors)"])
