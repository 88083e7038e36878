"""The linear modules of a model under the names that checkpoints give them, for matching lists of modules against.

A description fuses what engines fuse (queries, keys and values; gate and up); checkpoints and their lists of skipped modules mostly do not.
Names are those within a layer, without the path before it: ``self_attn.q_proj``. One module may have several, because architectures spell
the same projection differently; a list that names any of them means it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.model import (
    AttentionBlock,
    CrossAttention,
    FeedForwardBlock,
    LayerGroup,
    Model,
    RecurrentBlock,
    Tensor,
)
from planner.precision import NEVER_QUANTIZED, Role

EXPERT = "#"
"""Stands for the number of an expert in a module's name."""


@dataclass(frozen=True, slots=True)
class Module:
    """A linear module of one layer.

    Attributes
    ----------
    tensor : str
        The planner's tensor that it is, or is a part of.
    role : Role
        The tensor's class.
    elements : int
        Elements of its matrices, all experts together.
    copies : int
        How many such matrices there are: experts.
    names : tuple of str
        What checkpoints call it, within its layer.
    """

    tensor: str
    role: Role
    elements: int
    copies: int
    names: tuple[str, ...]


# ---- spellings -------------------------------------------------------------------------------------------------------

_FUSED_QKV = ("qkv_proj", "query_key_value", "c_attn", "Wqkv", "wqkv", "W_pack", "qkv", "to_qkv")

# The last part of a module's name for each part of a fused tensor, or for a tensor that is spelled in several ways.
# A tensor that is in neither table is called in checkpoints as it is here, which `SAME` says of those that were looked up.
LEAVES: Mapping[str, tuple[str, ...]] = {
    "q": ("q_proj", "wq", "query", "q", *_FUSED_QKV),
    "k": ("k_proj", "wk", "key", "k", *_FUSED_QKV),
    "v": ("v_proj", "wv", "value", "v", *_FUSED_QKV),
    "o_proj": ("o_proj", "wo", "out_proj", "dense", "c_proj", "o"),
    "q_proj": ("q_proj", "wq", "q"),
    "q_a_proj": ("q_a_proj", "wq_a"),
    "q_b_proj": ("q_b_proj", "wq_b"),
    "kv_a_proj": ("kv_a_proj_with_mqa", "kv_a_proj"),
    "kv_proj": ("kv_proj", "wkv"),
    "o_a_proj": ("o_a_proj", "wo_a"),
    "o_b_proj": ("o_b_proj", "wo_b"),
    "gate_proj": ("gate_proj", "g_proj"),
    "indexer.q_proj": ("indexer.wq_b", "indexer.q_proj"),
    "indexer.k_proj": ("indexer.wk", "indexer.k_proj"),
    "delta_q": ("q_proj", "in_proj_qkv", "in_proj_qkvz", "in_proj"),
    "delta_k": ("k_proj", "in_proj_qkv", "in_proj_qkvz", "in_proj"),
    "delta_v": ("v_proj", "in_proj_qkv", "in_proj_qkvz", "in_proj"),
    "delta_z": ("g_proj", "in_proj_z", "in_proj_qkvz", "in_proj"),
    "delta_b": ("b_proj", "in_proj_b", "in_proj_ba", "in_proj"),
    "delta_a": ("in_proj_a", "in_proj_ba", "in_proj"),
    "decay_a_proj": ("f_a_proj", "decay_a_proj", "w_lora.lora.0"),
    "decay_b_proj": ("f_b_proj", "decay_b_proj", "w_lora.lora.2"),
    "gate_a_proj": ("g_a_proj", "gate_a_proj", "g_lora.lora.0"),
    "gate_b_proj": ("g_b_proj", "gate_b_proj", "g_lora.lora.2"),
    "rate_a_proj": ("a_lora.lora.0",),
    "rate_b_proj": ("a_lora.lora.2",),
    "value_a_proj": ("v_lora.lora.0",),
    "value_b_proj": ("v_lora.lora.2",),
    "out_proj": ("out_proj", "o_proj"),
    "latent_in_proj": ("fc1_latent_proj", "latent_in_proj"),
    "latent_out_proj": ("fc2_latent_proj", "latent_out_proj"),
    "gate": ("gate_proj", "w1", "linear_1", "gate_up_proj", "w12", "dense_h_to_4h"),
    "up": ("up_proj", "w3", "linear_v", "gate_up_proj", "w12", "dense_h_to_4h"),
    "up_proj": ("up_proj", "w1", "fc1", "fc_in", "c_fc", "dense_h_to_4h", "wi"),
    "router": ("gate", "router", "gate.wg"),
    "shared_experts.gate": ("shared_expert_gate",),
    "down_proj": ("down_proj", "w2", "fc2", "fc_out", "c_proj", "dense_4h_to_h", "linear_2", "wo"),
}

SAME = frozenset(
    {
        "dt_proj",
        "gates",
        "in_proj",
        "kv_b_proj",
        "kv_gate_proj",
        "key_proj",
        "mix_a_proj",
        "mix_b_proj",
        "value_proj",
        "x_proj",
    }
)
"""Names of tensors that checkpoints use as well."""

_FFN = ("mlp", "feed_forward", "ffn", "mixer", "block_sparse_moe")
_SHARED = ("shared_experts", "shared_expert", "shared_mlp")

# The path to a module within its layer, by the class of its tensor.
CONTAINERS: Mapping[Role, tuple[str, ...]] = {
    Role.ATTENTION: ("self_attn", "attn", "attention", "self_attention", "mixer"),
    Role.FFN: ("mlp", "feed_forward", "ffn", "mixer", "DenseReluDense"),
    Role.EXPERTS: tuple(f"{path}.experts.{EXPERT}" for path in _FFN) + tuple(f"{path}.experts" for path in _FFN),
    Role.ROUTER: _FFN,
    Role.SHARED_EXPERTS: tuple(f"{path}.{shared}" for path in _FFN for shared in _SHARED),
}

# A layer of linear attention or of a state-space model has a path of its own in most checkpoints.
RECURRENT = ("linear_attn", "mamba", "mixer", "ssm", "self_attn", "attn")
CROSS = ("cross_attn", "encoder_attn", "EncDecAttention")


# ---- splitting of fused tensors --------------------------------------------------------------------------------------

Pieces = Sequence[tuple[str, int]]
"""Parts of a tensor: the key of their spellings, and the elements of their output."""


def _queries_keys_values(tensor: Tensor) -> Pieces:
    """Tell apart queries, with an output gate that is projected with them, and keys and values, where the layer has its own."""
    queries, *others = tensor.outer
    pieces = [("q", queries.elements + sum(axis.elements for axis in others if axis.name != "kv_heads"))]
    for axis in (axis for axis in others if axis.name == "kv_heads"):
        keys = axis.size * min(queries.each, axis.each)
        pieces += [("k", keys), ("v", axis.elements - keys)]
    return pieces


def _gate_and_up(tensor: Tensor) -> Pieces:
    gate, up = tensor.outer
    return (("gate", gate.elements), ("up", up.elements))


def _linear_attention(tensor: Tensor) -> Pieces:
    """Tell apart queries, keys, values, two rates and the output gate of the delta rule; in others it is one module."""
    if tensor.outer[0].name != "key_heads":
        return _whole(tensor)
    queries, keys, values, rates, *others = tensor.outer
    known = zip(("delta_q", "delta_k", "delta_v", "delta_b"), (queries, keys, values, rates), strict=True)
    pieces = [(name, axis.elements) for name, axis in known]
    return pieces + [("delta_z" if axis == values else "delta_a", axis.elements) for axis in others]


def _whole(tensor: Tensor) -> Pieces:
    key = tensor.name if tensor.name in LEAVES else tensor.name.rpartition(".")[2]
    return ((key, sum(axis.elements for axis in tensor.outer)),)


SPLITS: Mapping[str, Callable[[Tensor], Pieces]] = {
    "qkv_proj": _queries_keys_values,
    "gate_up_proj": _gate_and_up,
    "in_proj": _linear_attention,
}
"""How fused tensors fall apart, by the last part of their name."""


def pieces(tensor: Tensor) -> Pieces:
    """Return the parts of a tensor that checkpoints may have as modules of their own."""
    return SPLITS.get(tensor.name.rpartition(".")[2], _whole)(tensor)


def _paths(block: AttentionBlock | FeedForwardBlock, tensor: Tensor) -> Sequence[str]:
    if isinstance(block, RecurrentBlock):
        return RECURRENT
    return CROSS if isinstance(block, CrossAttention) else CONTAINERS.get(tensor.role, ("",))


def linear_modules(layer: LayerGroup, hidden_size: int, *, routers: bool = False) -> Iterator[Module]:
    """Yield the modules of one layer that a checkpoint may quantise: the matrices of attention and of feed-forward networks.

    Parameters
    ----------
    layer : LayerGroup
        The layer.
    hidden_size : int
        Width of the model.
    routers : bool
        Whether routers of experts are told too.
    """
    never = NEVER_QUANTIZED - {Role.ROUTER} if routers else NEVER_QUANTIZED
    for block in layer.blocks:
        for tensor in block.tensors(hidden_size) if not block.shared_weights else ():
            if isinstance(tensor, Tensor) and tensor.role not in never:
                yield from _modules(tensor, _paths(block, tensor))
    for projection in layer.projections:
        if projection.tensor.role not in NEVER_QUANTIZED:
            yield from _modules(projection.tensor, ("",))


def _modules(tensor: Tensor, paths: Sequence[str]) -> Iterator[Module]:
    for key, width in pieces(tensor):
        names = tuple(f"{path}.{leaf}".lstrip(".") for path in paths for leaf in LEAVES.get(key, (key,)))
        elements = tensor.copies.size * tensor.inner.elements * width
        # Only experts are modules of their own; other copies are the blocks of one matrix.
        copies = tensor.copies.size if tensor.role is Role.EXPERTS else 1
        yield Module(tensor.name, tensor.role, elements, copies, names)


def lm_head_module(model: Model) -> Module:
    """Return the LM head, whose name stands outside the layers."""
    head = model.lm_head
    return Module(head.name, head.role, head.matrix_elements, 1, ("lm_head", "output", "embed_out"))


def embedding_module(model: Model) -> Module:
    """Return the embedding, whose name stands outside the layers."""
    table = model.embedding
    names = (
        "embed_tokens",
        "wte",
        "word_embeddings",
        "embed_in",
        "tok_embeddings",
        "embeddings",
        "embedding",
        "shared",
    )
    return Module(table.name, table.role, table.matrix_elements, 1, names)


def unfolded(layers: Sequence[LayerGroup]) -> Iterator[LayerGroup]:
    """Yield the layers of a stack one by one, in order."""
    for group in layers:
        for _ in range(group.repeat):
            if group.pattern is None:
                yield group
            else:
                yield from unfolded(group.pattern)
