"""Turns what a GGUF file says into a Hugging Face config, and remembers which metadata field each config field came from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from planner.errors import listing, printable
from planner.importers.gguf.architecture import COMMON, Architecture
from planner.importers.gguf.source import Source
from planner.importers.huggingface.config import SYNONYMS
from planner.importers.huggingface.families import FAMILIES

HARMLESS = frozenset(
    [
        "activation_sparsity_scale",
        "altup.active_idx",
        "attention.causal",
        "attention.clamp_kqv",
        "attention.group_norm_epsilon",
        "attention.group_norm_groups",
        "attention.layer_norm_epsilon",
        "attention.layer_norm_rms_epsilon",
        "attention.max_alibi_bias",
        "attention.output_scale",
        "attention.scale",
        "attention.temperature_length",
        "attention.temperature_scale",
        "attention.temperature_tuning",
        "attention.value_scale",
        "attn_logit_softcapping",
        "block_count",
        "deepstack_mapping",
        "decoder_start_token_id",
        "embedding_scale",
        "expert_gating_func",
        "expert_group_count",
        "expert_group_scale",
        "expert_group_used_count",
        "expert_weights_norm",
        "expert_weights_scale",
        "final_logit_softcapping",
        "logit_scale",
        "n_deepstack_layers",
        "pooling_type",
        "rescale_every_n_layers",
        "residual_scale",
        "router_logit_softcapping",
        "rope_freqs",
        "ssm.dt_b_c_rms",
        "swiglu_clamp_exp",
        "swiglu_clamp_shexp",
        "use_parallel_residual",
        "vocab_size",
    ]
)
"""Metadata fields that change neither shapes nor what is cached."""

HARMLESS_BEGINNINGS = ("rope.",)


def config_of(source: Source, architecture: Architecture) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a Hugging Face config of the file's present layer, and the metadata field that each of its fields came from."""
    data: dict[str, Any] = {
        "model_type": architecture.model_type,
        "tie_word_embeddings": "output.weight" not in source.shapes,
    }
    origins: dict[str, str] = {}
    for name, fact in {**COMMON, **architecture.fields}.items():
        if fact is None:
            continue
        source.asked.clear()
        data[name] = source.get(fact) if isinstance(fact, str) else fact(source)
        if source.asked:
            origins[name] = source.asked[0]
    # The width of dense layers is stated where there is none, too.
    if data.get("moe_intermediate_size") and not source.has("ffn_down.weight"):
        data.pop("intermediate_size", None)
    # A file without modules for multi-token prediction holds none, whatever checkpoints of its type usually hold.
    data["num_nextn_predict_layers"] = data.get("num_nextn_predict_layers") or 0
    return data, origins


# ---- what was not read -----------------------------------------------------------------------------------------------


def unread(source: Source, architecture: Architecture) -> tuple[str, ...]:
    """Return a note on the metadata fields of the architecture that nobody has asked for, and that may change shapes."""
    known = {*source.used, *architecture.heeded, *_repeated(source), *HARMLESS}
    left = sorted(
        key
        for key, value in source.fields.items()
        if key not in known and not key.startswith(HARMLESS_BEGINNINGS) and not _says_nothing(value)
    )
    if not left:
        return ()
    named = printable(listing(f"{source.prefix}{key}" for key in left))
    them = "them" if len(left) > 1 else "it"
    return (
        f"not read, and may change shapes: {named} (architecture {source.architecture} is not known to have {them})",
    )


def _says_nothing(value: Any) -> bool:
    """Whether a value says that there is no such thing."""
    return not any(value) if isinstance(value, list) else not value


def _repeated(source: Source) -> Iterable[str]:
    """Yield fields that repeat another: values as long as keys."""
    fields = source.fields
    heads, hidden = fields.get("attention.head_count"), fields.get("embedding_length")
    usual = hidden // heads if isinstance(heads, int) and isinstance(hidden, int) and heads else None
    if fields.get("attention.value_length") == fields.get("attention.key_length", usual):
        yield "attention.value_length"


# ---- messages --------------------------------------------------------------------------------------------------------


def in_own_words(texts: Iterable[str], source: Source, model_type: str, origins: Mapping[str, str]) -> list[str]:
    """Return messages about a config with the file's own names for its fields."""
    aliases = FAMILIES[model_type].aliases
    names: dict[str, str] = {}
    for field, key in origins.items():
        for name in (field, aliases.get(field), *SYNONYMS.get(field, ())):
            if name:
                names.setdefault(name, f"{source.prefix}{key}")
    # Hints name config fields that no file of this kind has.
    plain = [_HINT.sub(", the architecture needs it", text) for text in texts]
    pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?!\w)")
    return [pattern.sub(lambda found: names[found[0]], text) for text in plain]


_HINT = re.compile(r", did you mean [^?;]*\?")
