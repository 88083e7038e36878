"""Architectures with no class in the transformers library, against the totals that their makers publish."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import CatalogueError
from planner.importers.huggingface import read_config
from planner.importers.huggingface.families import FAMILIES
from planner.importers.huggingface.unsupported import UNSUPPORTED
from planner.model import Model, SoftmaxAttention

GROK_2 = {
    "architectures": ["Grok1ForCausalLM"],
    "model_type": "git",
    "hidden_size": 8192,
    "intermediate_size": 32768,
    "moe_intermediate_size": 16384,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_hidden_layers": 64,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "residual_moe": True,
    "vocab_size": 131072,
}
STEP_3 = {
    "model_type": "step3_vl",
    "text_config": {
        "model_type": "step3_text",
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "num_attention_heads": 64,
        "num_attention_groups": 1,
        "num_hidden_layers": 61,
        "vocab_size": 128815,
        "moe_intermediate_size": 5120,
        "moe_num_experts": 48,
        "moe_top_k": 3,
        "share_expert_dim": 5120,
        "share_q_dim": 2048,
        "head_dim": 256,
        "moe_layers_enum": ",".join(str(index) for index in range(4, 60)),
    },
}
OURO = {
    "model_type": "ouro",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "num_hidden_layers": 24,
    "vocab_size": 49152,
    "total_ut_steps": 4,
}
PANGU_ULTRA = {
    "model_type": "pangu_ultra_moe",
    "hidden_size": 7680,
    "intermediate_size": 18432,
    "num_attention_heads": 128,
    "num_hidden_layers": 61,
    "attention_kv_lora_dim": 512,
    "attention_q_lora_dim": 1536,
    "attention_qk_dim": 128,
    "attention_qk_rope_dim": 64,
    "attention_v_dim": 128,
    "moe_intermediate_size": 2048,
    "num_dense_layers": 3,
    "num_routed_experts": 256,
    "num_shared_experts": 1,
    "num_experts_per_tok": 8,
    "sandwich_norm": True,
    "vocab_size": 153600,
}
QWEN_2_7B = {
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "num_hidden_layers": 28,
    "vocab_size": 152064,
}


def read(config: dict[str, Any]) -> Model:
    return read_config(config, name="test", where="config.json")


@pytest.mark.parametrize(
    ("config", "parameters", "active"),
    [
        # "270B total" in the model card of xai-org/grok-2; 115B active in the announcement.
        (GROK_2, 270e9, 115e9),
        # "316B" language model and "38B activated" in the Step-3 paper, arXiv 2507.19427, table 1.
        (STEP_3, 316e9, 38e9),
        # Ouro-1.4B, arXiv 2510.25741.
        (OURO, 1.4e9, 1.4e9),
        # "718B" and "39B activated" in arXiv 2505.04519.
        (PANGU_ULTRA, 718e9, 39e9),
    ],
)
def test_totals_are_those_published(config: dict[str, Any], parameters: float, active: float) -> None:
    model = read(config)
    assert model.parameters == pytest.approx(parameters, rel=0.025)
    assert model.active_parameters == pytest.approx(active, rel=0.04)


def test_layers_that_run_again_have_caches_of_their_own() -> None:
    model = read(OURO)
    assert model.num_hidden_layers == 4 * 24
    assert model.kv_elements_per_token == 4 * 24 * 2 * 2048


def test_one_key_and_value_of_all_queries() -> None:
    """64 layers' worth of multi-query attention: 2 x 256 elements for each token of each of the 61 layers."""
    assert read(STEP_3).kv_elements_per_token == 61 * 512


def test_low_rank_queries_by_hand() -> None:
    """Down 100 x 8 and a norm of 8, up 8 x (4 x 16), one key and value 100 x 32, out 64 x 100."""
    block = SoftmaxAttention(kind="mqa", num_attention_heads=4, head_dim=16, q_lora_rank=8)
    assert sum(tensor.parameters for tensor in block.tensors(100)) == 800 + 8 + 512 + 3200 + 6400


def test_experts_of_queries_by_hand() -> None:
    """Router 10 x 6, six projections 10 x 8 in and 8 x 10 out of which 3 are used, keys and values 10 x 16."""
    block = SoftmaxAttention(
        kind="gqa", num_attention_heads=6, num_key_value_heads=2, head_dim=4, query_experts=6, query_experts_per_tok=3
    )
    tensors = block.tensors(10)
    assert sum(tensor.parameters for tensor in tensors) == 60 + 6 * 160 + 160
    assert sum(tensor.active_parameters for tensor in tensors) == 60 + 3 * 160 + 160


@pytest.mark.parametrize(("version", "same_as"), [(2.6, "qwen2"), ("4.5", "qwen3"), (2.5, "llama")])
def test_version_says_which_language_model(version: object, same_as: str) -> None:
    found = read({"model_type": "minicpmv", "version": version, **QWEN_2_7B})
    shape = {"head_dim": 128, "model_type": same_as}
    assert found.parameters == read({**QWEN_2_7B, **shape}).parameters


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"model_type": "minicpmv", **QWEN_2_7B}, "version"),
        ({**PANGU_ULTRA, "use_mhc": True}, "use_mhc"),
        ({"model_type": "ultravox", "text_model_id": "meta-llama/Llama-3.1-8B"}, "text_config"),
        ({"model_type": "bert", **QWEN_2_7B}, "is an encoder"),
    ],
)
def test_what_is_not_described_is_an_error(config: dict[str, Any], field: str) -> None:
    with pytest.raises(CatalogueError, match=field):
        read(config)


def test_no_architecture_is_both_read_and_refused() -> None:
    assert not set(UNSUPPORTED) & set(FAMILIES)


# ---- Hunyuan: lists by layer, shared experts, cross-layer attention --------------------------------------------------

HUNYUAN = {
    "model_type": "hunyuan_v1_moe",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "attention_head_dim": 128,
    "intermediate_size": 3072,
    "moe_intermediate_size": [3072] * 32,
    "num_experts": 64,
    "moe_topk": [8] * 32,
    "num_shared_expert": [1] * 32,
    "use_mixed_mlp_moe": True,
    "use_cla": False,
    "vocab_size": 128167,
    "tie_word_embeddings": True,
}
"""Hunyuan-A13B: 80 B parameters, 13 B of them active (its model card)."""


def _hunyuan(**fields: Any) -> Model:
    return read_config(HUNYUAN | fields, name="test", where="config.json")


def test_hunyuan_with_a_number_for_each_layer() -> None:
    model = _hunyuan()
    # A layer: queries and outputs 2 x 4096², keys and values 2 x 4096 x 1024, two norms of heads and two of the width,
    # the router, 64 experts and a shared one of three matrices.
    layer = 2 * 4096**2 + 2 * 4096 * 1024 + 2 * 128 + 2 * 4096 + 64 * 4096 + 65 * 3 * 4096 * 3072
    assert model.parameters == 128167 * 4096 + 32 * layer + 4096 == 80_393_183_232
    assert model.active_parameters == model.parameters - 32 * 56 * 3 * 4096 * 3072
    scalars = {"moe_topk": 8, "num_shared_expert": 1, "moe_intermediate_size": 3072}
    assert _hunyuan(**scalars).layers == model.layers
    assert model.notes == ()


def test_hunyuan_s_shared_experts_are_as_many_as_it_says() -> None:
    expert = 32 * 3 * 4096 * 3072
    assert _hunyuan(num_shared_expert=2).parameters == _hunyuan().parameters + expert
    assert _hunyuan(use_mixed_mlp_moe=False).parameters == _hunyuan().parameters - expert


def test_hunyuan_with_one_expert_is_dense() -> None:
    dense = _hunyuan(model_type="hunyuan_v1_dense", head_dim=128)
    assert _hunyuan(num_experts=1, moe_topk=[1] * 32, use_mixed_mlp_moe=False).parameters == dense.parameters


def test_hunyuan_large_shares_keys_between_layers() -> None:
    model = _hunyuan(
        model_type="hunyuan",
        hidden_size=6400,
        num_hidden_layers=64,
        num_attention_heads=80,
        attention_head_dim=None,
        intermediate_size=18304,
        moe_intermediate_size=None,
        num_experts=16,
        moe_topk=1,
        num_shared_expert=1,
        use_cla=True,
        cla_share_factor=2,
        vocab_size=128512,
    )
    # 389 B parameters, 52 B of them active (arXiv 2411.02265); half of the layers have keys and values, 2 x 8 x 80 elements.
    assert round(model.parameters / 1e9) == 389
    assert model.kv_elements_per_token == 32 * 2 * 8 * 80
