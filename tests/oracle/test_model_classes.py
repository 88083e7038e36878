"""Every architecture against the transformers library's own class, at its defaults and at odd sizes (see data/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.importers.huggingface.families import FAMILIES
from planner.model import Model
from planner.model.attention.base import STATE_BYTES, Cache
from planner.op import FullSpan

DATA = Path(__file__).parent / "data" / "model_classes.jsonl"
RECORDS = [json.loads(line) for line in DATA.read_text().splitlines()]

DIFFERENT = {
    # (type, variant or * for all): why the planner counts otherwise.
    ("deepseek_v2", "default"): "the class's defaults do not say how many experts a token is sent to: an error",
    ("deepseek_v2", "hub-freq2"): "the class takes no heed of moe_layer_freq; the model's own code and engines do",
    ("glm4_moe", "default"): "the class's defaults give a fraction for the head dimension: an error",
    ("glm4v_moe", "default"): "as glm4_moe",
    ("qwen3_omni_moe_thinker", "default"): "as glm4_moe",
    ("mpt", "small-*"): "the class takes four times the hidden size whatever expansion_ratio says; engines heed it",
    ("zamba", "small-b"): "the class shares its block only where the embeddings are tied",
    ("longcat_flash", "*"): "the class gives zero-compute experts half the weights of an expert; they have none",
    ("mimo_v2_flash", "small-c"): "KV heads that do not divide the query heads: an error",
    (
        "mimo_v2_flash",
        "hub-hub",
    ): "the class takes no heed of hybrid_layer_pattern; the model's own code and engines do",
    ("glmasr", "small-c"): "as mimo_v2_flash small-c",
    ("laguna", "small-b"): "as mimo_v2_flash small-c",
    ("ernie4_5_vl_moe", "small-a"): "as mimo_v2_flash small-c",
    ("muse_spark", "small-*"): "as mimo_v2_flash small-c",
    ("granite_docling", "small-*"): "as glm4_moe",
    (
        "mvp",
        "small-b",
    ): "the class leaves out the encoder's prompt, for which it passes its flag in another argument's place",
    ("fsmt", "small-b"): "the two vocabularies are never tied in released files",
    ("voxtral", "small-c"): "as mimo_v2_flash small-c",
    ("nllb-moe", "*"): "128 experts were taken for 129 in the share that is active",
    ("qwen2_5_omni", "*"): "the LM head was taken for a part of another tower",
    ("ovis2", "small-b-noforward"): "the visual vocabulary was taken for a part of the text model",
    ("qwen4_exp_text", "hub-ple"): "cache only: as hub-qsa",
    ("xlnet", "*"): "cache only: the library keeps a layer's inputs, and projects keys and values again",
    (
        "glm5_next",
        "*",
    ): "cache only: the library keeps index keys with what they are merged by, engines the merged ones",
    ("cpmant", "*"): "cache only: the library keeps 32 tokens of prompt before the text",
    ("dots3_note", "small-c"): "cache only: the window is longer than the text that was measured",
    ("dots3_note_text", "small-c"): "cache only: the window is longer than the text that was measured",
    (
        "qwen4_exp_text",
        "hub-qsa",
    ): "cache only: the library keeps the three positions of each token in the first such layer",
    ("falcon", "*"): "cache only: the library copies KV heads to all query heads",
    ("deepseek_v4", "*"): "cache only: counted by the token here, by whole runs there",
}


def reason(record: dict[str, Any]) -> str | None:
    kind, variant = record["model_type"], record["variant"]
    return next(
        (
            why
            for (t, v), why in DIFFERENT.items()
            if t == kind and (v in ("*", variant) or (v.endswith("*") and variant.startswith(v[:-1])))
        ),
        None,
    )


def read(record: dict[str, Any]) -> Model:
    return read_config(record["config"], name="test", where=record["model_type"])


def differs_in_cache_alone(record: dict[str, Any]) -> bool:
    return (reason(record) or "").startswith("cache only")


COUNTED = [r for r in RECORDS if reason(r) is None or differs_in_cache_alone(r)]
CACHED = [r for r in COUNTED if "cache" in r and reason(r) is None]


def caches(model: Model) -> list[tuple[int, Cache]]:
    """What each kind of layer keeps, with the number of such layers."""
    kinds = [kind for kind in model.layer_kinds if not kind.layer.needs_source]
    return [(kind.count, block.cache) for kind in kinds for block in kind.layer.mixers]


def is_encoder_decoder(record: dict[str, Any]) -> bool:
    return read(record).encoder is not None


def named(records: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("record", records, ids=[f"{r['model_type']}-{r['variant']}" for r in records])


@named(COUNTED)
def test_parameters_are_exact(record: dict[str, Any]) -> None:
    model = read(record)
    assert model.parameters == record["parameters"]
    assert model.active_parameters == record["active_parameters"]
    if record["embedding_parameters"] is not None:
        assert model.embedding.parameters == record["embedding_parameters"]


@named(CACHED)
def test_cache_grows_by_the_same_elements(record: dict[str, Any]) -> None:
    kept = caches(read(record))
    growing = sum(n * ((c.width if isinstance(c.span, FullSpan) else 0) + c.index_width) for n, c in kept)
    assert growing == record["cache"]["growing_elements_per_token"]


@named([r for r in CACHED if not is_encoder_decoder(r)])
def test_cache_holds_the_same_elements(record: dict[str, Any]) -> None:
    """All that is kept of a sequence: what grows, windows (the library drops the query's own token) and constant states."""
    tokens = record["cache"]["tokens"]
    kept = 0
    for count, cache in caches(read(record)):
        full = isinstance(cache.span, FullSpan)
        held = tokens if full else min(tokens, int(cache.span.held(10**6)) - 1)
        kept += count * (cache.width * held + cache.index_width * tokens + cache.state_bytes // STATE_BYTES)
    assert kept == record["cache"]["elements"]


def test_reasons_still_stand() -> None:
    """An exception whose count has become equal is to be taken out."""
    for (kind, _), why in DIFFERENT.items():
        if not why.startswith("cache only"):
            wrong = [r for r in RECORDS if r["model_type"] == kind and reason(r) and not _is_equal(r)]
            assert wrong, kind


def _is_equal(record: dict[str, Any]) -> bool:
    try:
        model = read(record)
    except CatalogueError:
        return False
    return (model.parameters, model.active_parameters) == (record["parameters"], record["active_parameters"])


def test_most_architectures_are_covered() -> None:
    assert len({r["model_type"] for r in RECORDS} & set(FAMILIES)) > 200
