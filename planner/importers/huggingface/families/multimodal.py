"""Models of several towers: the text part of the file is read by its own architecture, the towers are not."""

from __future__ import annotations

from planner.importers.huggingface.families.family import Family, Tie

TEXT_TYPES = {
    # type of the whole: type of its text part where the part does not say it
    "apertus1p5": "apertus1p5_text",
    "aria": "aria_text",
    "audioflamingo3": "qwen2",
    "aya_vision": "cohere2",
    "blip-2": "opt",
    "cohere2_vision": "cohere2",
    "inkling2": "inkling2_text",
    "inkling2_loop": "inkling2_loop_text",
    "inkling_mm_model": "inkling_text",
    "qwen4_exp": "qwen4_exp_text",
    "dots3_note": "dots3_note_text",
    "glm5_next": "glm5_next_text",
    "mistral_large4": "mistral_large4_text",
    "cohere_compass": "cohere_compass_text",
    "cosmos3_edge": "cosmos3_edge_text",
    "cosmos3_omni": "qwen3_vl_text",
    "deepseek_ocr": "deepseek_v2",
    "deepseek_ocr2": "deepseek_ocr2_text",
    "deepseek_vl": "llama",
    "deepseek_vl_hybrid": "llama",
    "deepseek_vl_v2": "deepseek_v2",
    "dots_ocr": "qwen2",
    "ernie4_5_vl_moe": "ernie4_5_vl_moe_text",
    "exaone4_5": "exaone4",
    "fast_vlm": "qwen2",
    "fun_asr_nano": "qwen3",
    "fuyu": "persimmon",
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text",
    "glm46v": "glm4v_text",
    "glm4v": "glm4v_text",
    "glm4v_moe": "glm4v_moe_text",
    "glm_ocr": "glm_ocr_text",
    "glmasr": "llama",
    "glmga": "glm4v_text",
    "florence2": "bart",
    "got_ocr2": "qwen2",
    "h2ovl_chat": "mistral",
    "hunyuan_vl": "hunyuan_vl_text",
    "NVLM_D": "qwen2",
    "NemotronH_Nano_VL_V2": "nemotron_h",
    "nvlm_d": "qwen2",
    "skywork_chat": "qwen2",
    "opencua": "qwen2",
    "interns1": "qwen3",
    "ovis": "qwen2",
    "ovis2_5": "qwen3",
    "nemotron_nano_vl_v2": "nemotron_h",
    "emu3": "llama",
    "granite_docling": "granite_docling_text",
    "granite_speech": "granite",
    "granite_speech_plus": "granite",
    "granite4_vision": "granite",
    "hyperclovax_vision_v2": "hyperclovax",
    "idefics2": "mistral",
    "idefics3": "llama",
    "instructblip": "opt",
    "instructblipvideo": "opt",
    "internvl": "qwen2",
    "internvl_chat": "qwen2",
    "janus": "llama",
    "kimi_k25": "deepseek_v3",
    "kimi_k3": "kimi_linear",
    "kimi_vl": "deepseek_v3",
    "lfm2_vl": "lfm2",
    "lfm3_vl": "lfm3",
    "lighton_ocr": "qwen3",
    "llama4": "llama4_text",
    "llava": "llama",
    "llava_next": "llama",
    "llava_next_video": "llama",
    "llava_onevision": "qwen2",
    "minicpm_ocr": "qwen3_5_text",
    "minicpmv4_6": "qwen3_5_text",
    "minicpmv4_7": "qwen3_5_text",
    "minimax_m3_vl": "minimax_m3_vl_text",
    "mistral3": "mistral",
    "mllama": "mllama_text_model",
    "molmo2": "molmo2_text",
    "moss_transcribe_diarize": "qwen3",
    "muse_glimmer": "muse_glimmer_text",
    "muse_spark": "muse_spark_text",
    "musicflamingo": "qwen2",
    "nemo_speechlm": "nemotron_h",
    "nemotron_h_omni": "nemotron_h",
    "omniasr": "llama",
    "ovis2": "qwen2",
    "paddleocr_vl": "paddleocr_vl_text",
    "paligemma": "gemma",
    "perception_lm": "llama",
    "pp_chart2table": "qwen2",
    "qianfan_ocr": "qwen3",
    "qwen2_5_omni": "qwen2_5_omni_text",
    "qwen2_5_omni_thinker": "qwen2_5_omni_text",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen2_audio": "qwen2",
    "qwen2_vl": "qwen2_vl_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "qwen3_asr": "qwen3",
    "qwen3_omni_moe": "qwen3_omni_moe_text",
    "qwen3_omni_moe_thinker": "qwen3_omni_moe_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "shieldgemma2": "gemma3_text",
    "smolvlm": "llama",
    "step3p7": "step3p5",
    "unlimited_ocr": "unlimited_ocr_text",
    "vibevoice": "qwen2",
    "vibevoice_asr": "qwen2",
    "video_llama_3": "qwen2",
    "video_llava": "llama",
    "vipllava": "llama",
    "voxtral": "llama",
    "voxtral_realtime": "voxtral_realtime_text",
    "hy_v4_vl": "hy_v4_vl_text",
}

TIED_BY_TEXT = frozenset(
    {
        "NVLM_D",
        "NemotronH_Nano_VL_V2",
        "blip-2",
        "deepseek_vl_v2",
        "h2ovl_chat",
        "instructblip",
        "instructblipvideo",
        "internvl_chat",
        "kimi_vl",
        "llama4",
        "nemotron_nano_vl_v2",
        "nvlm_d",
        "opencua",
        "ovis2_5",
        "skywork_chat",
        "vibevoice",
    }
)
"""Types whose text part alone says whether the embeddings are tied."""

TIED_BY_EITHER = frozenset(
    {
        "fast_vlm",
        "glm_ocr",
        "hunyuan_vl",
        "llava",
        "llava_next_video",
        "llava_onevision",
        "paddleocr_vl",
        "video_llama_3",
        "qwen2_vl",
        "qwen2_5_vl",
        "glm4v",
        "glm4v_moe",
        "minimax_m3_vl",
        "shieldgemma2",
    }
)
"""Types whose embeddings are tied if the whole or the text part says so."""

TIED_BY_FIRST = frozenset({"perception_lm"})
"""Types whose text part says whether the embeddings are tied where the whole does not."""

NEVER_TIED = frozenset(
    {
        "audioflamingo3",
        "cosmos3_edge",
        "molmo2",
        "mllama",
        "musicflamingo",
        "omniasr",
        "qwen2_audio",
        "vibevoice_asr",
        "voxtral",
    }
)
"""Types whose LM head is a matrix of its own, whatever the file says."""


_TIES: dict[Tie, frozenset[str]] = {
    "never": NEVER_TIED,
    "text": TIED_BY_TEXT,
    "either": TIED_BY_EITHER,
    "first": TIED_BY_FIRST,
}


def _tie(name: str) -> Tie:
    return next((tie for tie, names in _TIES.items() if name in names), "top")


FAMILIES: dict[str, Family] = {name: Family(text=text, tie=_tie(name)) for name, text in TEXT_TYPES.items()}
