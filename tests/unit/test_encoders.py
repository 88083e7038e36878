"""Decoders of BERT's kind, files of two models, and what is told of the parts of a file."""

from __future__ import annotations

from typing import Any

import pytest

from planner.decompose import decompose
from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.model import CrossAttention, Model, Projection
from planner.precision import policy
from planner.workload import Phase, Step

BERT: dict[str, Any] = {
    "model_type": "bert",
    "vocab_size": 100,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}
DECODER = {**BERT, "is_decoder": True, "add_cross_attention": True}
VIT: dict[str, Any] = {
    "model_type": "vit",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "image_size": 32,
    "patch_size": 16,
    "num_channels": 3,
}


def read(config: dict[str, Any]) -> Model:
    return read_config(config, name="test", where="config.json")


def pair(encoder: dict[str, Any], decoder: dict[str, Any], kind: str = "vision") -> dict[str, Any]:
    return {"model_type": f"{kind}-encoder-decoder".removeprefix("text-"), "encoder": encoder, "decoder": decoder}


def test_a_bert_decoder_by_hand() -> None:
    """Embeddings (100 + 32 + 2) x 8 and a norm; a head's matrix 72, norm 16, bias 100; layers 4 x 72 + 144 + 136 + 2 norms."""
    layer = 4 * (64 + 8) + (8 * 16 + 16) + (16 * 8 + 8) + 2 * 16
    assert read({**BERT, "is_decoder": True}).parameters == 134 * 8 + 16 + 72 + 16 + 100 + 2 * layer


def test_cross_attention_adds_four_matrices_and_a_norm() -> None:
    more = read(DECODER).parameters - read({**BERT, "is_decoder": True}).parameters
    assert more == 2 * (4 * 72 + 16)


def test_an_encoder_that_is_not_described_is_told_of() -> None:
    assert any("does not describe" in note for note in read(DECODER).notes)
    assert not read({**BERT, "is_decoder": True}).notes


def test_vit_gpt2_has_the_published_parameters() -> None:
    """ViT-Base/16 with its pooler has 86,389,248 parameters, GPT-2 124,439,808; each of 12 layers gets 2,363,904 of cross-attention."""
    gpt2 = {"model_type": "gpt2", "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024}
    base = {**VIT, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
    found = read(pair({**base, "image_size": 224}, {**gpt2, "is_decoder": True, "add_cross_attention": True}))
    assert found.parameters == 86_389_248 + 124_439_808 + 12 * 2_363_904
    assert found.encoder is not None
    assert found.encoder.source_positions == 14 * 14 + 1


def test_an_older_file_of_swin_and_mbart_is_read_whole() -> None:
    """The shapes of naver-clova-ix/donut-base: 201,852,024 parameters on the class of transformers 5.24.0; 80 x 60 tokens."""
    swin = {
        "model_type": "donut-swin",
        "depths": [2, 2, 14, 2],
        "embed_dim": 128,
        "hidden_size": 1024,
        "image_size": [2560, 1920],
        "num_heads": [4, 8, 16, 32],
        "num_layers": 4,
        "path_norm": True,
        "window_size": 10,
    }
    mbart = {
        "model_type": "mbart",
        "add_final_layer_norm": True,
        "d_model": 1024,
        "decoder_attention_heads": 16,
        "decoder_ffn_dim": 4096,
        "decoder_layers": 4,
        "max_position_embeddings": 1536,
        "vocab_size": 57525,
    }
    found = read(pair(swin, mbart))
    assert found.parameters == 201_852_024
    assert found.encoder is not None
    assert found.encoder.source_positions == 4800
    # the defaults of DonutSwinConfig
    assert found.notes == (
        "not in the file, so the class of donut-swin says: mlp_ratio=4, num_channels=3, patch_size=4",
    )


def test_a_matrix_stands_between_two_widths() -> None:
    wide = {**VIT, "hidden_size": 12, "num_attention_heads": 3}
    found = read(pair(wide, DECODER)).encoder
    assert found is not None
    names = [(p.name, p.input_size, p.output_size) for p in found.projections]
    assert ("enc_to_dec_proj", 12, 8) in names
    same = read(pair(VIT, DECODER)).encoder
    assert same is not None
    assert "enc_to_dec_proj" not in [p.name for p in same.projections]


def test_a_decoder_of_two_models_has_cross_attention_unless_it_says_otherwise() -> None:
    mixers = read(pair(VIT, BERT)).layer_kinds[0].layer.mixers
    assert any(isinstance(block, CrossAttention) for block in mixers)


@pytest.mark.parametrize(
    ("config", "fault"),
    [
        (BERT, "is_decoder: is not true"),
        (pair(VIT, {**DECODER, "add_cross_attention": False}), "decoder.add_cross_attention: is false"),
        (pair(VIT, {**DECODER, "is_decoder": False}), "decoder.is_decoder: is"),
        ({**pair(VIT, DECODER), "tie_encoder_decoder": True}, "tie_encoder_decoder"),
        ({"model_type": "encoder-decoder", "decoder": DECODER}, "decoder.encoder: is missing"),
        (pair({**VIT, "model_type": "resnet"}, DECODER), "'resnet' is not one of"),
        (pair(VIT, {"model_type": "llama"}), "decoder.model_type: 'llama'"),
        (pair(VIT, {}), "decoder.model_type: is missing"),
        ({"model_type": "nemotron_parse", "decoder": {}}, "decoder.d_model: is missing"),
        (pair({"model_type": "swin", "depths": [10**9, 1, 1, 1]}, DECODER), "depths: lists"),
        (pair({"model_type": "swin", "hidden_size": 100}, DECODER), "hidden_size: 100 is not the width"),
        (pair({"model_type": "wav2vec2", "conv_kernel": [10**9] * 7}, DECODER, "speech"), "input_size"),
    ],
)
def test_faults_name_their_part(config: dict[str, Any], fault: str) -> None:
    with pytest.raises(CatalogueError, match=fault):
        read(config)


def test_unread_fields_of_an_encoder_are_told_of() -> None:
    notes = read(pair({**VIT, "extra_width": 7}, DECODER)).notes
    assert any("encoder.extra_width" in note for note in notes)
    assert not read(pair(VIT, DECODER)).notes


def test_what_an_encoder_leaves_to_its_class_is_told_of() -> None:
    partial = {name: value for name, value in VIT.items() if name != "intermediate_size"}
    assert any("the class of vit says: intermediate_size=3072" in note for note in read(pair(partial, DECODER)).notes)


def test_an_encoder_is_no_tower() -> None:
    assert read(pair(VIT, DECODER)).vision_parameters == 0


def test_a_decoder_whose_encoder_is_only_named() -> None:
    """Nemotron Parse: embedding and head 100 x 8, two norms; self and cross 4 x 72 each, network 144 + 136, three norms."""
    decoder = {
        "vocab_size": 100,
        "d_model": 8,
        "decoder_layers": 1,
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 16,
        "encoder_layers": 12,
    }
    found = read({"model_type": "nemotron_parse", "encoder": {"args": {"model": "some"}}, "decoder": decoder})
    assert found.parameters == 2 * 800 + 2 * 16 + 2 * 288 + 144 + 136 + 3 * 16
    assert found.vision_parameters is None
    assert any("does not describe" in note for note in found.notes)


@pytest.mark.parametrize("tied", [({}, {}), ({"tie_word_embeddings": True}, {}), ({}, {"tie_word_embeddings": True})])
def test_a_decoder_that_reads_the_page_before_the_text(tied: tuple[dict[str, bool], dict[str, bool]]) -> None:
    """Nemotron Parse 3.5: as above without cross-attention and its norm; 2 query heads share keys and values of 4 elements."""
    whole, part = tied
    decoder = {
        "vocab_size": 100,
        "d_model": 8,
        "decoder_layers": 1,
        "decoder_attention_heads": 2,
        "self_attention_kv_heads": 1,
        "decoder_ffn_dim": 16,
        "add_cross_attention": False,
        "causal_vision_prefix": True,
    }
    found = read({"model_type": "nemotron_parse3_5", "encoder": {"patch_size": 16}, "decoder": decoder | part, **whole})
    heads = 1 if whole or part else 2
    assert found.parameters == heads * 800 + 2 * 16 + 72 + 2 * 36 + 72 + 144 + 136 + 2 * 16
    assert found.kv_elements_per_token == 2 * 4
    assert found.encoder is None
    assert found.vision_parameters is None


def test_towers_that_no_part_describes_are_not_none() -> None:
    flat = {"model_type": "moshi", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "ffn_dim": 16}
    assert read({**flat, "num_key_value_heads": 2, "head_dim": 4, "vocab_size": 100}).vision_parameters is None


def test_a_convolution_runs_as_often_as_its_length_is_cut_later() -> None:
    """Speech2Text: two convolutions, each halves the length; the first runs on twice as many frames as are left."""
    model = read(
        {
            "model_type": "speech_to_text",
            "vocab_size": 100,
            "d_model": 8,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 16,
            "decoder_ffn_dim": 16,
            "conv_channels": 12,
            "input_feat_per_channel": 5,
        }
    )
    step = Step(phase=Phase.PREFILL, batch=3, context=0, new_tokens=10)
    flops = {op.name: op.flops for op in decompose(model, step, policy("bf16"))}
    assert flops["conv_layers.0"] == 2 * 3 * (2 * 10) * (5 * 5) * 12
    assert flops["conv_layers.1"] == 2 * 3 * 10 * (5 * 6) * 16


def test_early_stages_of_a_picture_have_four_times_the_tokens() -> None:
    """Swin of two stages, 16 x 16 pixels in patches of 4: 16 tokens, then 4 of twice the width."""
    swin = {"model_type": "swin", "image_size": 16, "patch_size": 4, "num_channels": 3, "embed_dim": 8}
    found = read(pair({**swin, "depths": [1, 1], "num_heads": [2, 4], "window_size": 2}, DECODER)).encoder
    assert found is not None
    assert (found.source_positions, found.hidden_size) == (4, 16)
    early = found.layer_kinds[0].layer.projections
    assert {projection.times for projection in early} == {4}
    assert Projection(name="qkv", input_size=8, output_size=24, bias=True, times=4) in early
    merge = found.layer_kinds[1].layer.projections
    assert merge == (Projection(name="reduction", input_size=32, output_size=16, times=1),)
