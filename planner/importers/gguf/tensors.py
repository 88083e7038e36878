"""What the tensors of a GGUF file are: their classes and formats, and how many parameters they hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.importers.gguf.header import GgufTensor
from planner.importers.gguf.source import LAYER
from planner.importers.huggingface.quantization import Elements
from planner.importers.huggingface.quantization.modules import unfolded
from planner.model import Checkpoint, ClassBytes, Model, Stored
from planner.model.quantization import AnyStored
from planner.precision import Role

_ATTENTION, _FFN, _EXPERTS, _SHARED = Role.ATTENTION, Role.FFN, Role.EXPERTS, Role.SHARED_EXPERTS

TENSORS: Mapping[str, tuple[Role, str]] = {
    "token_embd": (Role.EMBEDDING, "embed_tokens"),
    "position_embd": (Role.EMBEDDING, "embed_positions"),
    "per_layer_token_embd": (Role.EMBEDDING, "embed_tokens_per_layer"),
    "output": (Role.LM_HEAD, "lm_head"),
    "attn_qkv": (_ATTENTION, "qkv_proj"),
    "attn_q": (_ATTENTION, "qkv_proj"),
    "attn_k": (_ATTENTION, "qkv_proj"),
    "attn_v": (_ATTENTION, "qkv_proj"),
    "attn_gate": (_ATTENTION, "qkv_proj"),
    "attn_q_a": (_ATTENTION, "q_a_proj"),
    "attn_q_b": (_ATTENTION, "q_b_proj"),
    "attn_kv_a_mqa": (_ATTENTION, "kv_a_proj"),
    "attn_kv_b": (_ATTENTION, "kv_b_proj"),
    "attn_k_b": (_ATTENTION, "kv_b_proj"),
    "attn_v_b": (_ATTENTION, "kv_b_proj"),
    "attn_output": (_ATTENTION, "o_proj"),
    "attn_o": (_ATTENTION, "o_proj"),
    "attn_sinks": (Role.NORM, "sinks"),
    "cross_attn_q": (_ATTENTION, "cross_q_proj"),
    "cross_attn_k": (_ATTENTION, "cross_kv_proj"),
    "cross_attn_v": (_ATTENTION, "cross_kv_proj"),
    "cross_attn_o": (_ATTENTION, "cross_o_proj"),
    "ssm_in": (_ATTENTION, "in_proj"),
    "ssm_ba": (_ATTENTION, "in_proj"),
    "ssm_alpha": (_ATTENTION, "in_proj"),
    "ssm_beta": (_ATTENTION, "in_proj"),
    "ssm_x": (_ATTENTION, "x_proj"),
    "ssm_f_a": (_ATTENTION, "decay_a_proj"),
    "ssm_f_b": (_ATTENTION, "decay_b_proj"),
    "ssm_g_a": (_ATTENTION, "gate_a_proj"),
    "ssm_g_b": (_ATTENTION, "gate_b_proj"),
    "ssm_out": (_ATTENTION, "out_proj"),
    **dict.fromkeys(
        ("time_mix_receptance", "time_mix_key", "time_mix_value", "time_mix_gate"), (_ATTENTION, "in_proj")
    ),
    "time_mix_output": (_ATTENTION, "out_proj"),
    "time_mix_w1": (_ATTENTION, "mix_a_proj"),
    "time_mix_w2": (_ATTENTION, "mix_b_proj"),
    "time_mix_decay_w1": (_ATTENTION, "decay_a_proj"),
    "time_mix_decay_w2": (_ATTENTION, "decay_b_proj"),
    **{
        f"time_mix_{letter}{part}": (_ATTENTION, f"{name}_{side}_proj")
        for letter, name in (("a", "rate"), ("v", "value"), ("g", "gate"))
        for part, side in ((1, "a"), (2, "b"))
    },
    "channel_mix_key": (_FFN, "up_proj"),
    "channel_mix_value": (_FFN, "down_proj"),
    "channel_mix_receptance": (_FFN, "receptance"),
    "ssm_conv1d": (Role.STATE, "conv1d"),
    "ssm_conv1d_q": (Role.STATE, "conv1d"),
    "ssm_conv1d_k": (Role.STATE, "conv1d"),
    "ssm_conv1d_v": (Role.STATE, "conv1d"),
    "ssm_a": (Role.STATE, "state"),
    "ssm_d": (Role.STATE, "state"),
    "ssm_dt": (Role.STATE, "state"),
    "shortconv.in_proj": (_ATTENTION, "in_proj"),
    "shortconv.out_proj": (_ATTENTION, "out_proj"),
    "shortconv.conv": (Role.STATE, "conv"),
    "ffn_gate": (_FFN, "gate_up_proj"),
    "ffn_up": (_FFN, "gate_up_proj"),
    "ffn_down": (_FFN, "down_proj"),
    "ffn_latent_down": (_FFN, "latent_in_proj"),
    "ffn_latent_up": (_FFN, "latent_out_proj"),
    "ffn_gate_exps": (_EXPERTS, "experts.gate_up_proj"),
    "ffn_up_exps": (_EXPERTS, "experts.gate_up_proj"),
    "ffn_gate_up_exps": (_EXPERTS, "experts.gate_up_proj"),
    "ffn_down_exps": (_EXPERTS, "experts.down_proj"),
    "ffn_gate_shexp": (_SHARED, "shared_experts.gate_up_proj"),
    "ffn_up_shexp": (_SHARED, "shared_experts.gate_up_proj"),
    "ffn_down_shexp": (_SHARED, "shared_experts.down_proj"),
    "ffn_gate_inp": (Role.ROUTER, "router"),
    "ffn_gate_inp_shexp": (Role.ROUTER, "shared_experts.gate"),
}
"""Class and name of a tensor, by the last part of its name in the file."""

OTHER = "other"

_NAME = re.compile(r"^(?P<stem>.+?)(?:\.weight|\.bias)?$")

TABLES = re.compile(r"^(?:rope_freqs|rope_factors_\w+|attn_rot_embd|layer_output_scale)(?:\.|$)")
"""Tensors that hold no parameters: tables that are stored for speed, and buffers."""

CORRECTIONS = re.compile(r"^exp_probs_b(?:\.|$)")
"""Corrections of the router's scores: some architectures keep them as buffers, others as parameters."""

SCALES = re.compile(r"\.(?:input_)?scale$")
"""Scales of quantised tensors, one for each or for each expert; in some architectures learned parameters."""


def _stem(name: str) -> str:
    return LAYER.sub("", name)


def _place(tensor: GgufTensor) -> tuple[Role, str] | None:
    """Return the class and the planner's name of a tensor; None where it has none."""
    found = _NAME.match(_stem(tensor.name))
    stem = found["stem"] if found else tensor.name
    if "norm" in stem:
        return Role.NORM, "norms"
    # Older files have the experts one by one: blk.0.ffn_up.3.weight.
    expert = re.fullmatch(r"(ffn_(?:gate|up|down))\.\d+", stem)
    return TENSORS.get(f"{expert[1]}_exps" if expert else stem)


def _stored(tensor: GgufTensor) -> AnyStored | None:
    """Return how a tensor is stored; None for 16 bits as by default."""
    plain: Mapping[str, AnyStored | None] = {"BF16": None, "F16": "fp16", "F32": "fp32", "MXFP4": "mxfp4_w4a16"}
    if tensor.kind in plain:
        return plain[tensor.kind]
    # Kernels multiply in 16 bits: only the name tells apart what is nearer to 4 bits and to 8.
    return Stored(precision="w4a16" if tensor.bits < 6 else "w8a16", bits=tensor.bits)  # halfway


def counted(tensors: Sequence[GgufTensor]) -> Mapping[tuple[Role, str], Elements]:
    """Return the elements of each class and name, by how they are stored."""
    found: dict[tuple[Role, str], Elements] = defaultdict(lambda: defaultdict(float))
    has_head = any(tensor.name == "output.weight" for tensor in tensors)
    for tensor in tensors:
        place = _place(tensor)
        if place is None or tensor.name.endswith(".bias"):
            continue
        found[place][_stored(tensor)] += tensor.elements
        if tensor.name == "token_embd.weight" and not has_head:
            found[Role.LM_HEAD, "lm_head"][_stored(tensor)] += tensor.elements
    return found


def checkpoint(tensors: Sequence[GgufTensor]) -> Checkpoint:
    """Return what the tensors take, together and by class."""
    sums: dict[str, int] = {}
    for tensor in tensors:
        place = _place(tensor)
        name = str(place[0]) if place else OTHER
        sums[name] = sums.get(name, 0) + tensor.bytes
    largest = sorted(sums.items(), key=lambda pair: -pair[1])
    parts = tuple(ClassBytes(of=name, bytes=size) for name, size in largest)
    return Checkpoint(bytes=sum(sums.values()), by_class=parts, source="the header of the GGUF file")


# ---- parameters ------------------------------------------------------------------------------------------------------


def disagreement(tensors: Sequence[GgufTensor], metadata: Mapping[str, Any], model: Model) -> tuple[str, ...]:
    """Return a note if the tensors do not hold as many parameters as the metadata describe."""
    described, possible = model.parameters + model.mtp_parameters, set(_held(tensors, metadata, _in_vain(model)))
    if described in possible:
        return ()
    held = max(possible)
    note = (
        f"the tensors of the file hold {held} parameters, its metadata describe a model of {described}: "
        "bytes of weights are those of the tensors, operations and KV cache those of the metadata, check both"
    )
    return (note,)


def _in_vain(model: Model) -> frozenset[str]:
    """Return the names of tensors that files may hold in vain, such as keys and values of layers that use those of another."""
    shared = (
        index for index, layer in enumerate(unfolded(model.layers)) if getattr(layer.attention, "shared_kv", False)
    )
    names = ("attn_k.weight", "attn_v.weight", "attn_k_norm.weight")
    # RWKV-7: the first layer has no mixture of values, and files hold another map in its place.
    dummies = [f"blk.0.time_mix_v{part}.weight" for part in range(3)]
    return frozenset([*dummies, *(f"blk.{index}.{name}" for index in shared for name in names)])


def _held(tensors: Sequence[GgufTensor], metadata: Mapping[str, Any], in_vain: frozenset[str]) -> Iterator[int]:
    """Yield how many parameters the tensors hold, with and without what may be no parameters."""
    plain, corrections, scales = 0, 0, 0
    for tensor in tensors:
        stem = _stem(tensor.name)
        if TABLES.match(stem) or tensor.name in in_vain:
            continue
        if CORRECTIONS.match(stem):
            corrections += tensor.elements
        elif SCALES.search(stem):
            scales += tensor.elements
        else:
            plain += tensor.elements
    # Apertus: the two parameters of each layer's activation stand in the metadata.
    plain += sum(len(value) for key, value in metadata.items() if key in ACTIVATION and isinstance(value, list))
    for more in dict.fromkeys((0, corrections, scales, corrections + scales)):
        yield plain + more


ACTIVATION = ("xielu.alpha_n", "xielu.alpha_p")
