"""What readers of towers do with files that the classes of the library do not read as they stand."""

from __future__ import annotations

from typing import Any

from planner.importers.huggingface import read_config
from planner.importers.huggingface.towers.names import FIELD_NAMES, UNUSED
from planner.importers.huggingface.towers.whole import tower_defaults
from planner.model import Model

TEXT = {
    "model_type": "qwen3",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
    "tie_word_embeddings": True,
}

INKLING = {
    "model_type": "inkling_text",
    "hidden_size": 192,
    "intermediate_size": 328,
    "moe_intermediate_size": 88,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 40,
    "vocab_size": 1031,
}

SPEECH = {"d_model": 32, "encoder_layers": 2, "encoder_ffn_dim": 48, "downsample_hidden_size": 8, "output_dim": 64}


def read(config: dict[str, Any]) -> Model:
    return read_config(config, name="test", where="config.json")


def test_names_are_of_types_whose_fields_are_known() -> None:
    for kind in {*FIELD_NAMES, *UNUSED}:
        assert tower_defaults(kind), kind


def test_first_files_of_a_speech_model_keep_all_parts_in_one() -> None:
    audio = {"model_type": "qwen3_asr_encoder", **SPEECH}
    flat = read({"model_type": "qwen3_asr", "text_config": TEXT, "audio_config": audio})
    first = {"text_config": TEXT, "audio_config": {**audio, "model_type": "qwen3_asr_audio_encoder"}}
    nested = read({"model_type": "qwen3_asr", "thinker_config": first})
    # Three convolutions of 3 by 3, 128 bins halved thrice and led to 32; two layers; norm; two matrices to 64.
    stem = (9 + 1) * 8 + 2 * (9 * 8 + 1) * 8 + 8 * 16 * 32
    layer = 4 * 33 * 32 + 33 * 48 + 49 * 32 + 4 * 32
    by_hand = stem + 2 * layer + 2 * 32 + 33 * 32 + 33 * 64
    assert flat.vision_parameters == nested.vision_parameters == by_hand
    assert nested.parameters == flat.parameters
    assert nested.notes == ()


def test_a_projector_of_another_kind_is_not_guessed() -> None:
    vision = {"mm_projector_type": "patchmergerv2"}
    model = read({"model_type": "kimi_k25", "text_config": TEXT, "vision_config": vision})
    assert model.vision_parameters is None
    assert any("mm_projector_type" in note for note in model.notes)


def test_folds_that_several_choices_would_fit_are_not_guessed() -> None:
    # Two choices of levels for 8 by 8 elements of 6 channels in 4 layers cost the same, so the class takes either.
    vision = {"patch_size": 8, "temporal_patch_size": 2, "num_channels": 6, "num_hidden_layers": 4}
    model = read(
        {"model_type": "inkling_mm_model", "text_config": INKLING, "vision_config": vision, "audio_config": {}}
    )
    assert model.vision_parameters is None
    assert any("leave the 5 levels of folded patches open" in note for note in model.notes)


def test_layers_without_number_take_no_time() -> None:
    vision = {"num_hidden_layers": 10**9}
    model = read(
        {"model_type": "inkling_mm_model", "text_config": INKLING, "vision_config": vision, "audio_config": {}}
    )
    assert model.vision_parameters is None
