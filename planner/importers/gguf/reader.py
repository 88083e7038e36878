"""Turns a GGUF file into a model: its metadata into a config, its tensors into exact sizes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.errors import CatalogueError, nearest
from planner.importers.gguf.architectures import ARCHITECTURES, COMMON, VARIANTS, Architecture, Source
from planner.importers.gguf.header import GgufTensor, Header, Length, read_header
from planner.importers.huggingface import read_config
from planner.importers.huggingface.quantization import Elements, condense
from planner.model import Checkpoint, ClassBytes, Model, Stored
from planner.model.quantization import AnyStored
from planner.precision import Role

_SPLIT = re.compile(r"^(?P<stem>.*)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf$")


def read_gguf(path: Path) -> Model:
    """Return the model that a GGUF file holds, with its exact size.

    Raises
    ------
    InputError
        If the gguf library is not installed, the file or one of its parts cannot be read, or its architecture is not known.
    """
    header = _whole(path)
    data = config_of(header, str(path))
    found = _SPLIT.match(path.name)
    label = header.metadata.get("general.name")
    name = label if isinstance(label, str) and label.strip() else found["stem"] if found else path.stem
    model = read_config(data, name=name[:200], where=str(path))
    counted = _counted(header.tensors)
    quantization = condense(counted).model_copy(update={"source": f"tensor types of {path.name}"})
    return model.model_copy(
        update={
            "source": f"{path}, a GGUF file of architecture {header.metadata['general.architecture']}",
            "quantization": quantization,
            "checkpoint": _checkpoint(header.tensors),
            "notes": (*model.notes, *_notes(header.tensors, model)),
        }
    )


def _whole(path: Path) -> Header:
    """Return the header of a file, or of all parts of a split one together."""
    found = _SPLIT.match(path.name)
    if found is None:
        return read_header(path)
    count = int(found["parts"])
    if not 1 <= count <= 1000:  # noqa: PLR2004 - more parts are a slip in the name
        raise CatalogueError(str(path), [f"claims to be one of {count} parts"])
    parts = [path.with_name(f"{found['stem']}-{part:05d}-of-{count:05d}.gguf") for part in range(1, count + 1)]
    headers = [read_header(part) for part in parts]
    return Header(headers[0].metadata, [tensor for header in headers for tensor in header.tensors])


# ---- metadata to config ----------------------------------------------------------------------------------------------


def config_of(header: Header, where: str) -> dict[str, Any]:
    """Return a Hugging Face config that says what the metadata of a file says.

    Raises
    ------
    CatalogueError
        If the architecture is not known.
    """
    name = header.metadata.get("general.architecture")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        hint = nearest(str(name), ARCHITECTURES)
        known = ", ".join(sorted(ARCHITECTURES))
        raise CatalogueError(
            where, [f"general.architecture: unknown architecture {name!r}, {hint or f'known are {known}'}"]
        )
    prefix = f"{name}."
    fields = {key.removeprefix(prefix): value for key, value in header.metadata.items() if key.startswith(prefix)}
    source = Source(fields, frozenset(tensor.name for tensor in header.tensors))
    applies, variant = VARIANTS.get(name, (None, None))
    chosen = variant if applies is not None and variant is not None and applies(source) else ARCHITECTURES[name]
    return _config(chosen, source, header)


def _config(architecture: Architecture, source: Source, header: Header) -> dict[str, Any]:
    data: dict[str, Any] = {
        "model_type": architecture.model_type,
        "tie_word_embeddings": "output.weight" not in source.tensors,
    }
    for key, name in {**COMMON, **architecture.fields}.items():
        if key in source.fields:
            data[name] = _plain(source.fields[key])
    if architecture.facts is not None:
        data |= architecture.facts(source)
    vocabulary = _vocabulary(header)
    if vocabulary is not None:
        data["vocab_size"] = vocabulary
    extra = data.get("num_nextn_predict_layers")
    if isinstance(extra, int) and isinstance(data.get("num_hidden_layers"), int):
        data["num_hidden_layers"] -= extra
    return {
        name: value for name, value in data.items() if value is not None or name in ("q_lora_rank", "sliding_window")
    }


def _plain(value: Any) -> Any:
    """Return a value; a list of equal numbers, one for each layer, as the number."""
    if isinstance(value, list) and value and all(item == value[0] for item in value):
        return value[0]
    return value.items if isinstance(value, Length) else value


def _vocabulary(header: Header) -> int | None:
    """Return the rows of the token embedding."""
    embedding = next((tensor for tensor in header.tensors if tensor.name == "token_embd.weight"), None)
    if embedding is not None and len(embedding.shape) == 2:  # noqa: PLR2004 - a matrix
        return embedding.shape[1]
    return None


# ---- tensors to formats ----------------------------------------------------------------------------------------------

_ATTENTION, _FFN, _EXPERTS, _SHARED = Role.ATTENTION, Role.FFN, Role.EXPERTS, Role.SHARED_EXPERTS

TENSORS: Mapping[str, tuple[Role, str]] = {
    "token_embd": (Role.EMBEDDING, "embed_tokens"),
    "output": (Role.LM_HEAD, "lm_head"),
    "attn_qkv": (_ATTENTION, "qkv_proj"),
    "attn_q": (_ATTENTION, "qkv_proj"),
    "attn_k": (_ATTENTION, "qkv_proj"),
    "attn_v": (_ATTENTION, "qkv_proj"),
    "attn_q_a": (_ATTENTION, "q_a_proj"),
    "attn_q_b": (_ATTENTION, "q_b_proj"),
    "attn_kv_a_mqa": (_ATTENTION, "kv_a_proj"),
    "attn_kv_b": (_ATTENTION, "kv_b_proj"),
    "attn_k_b": (_ATTENTION, "kv_b_proj"),
    "attn_v_b": (_ATTENTION, "kv_b_proj"),
    "attn_output": (_ATTENTION, "o_proj"),
    "ffn_gate": (_FFN, "gate_up_proj"),
    "ffn_up": (_FFN, "gate_up_proj"),
    "ffn_down": (_FFN, "down_proj"),
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

_NAME = re.compile(r"^(?:blk\.\d+\.)?(?P<stem>.+?)(?P<end>\.weight|\.bias)?$")

# Tables that are stored for speed and hold no parameters.
_TABLES = ("rope_freqs", "rope_factors_long", "rope_factors_short", "attn_rot_embd")


def _place(tensor: GgufTensor) -> tuple[Role, str] | None:
    """Return the class and the planner's name of a tensor; None where it has none."""
    found = _NAME.match(tensor.name)
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
    return Stored(precision="w4a16" if tensor.bits < 6 else "w8a16", bits=tensor.bits)  # noqa: PLR2004 - halfway


def _counted(tensors: Sequence[GgufTensor]) -> Mapping[tuple[Role, str], Elements]:
    counted: dict[tuple[Role, str], Elements] = defaultdict(lambda: defaultdict(float))
    has_head = any(tensor.name == "output.weight" for tensor in tensors)
    for tensor in tensors:
        place = _place(tensor)
        if place is None or tensor.name.endswith(".bias"):
            continue
        counted[place][_stored(tensor)] += tensor.elements
        if place[0] is Role.EMBEDDING and not has_head:
            counted[Role.LM_HEAD, "lm_head"][_stored(tensor)] += tensor.elements
    return counted


def _checkpoint(tensors: Sequence[GgufTensor]) -> Checkpoint:
    sums: dict[str, int] = {}
    for tensor in tensors:
        place = _place(tensor)
        name = str(place[0]) if place else OTHER
        sums[name] = sums.get(name, 0) + tensor.bytes
    largest = sorted(sums.items(), key=lambda pair: -pair[1])
    parts = tuple(ClassBytes(of=name, bytes=size) for name, size in largest)
    return Checkpoint(bytes=sum(sums.values()), by_class=parts, source="the header of the GGUF file")


def _notes(tensors: Sequence[GgufTensor], model: Model) -> tuple[str, ...]:
    """Return a note if the file does not hold as many parameters as its metadata describe."""
    held = sum(
        tensor.elements for tensor in tensors if not tensor.name.startswith(_TABLES) and "exp_probs" not in tensor.name
    )
    described = model.parameters + model.mtp_parameters
    if held == described:
        return ()
    return (f"the file holds {held} parameters, its metadata describe a model of {described}",)
