"""GGUF's architectures as Hugging Face configs: where each config field comes from.

Names are those that llama.cpp writes and reads (ggml-org/llama.cpp: gguf-py/gguf/constants.py, conversion/, src/models/). Reading goes on
through the table of Hugging Face architectures, so that a model is described in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.importers.gguf.architecture import Architecture
from planner.importers.gguf.dense import DENSE
from planner.importers.gguf.hybrid import HYBRID
from planner.importers.gguf.source import Source
from planner.importers.gguf.sparse import SPARSE

ARCHITECTURES: Mapping[str, Architecture] = {**DENSE, **SPARSE, **HYBRID}
"""Architectures by ``general.architecture``."""


def _has(key: str) -> Callable[[Source], bool]:
    return lambda source: bool(source.fields.get(key))


VARIANTS: Mapping[str, tuple[Callable[[Source], bool], str]] = {
    # llama.cpp writes Mixtral as a Llama with experts.
    "llama": (_has("expert_count"), "llama with experts"),
    "mistral3": (_has("expert_count"), "llama with experts"),
    # DeepSeek-V3 has a correction of the router's scores, V2 has not.
    "deepseek2": (lambda source: source.has("exp_probs_b.bias"), "deepseek2 with corrected scores"),
    "granitemoe": (_has("expert_shared_feed_forward_length"), "granitemoe with shared experts"),
    "granitehybrid": (lambda source: not source.fields.get("expert_shared_feed_forward_length"), "bamba"),
    "olmo2": (_has("attention.sliding_window"), "olmo2 with windows"),
    # UMT5 has a bias by distance in every layer, T5 in the first.
    "t5": (lambda source: "enc.blk.1.attn_rel_b.weight" in source.shapes, "umt5"),
}
"""What goes under the name of another architecture: how it is told, and under which name it stands in the table."""


def architecture_of(source: Source) -> Architecture:
    """Return how a file of a known architecture is read."""
    applies, variant = VARIANTS.get(source.architecture, (None, ""))
    return ARCHITECTURES[variant if applies is not None and applies(source) else source.architecture]


KNOWN: tuple[str, ...] = tuple(sorted(set(ARCHITECTURES) - {variant for _, variant in VARIANTS.values()}))
"""Names that a file may have as its architecture."""
