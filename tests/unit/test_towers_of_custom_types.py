"""Towers of types without a class in the transformers library.

Exact numbers are sums over skeletons of the modules: every matrix, offset, norm and table built with the shapes that vLLM 0.33.0 gives it in
`vllm/model_executor/models` (the file is named at each), or the model's own repository, on the meta device of torch 2.13.0. Beside them
stand the sizes that the makers publish.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from planner.errors import PlannerError
from planner.importers.huggingface import read_config
from planner.importers.huggingface.towers import WHOLES, custom
from planner.model import Model


def read(config: dict[str, Any]) -> Model:
    return read_config(config, name="test", where="config.json")


def told(model: Model) -> list[str]:
    """Return the notes about towers."""
    return [note for note in model.notes if "vision" in note or "tower" in note or "visual" in note]


def text(hidden: int = 4096, **fields: Any) -> dict[str, Any]:
    """Return a text part of a width; the towers depend on nothing else of it."""
    small = {"num_hidden_layers": 1, "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 1000}
    return {"model_type": "qwen2", "hidden_size": hidden, "intermediate_size": 128, **small, **fields}


V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 2048,
    "intermediate_size": 11264,
    "moe_intermediate_size": 1408,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "n_shared_experts": 2,
    "n_routed_experts": 64,
    "num_experts_per_tok": 6,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "first_k_dense_replace": 1,
    "vocab_size": 163840,
}
V2 = {
    "model_type": "deepseek_v2",
    "hidden_size": 1280,
    "intermediate_size": 6848,
    "moe_intermediate_size": 896,
    "num_hidden_layers": 12,
    "num_attention_heads": 10,
    "num_key_value_heads": 10,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
    "kv_lora_rank": None,
    "q_lora_rank": None,
    "qk_nope_head_dim": 0,
    "qk_rope_head_dim": 0,
    "v_head_dim": 0,
    "use_mla": False,
    "topk_method": "greedy",
    "lm_head": True,
    "rm_head": False,
    "vocab_size": 129280,
}
MOONVIT = {
    "model_type": "moonvit",
    "patch_size": 14,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "init_pos_emb_height": 64,
    "init_pos_emb_width": 64,
    "merge_kernel_size": [2, 2],
    "torch_dtype": "bfloat16",
}
KIMI_VL = {"model_type": "kimi_vl", "vision_config": MOONVIT, "text_config": V3}
KIMI_K3_VISION = {
    "_attn_implementation": "flash_attention_2",
    "activation_func": "gelu_pytorch_tanh",
    "attn_bias": False,
    "init_pos_emb_height": 64,
    "init_pos_emb_time": 4,
    "init_pos_emb_width": 64,
    "linear_bias": False,
    "merge_kernel_size": [2, 2],
    "merge_type": "sd2_tpool",
    "mlp_type": "mlp2",
    "mm_hidden_size": 1024,
    "mm_projector_type": "patchmergerv2",
    "norm_type": "rmsnorm",
    "patch_embed_proj_bias": False,
    "patch_size": 14,
    "pos_emb_interpolation_mode": "bilinear",
    "pos_emb_type": "divided_fixed",
    "projector_hidden_act": "gelu",
    "projector_ln_eps": 1e-05,
    "qkv_hidden_size": 1536,
    "text_hidden_size": 7168,
    "video_attn_type": "spatial_temporal",
    "vt_hidden_size": 1024,
    "vt_intermediate_size": 4096,
    "vt_num_attention_heads": 12,
    "vt_num_hidden_layers": 27,
}
KIMI_K3 = {"model_type": "kimi_k3", "vision_config": KIMI_K3_VISION, "text_config": text(7168)}
INTERN_300M = {
    "_name_or_path": "OpenGVLab/InternViT-6B-448px-V1-5",
    "architectures": ["InternVisionModel"],
    "attention_dropout": 0.0,
    "capacity_factor": 1.2,
    "drop_path_rate": 0.1,
    "dropout": 0.0,
    "eval_capacity_factor": 1.4,
    "hidden_act": "gelu",
    "hidden_size": 1024,
    "image_size": 448,
    "initializer_factor": 0.1,
    "initializer_range": 1e-10,
    "intermediate_size": 4096,
    "laux_allreduce": "all_nodes",
    "layer_norm_eps": 1e-06,
    "model_type": "intern_vit_6b",
    "moe_coeff_ratio": 0.5,
    "moe_intermediate_size": 768,
    "moe_output_scale": 4.0,
    "noisy_gate_policy": "RSample_before",
    "norm_type": "layer_norm",
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_experts": 8,
    "num_hidden_layers": 24,
    "num_routed_experts": 4,
    "num_shared_experts": 4,
    "output_attentions": False,
    "patch_size": 14,
    "qk_normalization": False,
    "qkv_bias": True,
    "return_dict": True,
    "shared_expert_intermediate_size": 3072,
    "torch_dtype": "bfloat16",
    "use_bfloat16": True,
    "use_flash_attn": True,
    "use_moe": False,
    "use_residual": True,
    "use_rts": False,
    "use_weighted_residual": False,
}
INTERN_6B = {
    "attention_dropout": 0.0,
    "drop_path_rate": 0.0,
    "hidden_act": "gelu",
    "hidden_size": 3200,
    "image_size": 448,
    "intermediate_size": 12800,
    "model_type": "intern_vit_6b",
    "num_attention_heads": 25,
    "num_channels": 3,
    "num_hidden_layers": 45,
    "patch_size": 14,
    "qk_normalization": True,
    "qkv_bias": False,
    "use_flash_attn": True,
}
CHAT = {"model_type": "internvl_chat", "downsample_ratio": 0.5, "select_layer": -1, "force_image_size": 448}
INTERNLM2 = {
    "model_type": "internlm2",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 92553,
    "bias": False,
}
INTERNVL_8B = {**CHAT, "vision_config": INTERN_300M, "llm_config": INTERNLM2}
NVLM = {
    "model_type": "NVLM_D",
    "architectures": ["NVLM_D_Model"],
    "downsample_ratio": 0.5,
    "select_layer": -1,
    "vision_config": INTERN_6B,
    "llm_config": {
        "model_type": "qwen2",
        "architectures": ["Qwen2ForCausalLM"],
        "hidden_size": 8192,
        "intermediate_size": 29568,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "vocab_size": 152064,
        "tie_word_embeddings": False,
    },
}
INTERNS1_ODD = {
    "model_type": "interns1",
    "text_config": text(4096, model_type="qwen3"),
    "vision_config": {
        "model_type": "interns1_vision",
        "attention_bias": True,
        "hidden_size": 64,
        "image_size": [32, 24],
        "intermediate_size": 96,
        "norm_type": "rms_norm",
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "patch_size": [8, 4],
        "use_mask_token": True,
        "use_mean_pooling": False,
        "use_qk_norm": True,
    },
}
INTERNS1_MINI = {
    "model_type": "interns1",
    "text_config": text(4096, model_type="qwen3"),
    "vision_config": {"model_type": "interns1_vision", "attention_bias": True, "drop_path_rate": 0.1},
}
DOTS = {
    "model_type": "dots_ocr",
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "attention_bias": True,
    "tie_word_embeddings": False,
    "vision_config": {
        "embed_dim": 1536,
        "hidden_size": 1536,
        "intermediate_size": 4224,
        "num_hidden_layers": 42,
        "num_attention_heads": 12,
        "num_channels": 3,
        "patch_size": 14,
        "post_norm": True,
        "rms_norm_eps": 1e-05,
        "spatial_merge_size": 2,
        "temporal_patch_size": 1,
        "use_bias": False,
        "attn_implementation": "flash_attention_2",
        "init_merger_std": 0.02,
        "initializer_range": 0.02,
        "is_causal": False,
    },
}
DOTS_ODD = {
    "embed_dim": 64,
    "hidden_size": 80,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "patch_size": 8,
    "post_norm": False,
    "spatial_merge_size": 3,
    "use_bias": True,
}
VL2 = {
    "model_type": "deepseek_vl_v2",
    "language_config": V2,
    "projector_config": {"model_type": "mlp_projector", "n_embed": 1280},
    "tile_tag": "2D",
    "vision_config": {
        "layers": 27,
        "mlp_ratio": 3.7362,
        "model_name": "siglip_so400m_patch14_384",
        "model_type": "vision",
        "patch_size": 14,
        "width": 1152,
    },
}
SAM = {
    "downsample_channels": [512, 1024],
    "global_attn_indexes": [2, 5, 8, 11],
    "heads": 12,
    "layers": 12,
    "width": 768,
}
CLIP = {"heads": 16, "image_size": 224, "layers": 24, "patch_size": 14, "width": 1024}
OCR_VISION = {"image_size": 1024, "mlp_ratio": 3.7362, "model_name": "deeplip_b_l", "model_type": "vision"}
OCR = {
    "model_type": "deepseek_vl_v2",
    "architectures": ["DeepseekOCRForCausalLM"],
    "language_config": V2,
    "projector_config": {"input_dim": 2048, "model_type": "mlp_projector", "n_embed": 1280, "projector_type": "linear"},
    "tile_tag": "2D",
    "vision_config": {**OCR_VISION, "width": {"clip-l-14-224": CLIP, "sam_vit_b": SAM}},
}
OCR_2 = {
    **OCR,
    "architectures": ["DeepseekOCR2ForCausalLM"],
    "projector_config": {"input_dim": 896, "model_type": "mlp_projector", "n_embed": 1280, "projector_type": "linear"},
    "vision_config": {**OCR_VISION, "width": {"qwen2-0-5b": {"dim": 896}, "sam_vit_b": SAM}},
}
NEMOTRON_H = {
    "model_type": "nemotron_h",
    "hidden_size": 5120,
    "intermediate_size": 20480,
    "hybrid_override_pattern": "M-*",
    "num_hidden_layers": 3,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "mamba_num_heads": 128,
    "mamba_head_dim": 80,
    "ssm_state_size": 128,
    "n_groups": 8,
    "vocab_size": 131072,
}
RADIO = {
    "args": {
        "model": "vit_huge_patch16_224",
        "cpe_max_size": 2048,
        "cls_token_per_teacher": True,
        "register_multiple": 10,
        "cpe_num_registers": None,
        "teachers": [{"name": "clip"}, {"name": "siglip2-g"}, {"name": "dino_v2"}, {"name": "sam"}, {"name": "clip"}],
    },
    "patch_size": 16,
    "version": "radio_v2.5-h",
    "max_resolution": 2048,
    "preferred_resolution": [768, 768],
    "adaptor_names": None,
    "torch_dtype": "bfloat16",
}
NEMOTRON = {
    "model_type": "NemotronH_Nano_VL_V2",
    "architectures": ["NemotronH_Nano_VL_V2"],
    "downsample_ratio": 0.5,
    "vit_hidden_size": 1280,
    "projector_hidden_size": 20480,
    "vision_config": RADIO,
    "llm_config": NEMOTRON_H,
}
SMALL_RADIO = {
    "args": {
        "model": "vit_base_patch16_224",
        "cpe_max_size": 1024,
        "cls_token_per_teacher": True,
        "register_multiple": 8,
        "teachers": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
        "model_norm": True,
    },
    "video_temporal_patch_size": 2,
}
AIMV2 = {
    "hidden_size": 1024,
    "image_size": 448,
    "intermediate_size": 2816,
    "model_type": "aimv2",
    "num_attention_heads": 8,
    "num_channels": 3,
    "num_hidden_layers": 24,
    "patch_size": 14,
    "projection_dropout": 0.0,
    "qkv_bias": False,
    "use_bias": False,
}
TOKENIZER = {"model_type": "aimv2_visual_tokenizer", "backbone_config": AIMV2, "hidden_stride": 2, "vocab_size": 65536}
QWEN_1_5B = {
    "model_type": "qwen2",
    "hidden_size": 1536,
    "intermediate_size": 8960,
    "num_hidden_layers": 28,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
OVIS_2B = {"model_type": "ovis", "hidden_size": 1536, "llm_config": QWEN_1_5B, "visual_tokenizer_config": TOKENIZER}
SIGLIP = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "image_size": 384,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 14,
}
NAVIT = {
    "model_type": "siglip2_navit",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_channels": 3,
    "num_patches": -1,
    "image_size": 512,
    "patch_size": 16,
    "hidden_act": "gelu_pytorch_tanh",
    "layer_norm_eps": 1e-06,
    "attention_dropout": 0.0,
    "hidden_stride": 2,
    "fullatt_block_indexes": None,
    "temporal_patch_size": 1,
    "window_size": 112,
    "preserve_original_pe": True,
    "use_rope": True,
}
OVIS2_5 = {
    "model_type": "ovis2_5",
    "visual_vocab_size": 65536,
    "vit_config": NAVIT,
    "llm_config": {
        "model_type": "qwen3",
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "tie_word_embeddings": True,
    },
}
QWEN_VL = {
    "model_type": "qwen",
    "architectures": ["QWenLMHeadModel"],
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "kv_channels": 128,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "no_bias": True,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
    "visual": {
        "heads": 16,
        "image_size": 448,
        "image_start_id": 151857,
        "layers": 48,
        "mlp_ratio": 4.9231,
        "output_dim": 4096,
        "patch_size": 14,
        "width": 1664,
    },
}
OPENCUA = {
    "model_type": "opencua",
    "text_config": text(3584),
    "vision_config": {
        "depth": 32,
        "fullatt_block_indexes": [7, 15, 23, 31],
        "hidden_act": "silu",
        "hidden_size": 1280,
        "in_channels": 3,
        "intermediate_size": 3420,
        "num_heads": 16,
        "out_hidden_size": 3584,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "tokens_per_second": 2,
        "window_size": 112,
    },
}

SUMS: dict[str, tuple[dict[str, Any], int]] = {
    # moonvit.py, kimi_vl.py
    "kimi_vl": (KIMI_VL, 447_545_840),
    "kimi_vl, small": (
        {
            **KIMI_VL,
            "vision_config": {
                "hidden_size": 64,
                "intermediate_size": 96,
                "num_hidden_layers": 3,
                "patch_size": 8,
                "init_pos_emb_height": 5,
                "init_pos_emb_width": 7,
                "merge_kernel_size": [2, 3],
            },
        },
        1_039_200,
    ),
    # kimi_k25_vit.py
    "kimi_k3": (KIMI_K3, 447_358_976),
    # intern_vit.py, internvl.py, h2ovl.py, skyworkr1v.py
    "internvl_chat, 300M": ({**CHAT, "vision_config": INTERN_300M, "llm_config": text(896)}, 308_495_104),
    "internvl_chat, 6B": ({**CHAT, "vision_config": INTERN_6B, "llm_config": text(6144)}, 5_652_925_824),
    "h2ovl_chat": (
        {**CHAT, "model_type": "h2ovl_chat", "vision_config": INTERN_300M, "llm_config": text(2048)},
        316_607_488,
    ),
    "skywork_chat": (
        {**CHAT, "model_type": "skywork_chat", "vision_config": INTERN_6B, "llm_config": text(5120)},
        5_628_282_240,
    ),
    # nvlm_d.py: 32 heads in place of the 25 that the file states
    "nvlm_d": (NVLM, 6_673_389_696),
    # interns1_vit.py, interns1.py
    "interns1, mini": (INTERNS1_MINI, 337_583_104),
    "interns1, odd": (INTERNS1_ODD, 17_901_504),
    # dots_ocr.py
    "dots_ocr": (DOTS, 1_262_091_264),
    "dots_ocr, odd": ({**DOTS, "vision_config": DOTS_ODD}, 497_424),
    # deepseek_vl2.py, with the tower of timm that it names
    "deepseek_vl_v2": (VL2, 435_767_360),
    "deepseek_vl_v2, deeper": (
        {**VL2, "projector_config": {"n_embed": 1280, "depth": 4, "mlp_ratio": 3, "downsample_ratio": 3}},
        502_460_480,
    ),
    # deepencoder.py, deepencoder2.py
    "deepseek_ocr": ({**OCR, "model_type": "deepseek_ocr"}, 401_372_160),
    "deepseek_ocr, as released": (OCR, 401_372_160),
    "deepseek_ocr_2, as released": (OCR_2, 454_385_280),
    # radio.py, nano_nemotron_vl.py; without the scales of layers, which are in no checkpoint
    "nemotron_nano_vl_v2": (NEMOTRON, 861_365_760),
    "nemotron_nano_vl_v2, odd": (
        {
            **NEMOTRON,
            "vit_hidden_size": 768,
            "projector_hidden_size": 1024,
            "vision_config": SMALL_RADIO,
            "llm_config": {**NEMOTRON_H, "num_nextn_predict_layers": 1},
        },
        98_370_560,
    ),
    # ovis.py, aimv2.py, siglip.py
    "ovis": (OVIS_2B, 679_193_590),
    "ovis, siglip": (
        {
            "model_type": "ovis",
            "llm_config": text(3584),
            "visual_tokenizer_config": {**TOKENIZER, "backbone_config": SIGLIP, "vocab_size": 131072},
        },
        1_502_206_518,
    ),
    # ovis2_5.py, siglip2navit.py
    "ovis2_5": (OVIS2_5, 849_854_696),
    "ovis2_5, stated patches": ({**OVIS2_5, "vit_config": {**NAVIT, "num_patches": 144}}, 848_840_936),
    "ovis2_5, rotary alone": ({**OVIS2_5, "vit_config": {**NAVIT, "preserve_original_pe": False}}, 848_675_048),
    # visual.py of Qwen/Qwen-VL-Chat
    "qwen": (QWEN_VL, 1_935_610_624),
    # opencua.py, qwen2_5_vl.py
    "opencua": (OPENCUA, 676_550_144),
}


@pytest.mark.parametrize(("config", "expected"), SUMS.values(), ids=SUMS)
def test_towers_are_those_of_the_modules(config: dict[str, Any], expected: int) -> None:
    model = read(config)
    assert model.vision_parameters == expected
    assert told(model) == []


def test_every_custom_type_is_tested() -> None:
    assert set(custom.WHOLES) <= set(WHOLES)
    tested = {config["model_type"] for config, _ in SUMS.values()}
    same = {"nvlm_d": "NVLM_D", "nemotron_nano_vl_v2": "NemotronH_Nano_VL_V2"}
    assert {same.get(name, name) for name in custom.WHOLES} <= tested


@pytest.mark.parametrize(
    ("config", "published"),
    [
        # total_size of model.safetensors.index.json, in bytes of bf16: deepseek-ai/DeepSeek-OCR, OpenGVLab/InternVL2-8B
        (OCR, 6_672_212_480 / 2),
        (INTERNVL_8B, 16_150_730_752 / 2),
    ],
    ids=["DeepSeek-OCR", "InternVL2-8B"],
)
def test_checkpoints_hold_text_and_towers(config: dict[str, Any], published: float) -> None:
    model = read(config)
    assert model.vision_parameters is not None
    assert model.parameters + model.vision_parameters == published


@pytest.mark.parametrize(
    ("config", "published", "digit"),
    [
        # total_size of the index of deepseek-ai/DeepSeek-OCR-2, which is 0.015 % more than the shapes of the tensors it names give
        (OCR_2, 6.779249408e9 / 2, 1e6),
        # files of the repositories: AIDC-AI/Ovis2-2B 4.91 GB, AIDC-AI/Ovis2.5-2B 5.16 GB of which the tokenizer takes 0.02,
        # NirajRajai/dots_table, a tuned dots.ocr, in two files of 4.99 and 1.09 GB
        (OVIS_2B, 4.91e9 / 2, 5e6),
        (OVIS2_5, 5.14e9 / 2, 5e6),
        (DOTS, 6.08e9 / 2, 5e6),
        # nvidia/NVLM-D-72B, safetensors: 79.38B
        (NVLM, 79.38e9, 5e6),
    ],
    ids=["DeepSeek-OCR-2", "Ovis2-2B", "Ovis2.5-2B", "dots.ocr", "NVLM-D-72B"],
)
def test_published_sizes_hold_text_and_towers(config: dict[str, Any], published: float, digit: float) -> None:
    model = read(config)
    assert model.vision_parameters is not None
    assert model.parameters + model.vision_parameters == pytest.approx(published, abs=digit)


@pytest.mark.parametrize(
    ("config", "projector", "published", "digit"),
    [
        # model cards: kornia/kimi-vl-a3b-instruct-vision, tower and projector of Kimi-VL, 447,545,840; AI4Industry/MoonViT-V2, the
        # tower of Kimi-K3, "~0.4B"; InternViT-300M-448px 304.01M; InternViT-6B-448px-V1-5 5.54B; and table 1 of the paper on
        # Qwen-VL, arXiv:2308.12966, tower 1.9B and adapter 0.08B. Projectors that are not in a figure are taken off by hand.
        (KIMI_VL, 0, 447_545_840, 0),
        (KIMI_K3, 4096 * 4096 + 4096 * 7168 + 7168, 0.4e9, 5e7),
        (QWEN_VL, 0, 1.98e9, 5.5e7),
        (INTERNVL_8B, 2 * 4096 + 2 * 4097 * 4096, 304.01e6, 5e3),
        (SUMS["internvl_chat, 6B"][0], 2 * 12800 + 12801 * 6144 + 6145 * 6144, 5.54e9, 5e6),
    ],
    ids=["Kimi-VL", "MoonViT-V2", "Qwen-VL", "InternViT-300M", "InternViT-6B"],
)
def test_published_sizes_of_towers(config: dict[str, Any], projector: int, published: float, digit: float) -> None:
    model = read(config)
    assert model.vision_parameters is not None
    assert model.vision_parameters - projector == pytest.approx(published, abs=digit)


def test_a_qwen_without_a_tower_has_none() -> None:
    model = read({key: value for key, value in QWEN_VL.items() if key != "visual"})
    assert (model.vision_parameters, told(model)) == (0, [])


UNCOUNTED: dict[str, tuple[dict[str, Any], str]] = {
    "other projector": (
        {**KIMI_K3, "vision_config": {**KIMI_K3_VISION, "mm_projector_type": "linear"}},
        "mm_projector_type",
    ),
    "projector of another width": (
        {**KIMI_K3, "vision_config": {**KIMI_K3_VISION, "mm_hidden_size": 512}},
        "mm_hidden_size",
    ),
    "other tower": ({**CHAT, "vision_config": {**INTERN_300M, "model_type": "eva"}, "llm_config": text()}, "'eva'"),
    "experts": ({**CHAT, "vision_config": {**INTERN_300M, "use_moe": True}, "llm_config": text()}, "use_moe"),
    "other norm": ({**CHAT, "vision_config": {**INTERN_300M, "norm_type": "group"}, "llm_config": text()}, "norm_type"),
    "three sizes": (
        {**CHAT, "vision_config": {**INTERN_300M, "image_size": [1, 2, 3]}, "llm_config": text()},
        "image_size",
    ),
    "pooled tokens": ({**VL2, "projector_config": {"n_embed": 1280, "token_pooling": True}}, "token_pooling"),
    "other projector of DeepSeek": ({**VL2, "projector_config": {"projector_type": "identity"}}, "projector_type"),
    "tiles in a row": ({**VL2, "tile_tag": "1D"}, "tile_tag"),
    "other encoder": ({**OCR, "vision_config": {"width": {"dino": {"width": 8}}}}, "dino"),
    "other RADIO": ({**NEMOTRON, "vision_config": {"args": {"model": "vit_giant"}}}, "vit_giant"),
    "adaptors": ({**NEMOTRON, "vision_config": {**RADIO, "adaptor_names": ["clip"]}}, "adaptor_names"),
    "sound": ({**NEMOTRON, "sound_config": {"model_type": "parakeet"}}, "sound_config"),
    "other backbone": (
        {**OVIS_2B, "visual_tokenizer_config": {**TOKENIZER, "backbone_config": {"model_type": "eva"}}},
        "backbone_config",
    ),
}


@pytest.mark.parametrize(("config", "named"), UNCOUNTED.values(), ids=UNCOUNTED)
def test_what_cannot_be_counted_is_null_and_told(config: dict[str, Any], named: str) -> None:
    model = read(config)
    assert model.vision_parameters is None
    assert any(named in note and "not counted" in note for note in model.notes)


DUMPED = {
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "diversity_penalty": 0.0,
    "do_sample": False,
    "early_stopping": False,
    "encoder_no_repeat_ngram_size": 0,
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    "is_decoder": False,
    "is_encoder_decoder": False,
    "label2id": {"LABEL_0": 0, "LABEL_1": 1},
    "length_penalty": 1.0,
    "max_length": 20,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "num_beam_groups": 1,
    "num_beams": 1,
    "num_return_sequences": 1,
    "output_attentions": False,
    "output_hidden_states": False,
    "output_scores": False,
    "pruned_heads": {},
    "remove_invalid_values": False,
    "repetition_penalty": 1.0,
    "return_dict": True,
    "return_dict_in_generate": False,
    "temperature": 1.0,
    "tf_legacy_loss": False,
    "tie_encoder_decoder": False,
    "tie_word_embeddings": True,
    "top_k": 50,
    "top_p": 1.0,
    "torch_dtype": "bfloat16",
    "torchscript": False,
    "transformers_version": "4.37.2",
    "typical_p": 1.0,
    "use_bfloat16": True,
}
"""What older versions of the library write into every nested part of a file."""


@pytest.mark.parametrize(
    "name", ["internvl_chat, 300M", "skywork_chat", "nvlm_d", "ovis", "nemotron_nano_vl_v2", "opencua"]
)
def test_what_the_library_writes_into_every_part_changes_nothing(name: str) -> None:
    config, expected = SUMS[name]
    part = next(field for field in ("vision_config", "visual_tokenizer_config") if field in config)
    tower = {**config[part], **DUMPED}
    if "backbone_config" in tower:
        tower["backbone_config"] = {**tower["backbone_config"], **DUMPED}
    model = read({**config, part: tower})
    assert model.vision_parameters == expected
    assert told(model) == []


TEXTS = ("text_config", "llm_config", "language_config")


def leaves(config: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every field beside the text model."""
    for name, value in config.items():
        if name not in TEXTS:
            yield (*above, name)
            if isinstance(value, dict):
                yield from leaves(value, (*above, name))


def damaged(config: dict[str, Any], path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Return a config with another value in the place of one."""
    inner = value if len(path) == 1 else damaged(config[path[0]], path[1:], value)
    return {**config, path[0]: inner}


@pytest.mark.parametrize("value", [None, -1, 5e-324, 10**40, "x", [[]], {"name": []}], ids=str)
@pytest.mark.parametrize("config", [config for config, _ in SUMS.values()], ids=SUMS)
def test_damage_is_a_count_a_null_or_an_error_in_words(config: dict[str, Any], value: object) -> None:
    for path in leaves(config):
        try:
            count = read(damaged(config, path, value)).vision_parameters
        except PlannerError:
            continue
        assert count is None or count >= 0


def test_a_field_that_no_class_has_is_told() -> None:
    model = read({**KIMI_VL, "vision_config": {**MOONVIT, "extra_layers": 3}})
    assert any("vision_config.extra_layers" in note for note in model.notes)
