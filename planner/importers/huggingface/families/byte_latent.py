"""The byte latent transformer: small stacks over bytes around a large one over patches of them, and one that says where patches begin.

Facts: the class of the transformers library, and arXiv 2412.09871. The stacks stand in one row: the patcher, the local encoder, the
global transformer, the local decoder. A token is a byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.importers.huggingface.class_defaults import class_defaults
from planner.importers.huggingface.config import Config
from planner.importers.huggingface.families.family import Family
from planner.importers.huggingface.parts.basics import build
from planner.importers.huggingface.parts.softmax import heads_of, shared_out, softmax_kind
from planner.model import FeedForward, PatchAttention, Projection, SoftmaxAttention, Table
from planner.model.stack import MAX_LAYERS
from planner.units import LARGEST_COUNT

Layer = dict[str, Any]
"""The fields of a layer (`planner.model.LayerGroup`)."""

_CLASSES = {
    "patcher": "blt_patcher",
    "encoder": "blt_local_encoder",
    "global": "blt_global_transformer",
    "decoder": "blt_local_decoder",
}
"""The configuration classes of the parts."""


def _part(config: Config, name: str) -> Config:
    return config.part(f"{name}_config", class_defaults(_CLASSES[name]))


def _flat(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the file with the width of the stream that reaches the LM head, and the rows of that, where it expects them."""
    decoder, supplied = data.get("decoder_config"), class_defaults(_CLASSES["decoder"])
    stated = decoder.get("hidden_size") if isinstance(decoder, Mapping) else None
    width = supplied["hidden_size"] if stated is None else stated
    return {"vocab_size": class_defaults("blt")["vocab_size"], **data, "hidden_size": width}


def _finds_patches(config: Config) -> bool:
    """Whether the model itself says where patches begin, by the entropy of a small model of bytes."""
    return config.flag("patch_in_forward", default=True) and config.text("patching_mode", "entropy") == "entropy"


def _patch(config: Config) -> float:
    """Return the bytes of a patch in the mean: `patch_size`; without a rule that finds patches each byte is one."""
    stated = float(config.integer("patch_size", 4))
    return stated if config.text("patching_mode", "entropy") == "entropy" else 1.0


# ---- layers ----------------------------------------------------------------------------------------------------------


def _plain(config: Config, part: Config, window: int | None = None) -> Layer:
    """Read a layer of a stack: multi-head attention and a gated network."""
    heads, kv_heads = heads_of(part, "num_attention_heads", "num_key_value_heads")
    width = part.optional("intermediate_size") or max(int(8 * part.integer("hidden_size") / 3), 1)
    attention = build(
        config,
        SoftmaxAttention,
        kind=softmax_kind(heads, kv_heads),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=shared_out(part, heads),
        sliding_window=window,
    )
    ffn = build(config, FeedForward, kind="gated", intermediate_size=width)
    return {"attention": attention, "ffn": ffn}


def _within(config: Config, part: Config, queries: str) -> PatchAttention:
    heads, kv_heads = heads_of(part, "num_attention_heads", "num_key_value_heads")
    return build(
        config,
        PatchAttention,
        kind="patch",
        queries=queries,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=shared_out(part, heads),
        vectors_per_patch=config.integer("cross_attn_k", 2),
        tokens_per_patch=_patch(config),
    )


def _patcher(config: Config) -> list[Layer]:
    """Read the patcher, a model of bytes of its own; where nothing asks it, its weights are stored with the embeddings."""
    if not _finds_patches(config):
        return []
    part = _part(config, "patcher")
    hidden, count = part.integer("hidden_size"), part.integer("num_hidden_layers")
    layer = {**_plain(config, part, part.optional("sliding_window")), "hidden_size": hidden}
    head = Projection(name="patcher.lm_head", input_size=hidden, output_size=part.integer("vocab_size"))
    return [*([layer] * (count - 1)), {**layer, "projections": (head,), "other_parameters": hidden}]


def _encoder(config: Config) -> list[Layer]:
    """Read the local encoder; after its last layer, or after each, the vectors of a patch gather what its bytes say."""
    part = _part(config, "encoder")
    hidden, count, vectors = part.integer("hidden_size"), part.integer("num_hidden_layers"), _vectors(config)
    plain = _plain(config, part, config.optional("local_attention_window_len", least=0) or None)
    gather = {**plain, "attention": (plain["attention"], _within(config, part, "patches"))}
    pooled = Projection(name="patch_embedding", input_size=hidden, output_size=vectors * hidden)
    begin = {"projections": (pooled,), "norms": 0, "tokens_per_patch": _patch(config)}
    if not part.flag("cross_attn_all_layers", default=False):
        return [*([plain] * (count - 1)), gather, begin]
    again = {**begin, "shared_weights": True}
    return [gather, begin, *([gather, again] * (count - 1))]


def _global(config: Config) -> list[Layer]:
    """Read the global transformer; it is led to by a projection where the vectors of a patch are not as wide, and from by one to them."""
    part, encoder, decoder = (_part(config, name) for name in ("global", "encoder", "decoder"))
    hidden, count = part.integer("hidden_size"), part.integer("num_hidden_layers")
    read, written = (_vectors(config) * stack.integer("hidden_size") for stack in (encoder, decoder))
    layer = {**_plain(config, part), "hidden_size": hidden, "tokens_per_patch": _patch(config)}
    layers = [dict(layer) for _ in range(count)]
    if read != hidden:
        layers[0]["projections"] = (Projection(name="token_embedding", input_size=read, output_size=hidden),)
    back = Projection(name="patch_embedding", input_size=hidden, output_size=written)
    layers[-1]["projections"] = (*layers[-1].get("projections", ()), back)
    return layers


def _decoder(config: Config) -> list[Layer]:
    """Read the local decoder; before its first layer, or before each, bytes read the vectors of their patch."""
    part = _part(config, "decoder")
    count = part.integer("num_hidden_layers")
    plain = _plain(config, part, config.optional("local_attention_window_len", least=0) or None)
    reads = {**plain, "attention": (_within(config, part, "tokens"), plain["attention"])}
    every = part.flag("cross_attn_all_layers", default=True)
    return [reads, *([reads if every else plain] * (count - 1))]


def _vectors(config: Config) -> int:
    return config.integer("cross_attn_k", 2)


def _check(config: Config) -> None:
    """Refuse parts that do not fit together."""
    encoder, decoder, middle = (_part(config, name) for name in ("encoder", "decoder", "global"))
    if encoder.integer("hidden_size") != decoder.integer("hidden_size"):
        config.fault("decoder_config", "hidden_size is not that of encoder_config")
    if decoder.integer("hidden_size_global") != middle.integer("hidden_size"):
        config.fault("decoder_config", "hidden_size_global is not the hidden_size of global_config")
    for name, part in (("encoder_config", encoder), ("decoder_config", decoder)):
        if part.integer("cross_attn_k") != _vectors(config):
            config.fault(name, f"cross_attn_k is not that of the whole, {_vectors(config)}")
    parts = [encoder, decoder, middle, _part(config, "patcher")]
    if sum(part.integer("num_hidden_layers") for part in parts) > MAX_LAYERS:
        config.fault("global_config", f"more layers altogether than make sense (at most {MAX_LAYERS})")
    config.raise_faults()


def _stack(config: Config) -> list[Layer]:
    def read() -> list[Layer]:
        _check(config)
        found = [*_patcher(config), *_encoder(config), *_global(config), *_decoder(config)]
        config.raise_faults()
        return found

    return config.derived("byte latent", read)


# ---- outside the layers ----------------------------------------------------------------------------------------------


def _hashes(config: Config) -> Table:
    """Return the table of hashed groups of bytes: rows for each length of group and each hash function, in all of which a byte looks one up."""
    sizes = config.integers("encoder_hash_byte_group_size", least=1) or (3, 4, 5, 6, 7, 8)
    looked_up = len(sizes) * config.integer("encoder_hash_byte_group_nb_functions", 1)
    rows = looked_up * config.integer("encoder_hash_byte_group_vocab", 500_002)
    if rows > LARGEST_COUNT:
        config.fault("encoder_hash_byte_group_vocab", f"the table has {rows} rows, more than {LARGEST_COUNT}")
        config.raise_faults()
    width = _part(config, "encoder").integer("hidden_size")
    return Table(name="encoder_hash_tok_embedding", rows=rows, width=width, lookups=looked_up)


def _stored_patcher(config: Config) -> tuple[tuple[Table, ...], int]:
    """Return the embedding of the patcher; all of its parameters where it is stored and not asked."""
    if not config.flag("patch_in_forward", default=True):
        return (), 0
    part = _part(config, "patcher")
    hidden, rows = part.integer("hidden_size"), part.integer("vocab_size")
    if _finds_patches(config):
        return (Table(name="patcher.embed_tokens", rows=rows, width=hidden),), 0
    layer = _plain(config, part)
    each = sum(tensor.parameters for name in ("attention", "ffn") for tensor in layer[name].tensors(hidden))
    return (), part.integer("num_hidden_layers") * (each + 2 * hidden) + hidden + 2 * rows * hidden


def _model(config: Config) -> dict[str, Any]:
    own, others = _stored_patcher(config)
    tied = config.flag("tie_word_embeddings", default=False)
    rows = config.integer("vocab_size") if tied else _part(config, "encoder").integer("vocab_size")
    note = (
        f"a token is a byte; patches are taken to have {_patch(config):g} bytes in the mean (patch_size), where their true length depends on the "
        "text: tokens_per_patch in a model file says otherwise. Every stack is taken to keep its keys, where the library's class "
        "computes the patcher and the global transformer anew for each byte"
    )
    return {"tables": (_hashes(config), *own), "other_parameters": others, "embedding_rows": rows, "notes": (note,)}


FAMILIES: dict[str, Family] = {
    "blt": Family(
        attention=lambda config, index: _stack(config)[index].get("attention"),
        ffn=lambda config, index: _stack(config)[index].get("ffn"),
        layer=lambda config, index: {k: v for k, v in _stack(config)[index].items() if k not in ("attention", "ffn")},
        layers=lambda config: len(_stack(config)),
        model=_model,
        flat=_flat,
        flat_prefix="",
    ),
}
