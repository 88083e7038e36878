"""Architectures that vLLM 0.33.0 serves from model files of its own, against sums over the weights that those files declare.

Each sum is written out from the shapes in the model file named beside it, or from the tensors of a published checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.decompose import decompose
from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.memory.stored import stored_bytes
from planner.model import Model, SoftmaxAttention
from planner.op import ChunkedSpan, Kind, Op
from planner.precision import policy
from planner.workload import Phase, Step


def read(config: dict[str, Any]) -> Model:
    return read_config(config, name="test", where="config.json")


def decoded(model: Model, context: int = 4096) -> list[Op]:
    """Operations of one sequence's next token after `context` others."""
    return list(decompose(model, Step(phase=Phase.DECODE, context=context), policy("bf16")))


def index_elements(model: Model) -> int:
    """Elements of index keys that are cached for each token, over all layers."""
    return sum(kind.count * block.cache.index_width for kind in model.layer_kinds for block in kind.layer.mixers)


# ---- DeepSeek-V4.1 ---------------------------------------------------------------------------------------------------

V41_TEXT: dict[str, Any] = {
    "model_type": "deepseek_v41_text",
    "hidden_size": 5120,
    "num_hidden_layers": 40,
    "vocab_size": 129280,
    "num_attention_heads": 64,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "q_lora_rank": 1280,
    "o_lora_rank": 1024,
    "o_groups": 8,
    "qk_rope_head_dim": 64,
    "sliding_window": 128,
    "compress_ratios": [0, 0, *[2] * 18, *[1] * 20, 0, 0, 0],
    "kv_source_layer_ids": [2, 8, 14, 20],
    "index_source_layer_ids": [2, 8, 14, 20, 24, 28, 32, 36],
    "candidate_source_layer_id": 20,
    "candidate_topk_blocks": 2048,
    "candidate_block_size": 8,
    "index_n_heads": 32,
    "index_head_dim": 128,
    "index_topk": 512,
    "n_routed_experts": 384,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 2304,
    "hc_mult": 4,
    "engram_layer_ids": [1, 14],
    "engram_num_embeddings": [384_006_168, 384_016_682],
    "engram_max_ngram_size": 4,
    "engram_n_heads": 8,
    "engram_head_dim": 256,
    "num_nextn_predict_layers": 3,
    "dspark_target_layer_ids": [37, 38, 39],
    "dspark_markov_rank": 256,
    "dspark_n_routed_experts": 128,
    "dspark_num_experts_per_tok": 3,
}
V41: dict[str, Any] = {
    "model_type": "deepseek_v41",
    "text_config": V41_TEXT,
    "vision_config": {"hidden_size": 1024},
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [32, 32], "expert_dtype": "fp4"},
}
ENGRAM_TABLES = (384_006_168 + 384_016_682) * 256


def test_deepseek_v41_has_the_parameters_of_its_checkpoint() -> None:
    """The hub counts 763,205,315,794 elements in deepseek-ai/DeepSeek-V4.1-Flash, of which these are not the text model's.

    Tower and aligner 485,268,480 with three image tokens; the draft block 14,225,362,530 with its 3 x 2 x 128 corrections of the router;
    40 x 2 x 384 corrections of the router, which are buffers.
    """
    model = read(V41)
    assert model.parameters == 763_205_315_794 - 485_268_480 - 14_225_362_530 - 40 * 2 * 384
    assert model.mtp_parameters == 14_225_362_530 - 3 * 2 * 128
    assert model.vision_parameters is None


def test_deepseek_v41_keeps_890_bytes_for_a_token() -> None:
    """890 B of global KV (model card): 512 elements of 4 bits and 32 scales of a byte for an entry, 128 of 4 bits and 4 for an index key.

    Three layers keep an entry for two tokens, one keeps one for each.
    """
    model = read(V41)
    assert model.kv_elements_per_token == 3 * 256 + 512
    assert index_elements(model) == 3 * 64 + 128
    assert model.kv_elements_per_token * (288 / 512) + index_elements(model) * (68 / 128) == 890


def test_deepseek_v41_takes_the_bytes_of_its_files() -> None:
    """510.29 GB of files, less 0.97 of the tower; the tables of n-grams, in FP8 with a scale of a byte for 32, are 202.76 of them."""
    model = read(V41)
    precision = model.quantization.precision("bf16")
    parts = {t.name: n * stored_bytes(t, precision) for t, n in model.stored_tensors if t.name.endswith("engram.embed")}
    everything = (*model.stored_tensors, *model.mtp_tensors())
    assert sum(parts.values()) == pytest.approx(202.76e9, rel=1e-4)
    assert sum(n * stored_bytes(t, precision) for t, n in everything) == pytest.approx(509.32e9, rel=1e-3)


def test_deepseek_v41_multiplies_by_16_billion_weights() -> None:
    """ "16B activated" in decode: 40 layers of attention, of experts and of streams, 8 indexers, tables' projections, and the LM head.

    Summed over the shapes of the checkpoint: 1280 x 5120 and so on in attention, router, six experts and a shared one of 3 x 5120 x 2304.
    """
    attention = 1280 * 5120 + 32768 * 1280 + 512 * 5120 + 8192 * 4096 + 5120 * 8192
    experts = 384 * 5120 + 7 * 3 * 5120 * 2304
    streams, taken = 2 * 24 * 4 * 5120, 2 * 6144 * 5 * 5120
    entries = 3 * 2 * 512 * 5120 + 512 * 5120
    indexers = 8 * (4096 * 1280 + 32 * 5120) + (3 / 2 + 1) * 512 * 128
    weights = 40 * (attention + experts + streams) + taken + entries + 129280 * 5120
    ops = decoded(read(V41))
    assert sum(op.count * op.flops for op in ops if op.kind is Kind.MATMUL) == 2 * weights
    assert sum(op.count * op.flops for op in ops if op.kind is Kind.INDEXER and op.name != "indexer") == 2 * indexers
    assert weights == pytest.approx(16e9, rel=0.01)


def test_deepseek_v41_attends_to_640_positions() -> None:
    """128 in the window and 512 entries, in all but two layers (technical report, section 2.3); 16,384 candidates are scored again."""
    ops = decoded(read(V41), context=100_000)
    attention = sum(op.count * op.flops for op in ops if op.kind is Kind.ATTENTION)
    assert attention == pytest.approx(4 * 64 * 512 * (38 * 640 + 2 * 128), rel=1e-3)
    scored = sum(op.count * op.flops for op in ops if op.name == "indexer")
    entries = 3 * 100_001 / 2 + 100_001 + 4 * 16_384
    assert scored == pytest.approx(2 * 32 * 128 * entries, rel=1e-3)


def test_an_entry_that_no_layer_makes_is_an_error() -> None:
    with pytest.raises(CatalogueError, match="kv_source_layer_ids"):
        read({**V41, "text_config": {**V41_TEXT, "kv_source_layer_ids": [8]}})


# ---- Step 5, Step-1 --------------------------------------------------------------------------------------------------

STEP_5: dict[str, Any] = {
    "model_type": "step5",
    "hidden_size": 4096,
    "intermediate_size": 13824,
    "num_attention_heads": 64,
    "num_attention_groups": 4,
    "num_hidden_layers": 92,
    "vocab_size": 128896,
    "head_dim": 192,
    "use_head_wise_attn_gate": True,
    "use_moe": True,
    "moe_intermediate_size": 1536,
    "moe_num_experts": 352,
    "moe_top_k": 8,
    "share_expert_dim": 1536,
    "moe_layer_list": list(range(3, 91)),
    "sliding_window": 512,
    "layer_types": ["full_attention" if i % 4 == 3 else "sliding_attention" for i in range(95)],
    "sparse_config": {"enabled": True, "proxy_dim": 256, "sparse_indexer_num_heads": 16, "topk": 512},
    "num_nextn_predict_layers": 3,
    "tie_word_embeddings": False,
}


def test_step_5_has_the_tensors_of_its_checkpoint() -> None:
    """Shapes of the tensors of Step-5-Preview: attention 64 x 192 on 4 groups with a gate, 23 layers with an indexer, 88 with experts."""
    attention = 2 * 12288 * 4096 + 2 * 768 * 4096 + 64 * 4096 + 2 * 192
    indexer = 4096 * 4096 + 256 + 2 * 256 * 4096 + 2 * 256 + 16 * 4096 + 64
    expert, dense = 3 * 1536 * 4096, 3 * 13824 * 4096
    layers = 92 * (attention + 2 * 4096) + 23 * indexer + 4 * dense + 88 * (352 * 4096 + 353 * expert)
    model = read(STEP_5)
    assert model.parameters == layers + 2 * 128896 * 4096 + 4096
    assert model.mtp_parameters == 3 * (attention + dense + 2 * 4096 + 2 * 4096 * 4096 + 3 * 4096 + 128896 * 4096)
    assert model.kv_elements_per_token == 23 * 2 * 768


def test_step_5_scores_runs_of_eight_tokens() -> None:
    """One key of 256 elements for eight tokens; the best 512 runs are attended to (vLLM models/step5)."""
    model = read(STEP_5)
    assert index_elements(model) == 23 * 256 // 8
    sparse = [k.layer.attention for k in model.layer_kinds if isinstance(k.layer.attention, SoftmaxAttention)]
    assert {block.index_topk for block in sparse if block.indexer} == {8 * 512}


def test_step_3_5_has_three_modules_with_heads_of_their_own() -> None:
    """Step-3.5-Flash: "196.81B" and "0.81B Head" on its card; 64 heads, 96 in layers with a window, 288 experts of 1,280."""
    config = {
        "model_type": "step3p5",
        "hidden_size": 4096,
        "intermediate_size": 11264,
        "num_attention_heads": 64,
        "num_attention_groups": 8,
        "num_hidden_layers": 45,
        "vocab_size": 128896,
        "head_dim": 128,
        "use_head_wise_attn_gate": True,
        "use_qk_norm": True,
        "moe_intermediate_size": 1280,
        "moe_num_experts": 288,
        "moe_top_k": 8,
        "share_expert_dim": 1280,
        "moe_layers_enum": ",".join(map(str, range(3, 45))),
        "sliding_window": 512,
        "layer_types": ["sliding_attention" if i % 4 else "full_attention" for i in range(48)],
        "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 96},
        "num_nextn_predict_layers": 3,
        "tie_word_embeddings": False,
    }
    full, window = (2 * heads * 128 * 4096 + 2 * 1024 * 4096 + heads * 4096 + 2 * 128 for heads in (64, 96))
    dense, experts = 3 * 11264 * 4096, 289 * 3 * 1280 * 4096 + 288 * 4096
    layers = 12 * full + 33 * window + 45 * 2 * 4096 + 3 * dense + 42 * experts
    model = read(config)
    assert model.parameters == layers + 4096 + 2 * 128896 * 4096
    assert model.mtp_parameters == 3 * (window + dense + 2 * 4096 + 2 * 4096 * 4096 + 3 * 4096 + 128896 * 4096)
    assert round(model.mtp_parameters / 3 / 1e9, 2) == 0.81
    assert not any("not read" in note or "multi-token" in note for note in model.notes)
    assert (
        read({**config, "use_head_wise_attn_gate": False}).parameters == model.parameters - (12 * 64 + 33 * 96) * 4096
    )


def test_glm_4_7_flash_holds_copies_of_embedding_and_head() -> None:
    """Its GGUF files have 59G with the module and 56G without, the module alone with the model's own two matrices 3.6G."""
    config = {
        "model_type": "glm4_moe_lite",
        "hidden_size": 2048,
        "intermediate_size": 10240,
        "num_attention_heads": 20,
        "num_hidden_layers": 47,
        "vocab_size": 154880,
        "n_routed_experts": 64,
        "n_shared_experts": 1,
        "moe_intermediate_size": 1536,
        "num_experts_per_tok": 4,
        "first_k_dense_replace": 1,
        "q_lora_rank": 768,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 192,
        "qk_rope_head_dim": 64,
        "v_head_dim": 256,
        "num_nextn_predict_layers": 1,
    }
    latent = 768 * 2048 + 768 + 20 * 256 * 768 + 576 * 2048 + 512 + 20 * (192 + 256) * 512 + 2048 * 20 * 256
    experts = 65 * 3 * 1536 * 2048 + 64 * 2048
    copies = 2 * 154880 * 2048
    model = read(config)
    assert model.mtp_parameters == latent + experts + 2 * 2048 + 2 * 2048 * 2048 + 3 * 2048 + copies
    assert round(2 * (model.mtp_parameters + copies) / 2**30, 1) == 3.6
    assert 58 < 2 * (model.parameters + model.mtp_parameters) / 2**30 < 59


def test_step_1_by_hand() -> None:
    """Step-Audio-EditX: 48 heads of 64 on 4 groups (vLLM step1); embeddings tied unless the file says otherwise."""
    config = {
        "model_type": "step1",
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_attention_heads": 48,
        "num_attention_groups": 4,
        "num_hidden_layers": 32,
        "vocab_size": 74752,
    }
    layer = 2 * 3072 * 3072 + 2 * 3072 * 256 + 3 * 3072 * 8192 + 2 * 3072
    assert read(config).parameters == 32 * layer + 74752 * 3072 + 3072
    assert read({**config, "tie_word_embeddings": False}).parameters == 32 * layer + 2 * 74752 * 3072 + 3072


# ---- Ling 2.5, Param2 ------------------------------------------------------------------------------------------------

LING_25: dict[str, Any] = {
    "model_type": "bailing_hybrid",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "head_dim": 16,
    "vocab_size": 100,
    "layer_group_size": 2,
    "group_norm_size": 4,
    "use_qk_norm": True,
    "kv_lora_rank": 8,
    "q_lora_rank": 12,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 6,
    "v_head_dim": 16,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_shared_experts": 1,
    "moe_intermediate_size": 20,
    "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 1,
}


def test_ling_25_by_hand() -> None:
    """Lightning and latent attention in turn, the latter with no gate (vLLM bailing_moe_linear)."""
    linear = 64 * 3 * 64 + 64 * 64 + 64 * 64 + 64 + 2 * 16
    latent = 64 * 12 + 12 + 12 * 4 * 22 + 64 * (8 + 6) + 8 + 8 * 4 * 32 + 4 * 16 * 64
    experts, dense = 64 * 8 + 9 * 3 * 64 * 20, 3 * 64 * 96
    layers = 2 * linear + 2 * latent + 3 * experts + dense + 4 * 2 * 64
    model = read(LING_25)
    assert model.parameters == layers + 2 * 100 * 64 + 64
    assert model.mtp_parameters == latent + experts + 2 * 64 + 2 * 64 * 64 + 3 * 64
    assert model.kv_elements_per_token == 2 * (8 + 6)
    assert not model.notes


def test_ling_3_has_a_gate_and_a_convolution() -> None:
    """Kimi delta attention with its decay and its gate in one step each, latent attention with a gate (vLLM bailing_moe_v3)."""
    config = {
        key: value for key, value in LING_25.items() if key not in ("group_norm_size", "num_nextn_predict_layers")
    }
    gate = {"short_conv_kernel_size": 3, "no_kda_lora": True, "gated_attention_proj_granularity_type": "element_wise"}
    delta = 64 * 3 * 64 + 64 * 4 + 2 * 64 * 64 + 64 + 4 + 3 * 3 * 64 + 16 + 64 * 64
    latent = 64 * 12 + 12 + 12 * 4 * 22 + 64 * (8 + 6) + 8 + 8 * 4 * 32 + 4 * 16 * 64 + 64 * 64
    experts, dense = 64 * 8 + 9 * 3 * 64 * 20, 3 * 64 * 96
    layers = 2 * delta + 2 * latent + 3 * experts + dense + 4 * 2 * 64
    assert read({**config, **gate}).parameters == layers + 2 * 100 * 64 + 64


def test_param2_by_hand() -> None:
    """Shared experts are as wide as `moe_shared_expert_intermediate_size` says, all together (vLLM param2moe)."""
    config = {
        "model_type": "param2moe",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 100,
        "use_qk_norm": True,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "num_shared_experts": 2,
        "moe_intermediate_size": 20,
        "moe_shared_expert_intermediate_size": 30,
    }
    attention = 64 * 64 + 2 * 64 * 32 + 64 * 64 + 2 * 16
    experts = 64 * 8 + 8 * 3 * 64 * 20 + 3 * 64 * 30
    layers = 3 * (attention + 2 * 64) + 2 * experts + 3 * 64 * 96
    assert read(config).parameters == layers + 2 * 100 * 64 + 64


# ---- K2 Horizon ------------------------------------------------------------------------------------------------------

HORIZON: dict[str, Any] = {
    "model_type": "k2_horizon",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
    "query_key_norm": True,
    "attention_gate_func": "sigmoid",
    "mlp_only_layers": [0],
    "decoder_sparse_step": 1,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_shared_experts": 1,
    "moe_intermediate_size": 20,
    "moe_gate_bias": True,
    "mova_num_experts": 6,
    "mova_num_experts_per_tok": 3,
    "layernorm_num_groups": 2,
}


def test_k2_horizon_by_hand() -> None:
    """Layers with experts have a router and six projections of values, of which a token takes three (vLLM k2_horizon)."""
    common = 64 * 64 + 64 * 32 + 64 * 64 + 64 * 64 + (4 + 2) * 16
    experts = 64 * 8 + 8 + 9 * 3 * 64 * 20
    values = 64 * 6 + 6 + 6 * 64 * 32
    layers = 3 * (common + 2 * 64) + 64 * 32 + 3 * 64 * 96 + 2 * (experts + values)
    model = read(HORIZON)
    assert model.parameters == layers + 2 * 100 * 64 + 64
    assert model.active_parameters == model.parameters - 2 * (6 * 3 * 64 * 20 + 3 * 64 * 32)
    assert model.kv_elements_per_token == 3 * 2 * 32


def test_k2_horizon_multiplies_by_three_projections_of_values() -> None:
    matmuls = {op.name: op.count * op.flops for op in decoded(read(HORIZON)) if op.kind is Kind.MATMUL}
    assert matmuls["value_experts.v_proj"] == 2 * 2 * 3 * 64 * 32
    assert matmuls["value_router"] == 2 * 2 * 64 * 6


# ---- Alice AI --------------------------------------------------------------------------------------------------------

ALICE: dict[str, Any] = {
    "model_type": "alice_ai",
    "vocab_size": 129024,
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 32,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "block_attn_res_block_size": 4,
}


def test_alice_ai_by_hand() -> None:
    """36 layers of Kimi delta attention, 12 of gated attention, experts in all, vectors that mix earlier results (vLLM alice_ai)."""
    width = 32 * 128
    delta = 2048 * (3 * width + 32 + 2 * 128) + 2 * 128 * width + width + 32 + 4 * 3 * width + 128 + width * 2048
    full = 2048 * (2 * 16 * 256 + 2 * 2 * 256) + 16 * 256 * 2048 + 2 * 256
    experts = 2048 * 512 + 513 * 3 * 2048 * 512 + 2048
    mixing = 2 * 2048 * (2 * 48 - 1) + 2 * 2048
    layers = 36 * delta + 12 * full + 48 * (experts + 2 * 2048) + mixing
    model = read(ALICE)
    assert model.parameters == layers + 2 * 129024 * 2048 + 2048
    # "80B-A3B" is part of the model's name.
    assert model.parameters == pytest.approx(80e9, rel=0.02)


def test_kimi_k3_by_hand() -> None:
    """69 layers of Kimi delta attention with a gate of full rank, 24 of latent attention with a gate (vLLM models/kimi_k3).

    896 experts work on 3584 elements, of which 16 are used, between two matrices and behind a norm; the first layer is dense.
    """
    path = Path(__file__).parents[1] / "data" / "configs" / "moonshotai__Kimi-K3.json"
    model = read(json.loads(path.read_text(encoding="utf-8")))
    hidden, width = 7168, 96 * 128
    delta = hidden * (4 * width + 96 + 128) + 128 * width + width + 96 + 4 * 3 * width + 128 + width * hidden
    down = hidden * 1536 + 1536 + hidden * 576 + 512
    full = down + 1536 * 96 * 192 + 512 * 96 * 256 + 2 * hidden * width
    expert = 3 * 3584 * 3072
    experts = hidden * 896 + 896 * expert + 2 * hidden * 3584 + 3584 + 2 * 3 * hidden * 3072
    layers = 69 * delta + 24 * full + 3 * hidden * 33792 + 92 * experts + 93 * (2 + 4) * hidden
    assert model.parameters == layers + 2 * 163840 * hidden + 3 * hidden
    assert model.active_parameters == model.parameters - 92 * 880 * expert
    assert not any("may change shapes" in note for note in model.notes)


# ---- LongCat-Flash-Lite ----------------------------------------------------------------------------------------------

LONGCAT_LITE: dict[str, Any] = {
    "architectures": ["LongcatFlashNgramForCausalLM"],
    "hidden_size": 3072,
    "num_layers": 14,
    "num_attention_heads": 32,
    "vocab_size": 131072,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "ffn_hidden_size": 6144,
    "expert_ffn_hidden_size": 1024,
    "n_routed_experts": 256,
    "zero_expert_num": 128,
    "moe_topk": 12,
    "ngram_vocab_size_ratio": 78,
    "emb_neighbor_num": 4,
    "emb_split_num": 4,
}


def test_longcat_lite_has_its_published_total() -> None:
    """ "68.5B" with "over 30B" in tables of n-grams, in the card of meituan-longcat/LongCat-Flash-Lite; there is no model_type in the file.

    Twelve tables of 256 elements, of 78 x 131072 rows and 1, 3 ... 23 more, each with a projection to 3072.
    """
    model = read(LONGCAT_LITE)
    rows = 12 * 78 * 131072 + 12**2
    plain = read({k: v for k, v in LONGCAT_LITE.items() if not k.startswith(("ngram", "emb_"))})
    assert model.parameters - plain.parameters == rows * 256 + 12 * 256 * 3072
    assert model.parameters == pytest.approx(68.5e9, rel=0.01)


# ---- models that run layers again ------------------------------------------------------------------------------------

LOOPED: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
}
LAYER = 64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 96 + 2 * 64


def test_loop_coder_by_hand() -> None:
    """The second run stores nothing but a vector and an offset for each head, and keeps a window (vLLM iquest_loopcoder)."""
    model = read({**LOOPED, "model_type": "iquestloopcoder", "loop_num": 2, "loop_window_size": 8})
    assert model.parameters == 3 * (LAYER + 4 * (16 + 1)) + 2 * 100 * 64 + 64
    assert model.kv_elements_per_token == 3 * 2 * 32
    assert model.num_hidden_layers == 6


def test_loop_coder_looks_back_at_the_first_run() -> None:
    """The second run attends to its window of 8 and to all 101 positions of the first; both runs multiply by the same weights."""
    model = read({**LOOPED, "model_type": "iquestloopcoder", "loop_num": 2, "loop_window_size": 8})
    ops = decoded(model, context=100)
    assert sum(op.count * op.flops for op in ops if op.kind is Kind.ATTENTION) == 3 * 4 * 4 * 16 * (101 + 8 + 101)
    assert sum(op.count * op.flops for op in ops if op.kind is Kind.MATMUL) == 2 * (2 * 3 * (LAYER - 2 * 64) + 100 * 64)


def test_nanbeige_by_hand() -> None:
    model = read({**LOOPED, "model_type": "nanbeige", "num_loops": 3})
    assert model.parameters == 3 * LAYER + 2 * 100 * 64 + 64
    assert model.kv_elements_per_token == 3 * 3 * 2 * 32
    with pytest.raises(CatalogueError, match="loop_share_kv"):
        read({**LOOPED, "model_type": "nanbeige", "loop_share_kv": True})


# ---- windows and chunks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chunk", "lookback"), [(4, 0), (4, 1), (3, 2)])
def test_chunks_that_look_back(chunk: int, lookback: int) -> None:
    """Query i sees from the start of the chunk `lookback` chunks before its own; counted position by position."""
    span = ChunkedSpan(chunk, lookback=lookback)
    seen = [i - max(i // chunk - lookback, 0) * chunk + 1 for i in range(30)]
    for tokens in range(30):
        assert span.seen(tokens) == sum(seen[:tokens])
        assert span.past(tokens) == seen[tokens] - 1


def test_rnj_1_by_hand() -> None:
    """Gemma 3's layout; chunks as long as the window, of which the one before is seen as well (vLLM rnj1)."""
    kinds = ["chunked_attention", "full_attention", "chunked_attention"]
    model = read({**LOOPED, "model_type": "rnj1", "layer_types": kinds, "sliding_window": 8})
    assert model.parameters == 3 * (LAYER + 2 * 64 + 2 * 16) + 100 * 64 + 64
    assert model.kv_elements_per_token == 2 * 32
    spans = [k.layer.attention.span for k in model.layer_kinds if isinstance(k.layer.attention, SoftmaxAttention)]
    assert ChunkedSpan(8, lookback=1) in spans


def test_domyn_edge_by_hand() -> None:
    """Four norms, one of keys, none with weights of queries; head dimensions and windows by layer (vLLM domyn_edge)."""
    more = {
        "model_type": "domyn_edge",
        "per_layer_config": [{"head_dim": 16}, {"head_dim": 16}, {"head_dim": 32}],
        "position_layers": ["rope", "rope", "nope"],
        "window_sizes": [[7, 0], [7, 0], [-1, 0]],
    }
    model = read({**LOOPED, **more})
    wide = 64 * 128 + 2 * 64 * 64 + 128 * 64 + 3 * 64 * 96 + 2 * 64
    assert model.parameters == 2 * (LAYER + 2 * 64 + 16) + wide + 2 * 64 + 32 + 2 * 100 * 64 + 64
    assert model.kv_elements_per_token == 2 * 64


PANGU_PRO: dict[str, Any] = {
    **LOOPED,
    "model_type": "PanguProMoEV2",
    "qk_nope_dim": 12,
    "qk_rope_dim": 4,
    "v_channels": 24,
    "param_sink_number": 5,
    "param_sink_with_value": True,
    "interleaved_sliding_window": [8, None],
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 20,
    "first_k_dense_replace": 1,
    "sandwich_norm": True,
}


def test_pangu_pro_by_hand() -> None:
    """Five learned keys and values on two heads, a norm of keys, values of 24 elements, a window on every other layer (vLLM openpangu)."""
    attention = 64 * 64 + 64 * 2 * (16 + 24) + 4 * 24 * 64 + 5 * 2 * (16 + 24) + 16
    layers = 3 * (attention + 4 * 64) + 3 * 64 * 96 + 2 * (64 * 8 + 9 * 3 * 64 * 20)
    model = read(PANGU_PRO)
    assert model.parameters == layers + 2 * 100 * 64 + 64
    assert model.kv_elements_per_token == 2 * (16 + 24)
    assert any("param_sink_number" in note for note in model.notes)


# ---- hybrids and others ----------------------------------------------------------------------------------------------


def test_puzzle_layers_have_experts_of_their_own() -> None:
    """`block_configs` has fields that differ by layer; experts have no gate (vLLM nemotron_h)."""
    config = {
        **LOOPED,
        "num_hidden_layers": 2,
        "model_type": "nemotron_h_puzzle",
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "moe_shared_expert_intermediate_size": 32,
        "block_configs": [
            {"block_type": "moe", "moe_intermediate_size": 32, "num_experts_per_tok": 1},
            {"block_type": "moe", "moe_intermediate_size": 48, "num_experts_per_tok": 2},
        ],
    }
    shared = 2 * (64 * 4 + 2 * 64 * 32 + 64)
    model = read(config)
    assert model.parameters == shared + 4 * 2 * 64 * 32 + 4 * 2 * 64 * 48 + 2 * 100 * 64 + 64
    assert model.active_parameters == shared + 2 * 64 * 32 + 2 * 2 * 64 * 48 + 2 * 100 * 64 + 64


MOBIUS: dict[str, Any] = {
    **LOOPED,
    "num_hidden_layers": 4,
    "layer_types": ["full_attention"] * 4,
    "num_blocks": 2,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 20,
    "shared_expert_intermediate_size": 24,
    "layer_scale": True,
}


def test_mobius_layers_share_their_experts() -> None:
    """Two blocks of experts for four layers; each layer has a network with a gate, and two scales (vLLM interns2_mobius)."""
    attention = 64 * 2 * 64 + 2 * 64 * 32 + 64 * 64 + 2 * 16
    layer = attention + 3 * 64 * 24 + 64 + 2 * 64 + 2 * 64
    model = read({"model_type": "interns2_mobius", "text_config": {**MOBIUS, "model_type": "interns2_mobius_text"}})
    assert model.parameters == 4 * layer + 2 * (64 * 8 + 8 * 3 * 64 * 20) + 2 * 100 * 64 + 64


def test_moondream_by_hand() -> None:
    """Its text part stands in `config`, what is not said there in the class (vLLM moondream3): biases everywhere, one norm a layer."""
    hidden, heads = 2048, 32
    attention = 4 * (hidden * hidden + hidden) + 2 * heads * 3 * hidden + heads
    dense = hidden * 8192 + 8192 + 8192 * hidden + hidden
    experts = hidden * 64 + 64 + 64 * 3 * hidden * 1024
    layers = 24 * (attention + 2 * hidden) + 4 * dense + 20 * experts
    model = read({"model_type": "moondream3", "config": {"text": {"vocab_size": 51200}}})
    assert model.parameters == layers + 2 * 51200 * hidden + 51200 + 2 * hidden
    assert model.vision_parameters is None
    # "9B" of which "2B active", with the tower, in the card of moondream/moondream3-preview.
    assert model.parameters == pytest.approx(9e9, rel=0.06)
    assert model.active_parameters == pytest.approx(2e9, rel=0.15)


def test_motif_has_its_published_total() -> None:
    """Motif-2.6B (vLLM 0.10.1, motif): four vectors and a norm of two heads' width, and four numbers of the activation, in each layer."""
    config = {
        "model_type": "motif",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "vocab_size": 219520,
        "hidden_act": "poly_norm",
        "tie_word_embeddings": True,
    }
    layer = 4 * 2048 * 2048 + 3 * 2048 * 8192 + 2 * 2048 + 6 * 128 + 4
    model = read(config)
    assert model.parameters == 32 * layer + 219520 * 2048 + 2048
    assert model.parameters == pytest.approx(2.6e9, rel=0.01)


# ---- text parts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrapper", "nested", "same_as"),
    [
        ("bagel", "llm_config", "qwen2"),
        ("bee", "text_config", "qwen3"),
        ("eagle_2_5_vl", "text_config", "qwen2"),
        ("kanana-1.5-v", "text_config", "llama"),
        ("llava_onevision2", "text_config", "qwen3"),
        ("Llama_Nemotron_Nano_VL", "llm_config", "llama"),
        ("midashenglm", "text_config", "qwen2"),
        ("moss_audio", "language_config", "qwen3"),
        ("NVLM_D", "llm_config", "qwen2"),
        ("openvla", "text_config", "llama"),
        ("ovis2_6", "llm_config", "qwen3"),
        ("r_4b", "text_config", "qwen3"),
        ("step_robotics", "text_config", "qwen3"),
        ("umm", "text_config", "qwen2"),
    ],
)
def test_text_part_is_read_by_its_own_type(wrapper: str, nested: str, same_as: str) -> None:
    model = read({"model_type": wrapper, nested: {**LOOPED, "tie_word_embeddings": False}})
    assert model.parameters == read({**LOOPED, "model_type": same_as}).parameters


@pytest.mark.parametrize(
    ("wrapper", "same_as"),
    [("kimi_audio", "qwen2"), ("phi4-siglip", "phi3"), ("phi4mm", "phi3"), ("isaac", "qwen3"), ("keye", "qwen3")],
)
def test_text_part_at_the_top(wrapper: str, same_as: str) -> None:
    """What the towers take is not known from such a file, and is not said to be none."""
    model = read({"model_type": wrapper, **LOOPED})
    assert model.parameters == read({**LOOPED, "model_type": same_as}).parameters
    assert model.vision_parameters is None
    assert len(model.notes) == 1
    assert "towers" in model.notes[0]


def test_nested_twice() -> None:
    """Alpamayo 2 Super keeps a whole Qwen3-VL in `vlm_config` (vLLM alpamayo2_super)."""
    inner = {"model_type": "qwen3_vl", "text_config": {**LOOPED, "model_type": "qwen3_vl_text"}}
    model = read({"model_type": "alpamayo2_super", "vlm_config": inner})
    assert model.parameters == read({**LOOPED, "model_type": "qwen3"}).parameters


def test_bagel_has_norms_of_queries_and_keys() -> None:
    plain, normed = ({"model_type": "bagel", "llm_config": {**LOOPED, "qk_norm": flag}} for flag in (False, True))
    assert read(normed).parameters - read(plain).parameters == 3 * 2 * 16


def test_a_class_with_more_than_its_type_is_refused() -> None:
    """Mono-InternVL's type is InternLM2's, which would leave out the second network of each layer."""
    part = {**LOOPED, "model_type": "internlm2", "architectures": ["InternLM2VEForCausalLM"]}
    with pytest.raises(CatalogueError, match="second network"):
        read({"model_type": "internvl_chat", "llm_config": part})
