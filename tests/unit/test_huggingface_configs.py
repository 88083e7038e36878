"""Reading of Hugging Face configs: names, nested parts, defaults, and everything that must not pass in silence."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from planner import catalogue
from planner.cli.main import cli, run
from planner.errors import CatalogueError, InputError
from planner.importers.huggingface import read_config
from planner.importers.huggingface.families import FAMILIES
from planner.importers.huggingface.select import ASSUMPTIONS
from planner.model import Model
from planner.model.stack import MAX_LAYERS

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "tie_word_embeddings": False,
}
# Embedding and head, three layers of attention, network and two norms, and a norm.
LLAMA_PARAMETERS = 2 * 6400 + 3 * (64 * 96 + 64 * 64 + 3 * 64 * 96 + 128) + 64


def read(data: dict[str, Any], **options: Any) -> Model:
    return read_config(data, name="test", where="config.json", **options)


def fault(data: dict[str, Any], **options: Any) -> str:
    with pytest.raises(CatalogueError) as caught:
        read(data, **options)
    message = str(caught.value)
    assert message.startswith("config.json: ")
    assert "\n" not in message
    return message


def without(*fields: str) -> dict[str, Any]:
    return {key: value for key, value in LLAMA.items() if key not in fields}


def test_a_plain_file() -> None:
    model = read(LLAMA)
    assert model.parameters == LLAMA_PARAMETERS
    assert model.notes == ()
    assert model.vision_parameters == 0


# ---- what the class supplies ------------------------------------------------------------------------------------------


SAYS = "not in the file, so the class of {} says: {}"


@pytest.mark.parametrize(
    ("absent", "changes", "told"),
    [
        # MistralConfig: 8 key-value heads, and a window.
        (("num_key_value_heads",), {"model_type": "mistral"}, "num_key_value_heads=8, sliding_window=4096"),
        # Qwen3MoeConfig: 128 experts, 8 for each token, 768 wide.
        (
            (),
            {"model_type": "qwen3_moe", "head_dim": 8},
            "moe_intermediate_size=768, num_experts=128, num_experts_per_tok=8",
        ),
        # As many key-value heads as heads, and a head's part of the hidden size: they follow from the file.
        (("num_key_value_heads",), {}, ""),
        # A width that the file states, and fields that are off.
        ((), {"attention_bias": False}, ""),
    ],
)
def test_sizes_that_the_class_supplies_are_told(absent: tuple[str, ...], changes: dict[str, Any], told: str) -> None:
    data = without(*absent) | changes
    expected = SAYS.format(data["model_type"], told) if told else None
    assert next((note for note in read(data).notes if note.startswith("not in the file")), None) == expected


def test_sizes_of_nested_parts_are_told_with_their_path() -> None:
    # DbrxFFNConfig and DbrxAttentionConfig of the transformers library
    data = {
        "model_type": "dbrx",
        "d_model": 64,
        "n_layers": 2,
        "n_heads": 8,
        "vocab_size": 9,
        "ffn_config": {"ffn_hidden_size": 8},
    }
    note = next(note for note in read(data).notes if note.startswith("not in the file"))
    assert note == SAYS.format("dbrx", "ffn_config.moe_num_experts=4")


def test_the_longest_context_is_told_where_it_has_stored_rows() -> None:
    data = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8, "vocab_size": 9}
    # the default of GPT2Config, and a row for each position
    assert SAYS.format("gpt2", "n_positions=1024") in read(data | {"model_type": "gpt2"}).notes
    assert not read(LLAMA).notes


# ---- unknown architectures -------------------------------------------------------------------------------------------


def test_an_unknown_type_names_the_nearest() -> None:
    message = fault(LLAMA | {"model_type": "lama"})
    assert "model_type: unknown architecture 'lama', did you mean llama" in message
    assert "--assume llama-like" in message


@pytest.mark.parametrize("value", [None, 3, ["llama"], {"a": 1}])
def test_a_type_that_is_no_text(value: Any) -> None:
    assert "model_type: is" in fault(LLAMA | {"model_type": value})


def test_a_missing_type() -> None:
    assert "model_type: is missing" in fault(without("model_type"))


def test_the_user_may_choose_to_read_an_unknown_type() -> None:
    model = read(LLAMA | {"model_type": "brand_new"}, assume="llama-like")
    assert model.parameters == LLAMA_PARAMETERS
    assert "'brand_new' is not known: read as llama, as you asked" in model.notes[0]


@pytest.mark.parametrize(
    "stated", [10**5000, ["llama"], {"a": 1}, True, None], ids=["huge", "list", "mapping", "flag", "null"]
)
def test_a_model_type_that_is_no_text_is_read_by_its_class(stated: Any) -> None:
    model = read(LLAMA | {"model_type": stated, "architectures": ["LlamaForCausalLM"]})
    assert model.parameters == LLAMA_PARAMETERS
    assert "is not known: read as llama, which architectures names" in model.notes[0]
    assert model.source.endswith("a Hugging Face config of type llama")


def test_a_known_type_is_read_as_itself_whatever_is_assumed() -> None:
    tied = LLAMA | {"model_type": "gemma", "head_dim": 8}
    assert read(tied, assume="llama-like").parameters == read(tied).parameters
    (note,) = read(tied, assume="llama-like").notes
    assert note.startswith("--assume llama-like was not needed")


def test_an_unknown_assumption() -> None:
    with pytest.raises(InputError, match="--assume: unknown choice"):
        read(LLAMA, assume="gpt-like")


def test_assumptions_are_known_architectures() -> None:
    assert set(ASSUMPTIONS.values()) <= set(FAMILIES)


@pytest.mark.parametrize("command", [["model"], ["ops", "--hardware", "h100-sxm"]])
def test_assume_on_the_command_line(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"model_type": "brand_new"}))
    name, *options = command
    assert run([name, str(path), *options, "--format", "json"]) == 2
    result = CliRunner().invoke(cli, [name, str(path), *options, "--assume", "llama-like", "--format", "json"])
    assert result.exit_code == 0
    assert "as you asked" in result.stderr


# ---- fields that nobody reads ----------------------------------------------------------------------------------------


def test_an_unknown_field_is_named() -> None:
    (note,) = read(LLAMA | {"extra_heads": 3, "hidden_dropout": 0.1}).notes
    assert note.startswith("not read, and may change shapes: extra_heads ")


@pytest.mark.parametrize(
    "field", [{"rope_scaling": {"type": "yarn"}}, {"use_cache": True}, {"torch_dtype": "bfloat16"}, {"extra": None}]
)
def test_a_harmless_field_is_not(field: dict[str, Any]) -> None:
    assert read(LLAMA | field).notes == ()


def test_a_field_of_another_architecture_is_named() -> None:
    """A llama file with experts is no Llama."""
    (note,) = read(LLAMA | {"num_local_experts": 8}).notes
    assert "num_local_experts" in note


def test_a_bias_that_is_off_is_harmless_and_one_that_is_on_is_not() -> None:
    phi = LLAMA | {"model_type": "phi3"}
    assert read(phi | {"attention_bias": False}).notes == ()
    assert "attention_bias" in read(phi | {"attention_bias": True}).notes[0]


# ---- names -----------------------------------------------------------------------------------------------------------


def test_other_names_of_fields() -> None:
    names = {"hidden_size": "n_embd", "num_hidden_layers": "n_layer", "num_attention_heads": "n_head"}
    renamed = {names.get(key, key): value for key, value in LLAMA.items()}
    assert read(renamed).parameters == LLAMA_PARAMETERS


def test_two_names_of_one_field_must_agree() -> None:
    assert read(LLAMA | {"n_layer": 3}).parameters == LLAMA_PARAMETERS
    assert "num_hidden_layers and n_layer name the same thing and differ" in fault(LLAMA | {"n_layer": 4})


def test_architectures_decide_where_the_type_leaves_fields_unread() -> None:
    moe = LLAMA | {
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    }
    model = read(moe)
    assert model.parameters == read(moe | {"model_type": "mixtral"}).parameters
    assert "model_type says llama, architectures says mixtral" in model.notes[0]


def test_architectures_are_not_heeded_otherwise_and_that_is_said() -> None:
    model = read(LLAMA | {"architectures": ["MixtralForCausalLM"]})
    assert model.parameters == LLAMA_PARAMETERS
    (note,) = model.notes
    assert note.startswith("model_type says llama, architectures says mixtral, which would have ")


def test_a_class_of_the_same_type_that_counts_otherwise_is_said() -> None:
    model = read(LLAMA | {"architectures": ["Qwen2ForCausalLM"]})  # which has biases on queries, keys and values
    assert model.parameters == LLAMA_PARAMETERS
    (note,) = model.notes
    assert note.startswith("model_type says llama, architectures says qwen2, which would have ")
    (note,) = read(LLAMA | {"architectures": ["ArcticForCausalLM"]}).notes
    assert note == "model_type says llama, architectures says arctic, which lacks fields here: read as llama"
    assert read(LLAMA | {"architectures": ["MistralForCausalLM"]}).notes == ()
    own = {"auto_map": {"AutoModelForCausalLM": "modeling_own.ArcticForCausalLM"}}
    assert read(LLAMA | own | {"architectures": ["ArcticForCausalLM"]}).notes == ()


# ---- nested parts ----------------------------------------------------------------------------------------------------


def test_a_nested_text_part_of_another_type() -> None:
    model = read({"model_type": "llava", "text_config": LLAMA})
    assert model.parameters == LLAMA_PARAMETERS


def test_a_tower_that_the_file_leaves_to_its_class_is_said() -> None:
    model = read({"model_type": "llava", "text_config": LLAMA})
    # CLIP ViT-L/14 at 336 pixels without its projection, and two matrices with offsets: 1024 to the text's width and that again.
    hidden = model.hidden_size
    assert model.vision_parameters == 303_507_456 + 1025 * hidden + (hidden + 1) * hidden
    assert model.notes == ("vision_config is not in the file: that of the class is counted",)


def test_a_tower_of_an_unknown_kind_is_not_guessed() -> None:
    vision = {"model_type": "brand_new_vision", "hidden_size": 64}
    model = read({"model_type": "llava", "text_config": LLAMA, "vision_config": vision})
    assert model.vision_parameters is None
    (note,) = model.notes
    assert "vision_config: a tower of type 'brand_new_vision' is not one that is counted" in note


@pytest.mark.parametrize("vision", [{"hidden_size": -4}, {"hidden_size": "wide"}, 3, {"patch_size": 0}])
def test_a_damaged_tower_leaves_the_text_model_alone(vision: Any) -> None:
    model = read({"model_type": "llava", "text_config": LLAMA, "vision_config": vision})
    assert model.parameters == LLAMA_PARAMETERS
    assert model.vision_parameters is None
    assert "the towers are not counted" in model.notes[0]


def test_a_strange_field_of_a_tower_is_named() -> None:
    vision = {"model_type": "clip_vision_model", "num_registers": 4}
    model = read({"model_type": "llava", "text_config": LLAMA, "vision_config": vision})
    assert model.notes == ("not read, and may change the towers: vision_config.num_registers",)


GEMMA3N = {"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text"}}


@pytest.mark.parametrize(
    "audio",
    [
        {"sscp_conv_kernel_size": [["a", 3], [3, 3]]},
        {"sscp_conv_kernel_size": [[], []]},
        {"sscp_conv_stride_size": [[2, 0], [2, 2]]},
        {"sscp_conv_stride_size": [[2, 2]]},
        {"input_feat_size": 1, "sscp_conv_kernel_size": [[3, 9], [3, 9]]},
    ],
)
def test_damaged_convolutions_are_not_counted(audio: dict[str, Any]) -> None:
    model = read({**GEMMA3N, "audio_config": audio})
    assert model.vision_parameters is None
    assert any("audio_config." in note and "the towers are not counted" in note for note in model.notes)


def test_an_architecture_of_another_library_that_is_not_known_is_not_guessed() -> None:
    model = read({**GEMMA3N, "vision_config": {"architecture": "brand_new_net"}})
    assert model.vision_parameters is None
    assert "architecture: 'brand_new_net' is not one that is counted" in model.notes[-1]


def test_an_argument_that_may_change_an_architecture_is_not_passed_over() -> None:
    vision = {"architecture": "vit_pe_core_large_patch14_336", "model_args": {"embed_dim": 1024, "swiglu_mlp": True}}
    model = read({"model_type": "perception_lm", "text_config": LLAMA, "vision_config": vision})
    assert model.vision_parameters is None
    assert "model_args: swiglu_mlp" in model.notes[-1]


def test_towers_within_a_part_are_told_of_by_their_path() -> None:
    vision = {"sam_config": {"num_registers": 4}, "encoder_config": {}}
    model = read({"model_type": "unlimited_ocr", "text_config": {"hidden_size": 1280}, "vision_config": vision})
    assert model.vision_parameters == 400_770_048
    assert "not read, and may change the towers: vision_config.sam_config.num_registers" in model.notes


def test_the_class_names_the_whole_where_the_type_is_that_of_the_text() -> None:
    vision = {"model_type": "pixtral", "num_hidden_layers": 2}
    text = {**LLAMA, "model_type": "ministral3"}
    whole = {"vision_config": vision, "text_config": text}
    named = read({"model_type": "ministral3", "architectures": ["Mistral3ForConditionalGeneration"], **whole})
    assert named.vision_parameters == read({"model_type": "mistral3", **whole}).vision_parameters
    assert named.notes == (SAYS.format("ministral3", "head_dim=128"),)
    nameless = read({"model_type": "ministral3", **whole})
    assert nameless.vision_parameters is None


def test_a_part_that_names_the_whole_is_of_the_usual_kind() -> None:
    text = {**LLAMA, "hidden_size": 4096, "intermediate_size": 11008}
    vision = {"model_type": "idefics2", "num_hidden_layers": 2}
    model = read({"model_type": "idefics2", "text_config": text, "vision_config": vision, "perceiver_config": {}})
    assert model.vision_parameters == 730_040_832  # the library's Idefics2Model with these parts, less the text model
    assert not any("tower" in note or "class" in note for note in model.notes)


def test_the_first_names_of_a_tower_s_fields_are_understood() -> None:
    text = {"model_type": "bart", "d_model": 1024, "vocab_size": 51289}
    widths, whole = [256, 512, 1024, 2048], {"model_type": "florence2", "text_config": text}
    old = {
        "model_type": "davit",
        "dim_embed": widths,
        "image_pos_embed": {"type": "learned_abs_2d", "max_pos_embeddings": 60},
        "visual_temporal_embedding": {"type": "COSINE", "max_temporal_embeddings": 100},
        "image_feature_source": ["spatial_avg_pool", "temporal_avg_pool"],
        "enable_checkpoint": False,
    }
    model = read({**whole, "vision_config": old})
    # The library's Florence2Model with these widths and positions, under its own names, less the text model.
    assert model.vision_parameters == 362_854_400
    assert not any("tower" in note for note in model.notes)


def test_a_tower_beside_a_plain_text_model_is_said() -> None:
    model = read(LLAMA | {"vision_config": {"hidden_size": 64}})
    assert model.vision_parameters is None
    assert "the towers of a llama are not counted (vision_config)" in model.notes[0]


def test_a_nested_part_leaves_fields_to_its_class_and_says_so() -> None:
    model = read({"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}})
    assert model.parameters == 6_738_415_616 + 2 * 64 * 4096  # Llama-7B with 64 rows more
    assert "the class of llama says" in model.notes[0]
    assert "hidden_size=4096" in model.notes[0]


def test_a_whole_file_may_not_leave_them_to_its_class() -> None:
    message = fault({"model_type": "llama"})
    for field in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"):
        assert f"{field}: is missing" in message


def test_a_flat_file_of_a_nested_type_is_read_and_said() -> None:
    model = read(LLAMA | {"model_type": "llava"})
    assert model.parameters == LLAMA_PARAMETERS
    assert "keeps its text model in text_config, but this file has it at the top" in model.notes[0]


def test_a_nested_file_of_a_flat_type_is_read() -> None:
    nested = {"model_type": "llama", "text_config": {k: v for k, v in LLAMA.items() if k != "model_type"}}
    assert read(nested).parameters == LLAMA_PARAMETERS


@pytest.mark.parametrize("part", [{}, {"text_config": None}, {"text_config": {}}, {"text_config": 3}])
def test_a_nested_type_without_its_part_is_refused(part: dict[str, Any]) -> None:
    assert "text_config: is missing" in fault({"model_type": "gemma3", **part})


def test_faults_name_the_part() -> None:
    broken = {"model_type": "llava", "text_config": LLAMA | {"hidden_size": -1}}
    assert "text_config.hidden_size: -1 is not from 1" in fault(broken)


@pytest.mark.parametrize(
    ("whole", "part", "tied"),
    [({}, {}, False), ({"tie_word_embeddings": True}, {}, True), ({}, {"tie_word_embeddings": True}, False)],
)
def test_the_whole_says_whether_embeddings_are_tied(whole: dict[str, Any], part: dict[str, Any], tied: bool) -> None:
    text = {k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"} | part
    model = read({"model_type": "llava_next", "text_config": text, **whole})
    assert model.tie_word_embeddings is tied


def test_a_part_that_is_not_heeded_is_said() -> None:
    text = LLAMA | {"tie_word_embeddings": True}
    notes = read({"model_type": "llava_next", "text_config": text}).notes
    assert notes[0].startswith("tie_word_embeddings: ")


def test_some_types_are_tied_if_either_says_so() -> None:
    text = LLAMA | {"model_type": "qwen2_vl_text", "tie_word_embeddings": True}
    assert read({"model_type": "qwen2_vl", "text_config": text}).tie_word_embeddings


# ---- faulty values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("hidden_size", 0, "0 is not from 1"),
        ("hidden_size", -64, "-64 is not from 1"),
        ("hidden_size", 10**40, "a huge number is not from 1"),
        pytest.param("hidden_size", 10**5000, "a huge number is not from 1", id="unprintable"),
        ("hidden_size", float("nan"), "nan is not a whole number"),
        ("hidden_size", float("inf"), "inf is not a whole number"),
        ("hidden_size", 64.5, "64.5 is not a whole number"),
        ("hidden_size", "64", "'64' is not a whole number"),
        ("hidden_size", True, "True is not a whole number"),
        ("hidden_size", [64], "a list is not a whole number"),
        ("hidden_size", None, "is missing"),
        ("num_attention_heads", 7, "does not divide"),
        ("num_key_value_heads", 3, "does not divide"),
        ("tie_word_embeddings", "yes", "'yes' is not true or false"),
        ("attention_bias", 1, "1 is not true or false"),
        ("num_hidden_layers", 10**6, "layers are more than make sense"),
    ],
)
def test_a_faulty_value_is_one_clear_error(field: str, value: Any, part: str) -> None:
    message = fault(LLAMA | {field: value})
    assert f"{field}: " in message
    assert part in message


def test_a_whole_number_written_as_a_fraction_is_read() -> None:
    assert read(LLAMA | {"hidden_size": 64.0}).parameters == LLAMA_PARAMETERS


def test_all_faults_at_once() -> None:
    message = fault(LLAMA | {"hidden_size": -1, "vocab_size": "many", "intermediate_size": None, "attention_bias": 3})
    for field in ("hidden_size", "vocab_size", "intermediate_size", "attention_bias"):
        assert f"{field}: " in message


def test_a_list_of_kinds_must_have_one_for_each_layer() -> None:
    gemma = LLAMA | {"model_type": "gemma2", "head_dim": 8, "layer_types": ["full_attention"]}
    assert "layer_types: has 1 items, one for each of the 3 layers is expected" in fault(gemma)


def test_an_unknown_kind_of_layer_is_an_error() -> None:
    gemma = LLAMA | {
        "model_type": "gemma2",
        "head_dim": 8,
        "layer_types": ["full_attention", "round", "full_attention"],
    }
    assert "layer_types: 'round' is not one of" in fault(gemma)


@pytest.mark.parametrize("count", [MAX_LAYERS - 1, MAX_LAYERS])
def test_a_deep_stack_is_read_fast(count: int) -> None:
    began = time.perf_counter()
    gemma = LLAMA | {"model_type": "gemma2", "head_dim": 8, "sliding_window": 16, "num_hidden_layers": count}
    assert read(gemma).num_hidden_layers == count
    assert time.perf_counter() - began < 2


# ---- traps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_type", "tied"),
    [("llama", False), ("qwen2", False), ("gemma", True), ("cohere", True), ("smollm3", True), ("granite", False)],
)
def test_absent_ties_resolve_as_the_class_says(model_type: str, tied: bool) -> None:
    model = read(without("tie_word_embeddings") | {"model_type": model_type, "head_dim": 8})
    assert model.tie_word_embeddings is tied


def test_windows_that_are_switched_off() -> None:
    qwen = LLAMA | {"model_type": "qwen2", "sliding_window": 16, "max_window_layers": 1}
    assert {kind.label for kind in read(qwen).layer_kinds} == {"gqa + gated ffn"}
    on = read(qwen | {"use_sliding_window": True})
    assert [(kind.label, kind.count) for kind in on.layer_kinds] == [
        ("gqa + gated ffn", 1),
        ("gqa window 16 + gated ffn", 2),
    ]


def test_falcon_keeps_one_kv_head_or_few() -> None:
    old = {
        "model_type": "falcon",
        "hidden_size": 64,
        "num_attention_heads": 8,
        "num_hidden_layers": 1,
        "vocab_size": 10,
    }
    assert read(old).layers[0].attention.kv_heads == 1
    assert read(old | {"multi_query": False}).layers[0].attention.kv_heads == 8
    new = old | {"new_decoder_architecture": True, "num_kv_heads": 2, "multi_query": True}
    assert read(new).layers[0].attention.kv_heads == 2


def test_letters_say_what_each_layer_of_a_hybrid_is() -> None:
    hybrid = {
        "model_type": "nemotron_h",
        "hybrid_override_pattern": "M*-E",
        "hidden_size": 64,
        "vocab_size": 100,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "intermediate_size": 96,
        "moe_intermediate_size": 16,
        "moe_shared_expert_intermediate_size": 32,
    }
    model = read(hybrid)
    assert [kind.label for kind in model.layer_kinds] == ["mamba2", "gqa", "plain ffn", "moe 2/8"]
    assert "hybrid_override_pattern: 'X' is not one of" in fault(hybrid | {"hybrid_override_pattern": "MX"})
    assert "num_hidden_layers: 3 layers, but" in fault(hybrid | {"num_hidden_layers": 3})


def test_searched_layers_have_shapes_of_their_own() -> None:
    searched = LLAMA | {
        "model_type": "nemotron-nas",
        "num_hidden_layers": 3,
        "num_key_value_heads": None,
        "intermediate_size": None,
        "block_configs": [
            {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 6.0}},
            {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.0}},
            {"attention": {"replace_with_linear": True}, "ffn": {"no_op": True}},
        ],
    }
    first, second, third = read({**searched}).layers
    assert first.attention.kv_heads == 2
    assert first.ffn.intermediate_size == 256  # 2 x 6 x 64 / 3
    assert second.attention is None
    assert second.norm_count == 1
    assert third.projections[0].output_size == 64


def test_load_model_passes_the_choice_on(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"model_type": "brand_new"}))
    assert catalogue.load_model(str(path), assume="llama-like").parameters == LLAMA_PARAMETERS


# ---- files that would take long, or tell nothing ---------------------------------------------------------------------


def test_a_million_layers_are_refused_at_once() -> None:
    message = fault({"model_type": "xlstm", "embedding_dim": 64, "num_heads": 2, "vocab_size": 99, "num_blocks": 10**6})
    assert "1000000 layers are more than make sense (at most 10000)" in message


def test_fields_that_look_like_sizes_are_named_first_where_many_are_not_known() -> None:
    many = {f"a_{i:02}": 1 for i in range(40)}
    (note,) = read(LLAMA | many | {"use_cla": True, "zig_factor": 2}).notes
    assert note.startswith("not read, and may change shapes: use_cla, zig_factor, a_00, ")
    assert " and 22 more " in note


def test_modules_beside_the_model_of_an_impossible_size_are_an_error() -> None:
    modules = {"num_nextn_predict_layers": 1, "dspark_target_layer_ids": [1], "dspark_markov_rank": 10**9}
    experts = {"dspark_n_routed_experts": 4, "dspark_num_experts_per_tok": 1}
    assert "input_size" in fault(DEEPSEEK_V41 | modules | experts)


DEEPSEEK_V41 = {
    "model_type": "deepseek_v41_text",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "vocab_size": 99,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "q_lora_rank": 8,
    "o_lora_rank": 8,
    "o_groups": 2,
    "qk_rope_head_dim": 8,
    "sliding_window": 16,
    "compress_ratios": [0, 0],
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "hc_mult": 2,
}
"""A small one, without what its sparse layers and tables of n-grams would add."""
