"""Names that files of a kind use for a field beside the usual one: those of the kind's first release, and of its own class."""

from __future__ import annotations

from collections.abc import Mapping

_SPEECH = {"num_hidden_layers": "encoder_layers", "intermediate_size": "encoder_ffn_dim"}

FIELD_NAMES: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "audioflamingo3_encoder",
            "moss_transcribe_diarize_audio",
            "qwen2_audio_encoder",
            "qwen2_5_omni_audio_encoder",
            "qwen3_asr_audio_encoder",
            "qwen3_asr_encoder",
            "qwen3_omni_moe_audio_encoder",
            "voxtral_encoder",
            "voxtral_realtime_encoder",
        ),
        _SPEECH,
    ),
    "dots3_note_audio_encoder": {
        "adapter_input_size": "whisper_adapter_in_dim",
        "adapter_out_dim": "whisper_adapter_out_dim",
    },
    "dots3_note_vision_encoder": {"attention_bias": "use_bias"},
    "inkling2_vision": {"patch_size": "native_patch_size", "spatial_merge_size": "adapter_merge_size"},
    "inkling_vision": {"num_channels": "n_channels"},
    "inkling_audio": {"n_mel_bins": "num_codebooks", "mel_vocab_size": "codebook_size"},
    "kimi_k25_vision": {
        "hidden_size": "vt_hidden_size",
        "intermediate_size": "vt_intermediate_size",
        "num_hidden_layers": "vt_num_hidden_layers",
        "pos_emb_height": "init_pos_emb_height",
        "pos_emb_width": "init_pos_emb_width",
    },
    "nemotron_h_omni": {
        "audio_config": "sound_config",
        "text_config": "llm_config",
        "vision_hidden_size": "vit_hidden_size",
    },
    "qwen2_5_omni_dit": {"hidden_size": "dim", "num_attention_heads": "heads", "num_hidden_layers": "depth"},
    "step3p5_vision": {"hidden_size": "width", "num_hidden_layers": "layers"},
}
"""By the type of a part: the other name of each field that has one."""

UNUSED: Mapping[str, frozenset[str]] = {
    "audioflamingo3_encoder": frozenset({"avg_pool_kernel_size", "avg_pool_stride"}),
    "dots3_note_audio_encoder": frozenset(
        {
            "audio_comp_end",
            "audio_comp_span",
            "audio_comp_start",
            "chunk_seconds",
            "conv_bucket_max_elements",
            "conv_bucket_step",
            "conv_chunksize",
            "encoder_type",
            "merge_factor",
            "n_fft",
            "use_causal",
            "use_conv2d_stem",
            "use_rms_norm",
            "use_rope",
        }
    ),
    "dots3_note_vision_encoder": frozenset(
        {
            "adapter_type",
            "capacity_factor",
            "is_causal",
            "post_norm",
            "pre_pixel_shuffle",
            "router_scale",
            "router_scoring_func",
            "temporal_patch_size",
            "use_qk_norm",
        }
    ),
    "inkling_audio": frozenset(
        {"audio_mode", "bias", "decoder_dmodel", "dmel_max_value", "dmel_min_value", "use_audio_norm"}
    ),
    "inkling_vision": frozenset({"decoder_dmodel", "use_vision_norm", "vision_encoder_type"}),
    "kimi_k25_vision": frozenset(
        {
            "init_pos_emb_time",
            "merge_type",
            "mm_hidden_size",
            "pos_emb_type",
            "projector_ln_eps",
            "text_hidden_size",
            "video_attn_type",
            "vt_num_attention_heads",
        }
    ),
    "minimax_m3_vl_vision": frozenset(
        {"position_embedding_type", "projection_dim", "rope_mode", "vision_segment_max_frames"}
    ),
    "nemotron_h_omni.audio_config": frozenset({"sampling_rate"}),
    "paddleocr_vl_vision": frozenset({"temporal_patch_size", "tokens_per_second"}),
    "qwen2_5_omni_bigvgan": frozenset({"use_bias_at_final"}),
    "qwen2_5_omni_dit": frozenset({"enc_global_context", "enc_lin_neurons"}),
    "qwen2_5_omni_thinker": frozenset({"seconds_per_chunk"}),
    "qwen2_5_omni_vision_encoder": frozenset({"embed_dim", "tokens_per_second"}),
    "qwen3_omni_moe.code2wav_config": frozenset(
        {
            "codebook_dim",
            "num_semantic_quantizers",
            "semantic_codebook_size",
            "vector_quantization_hidden_dimension",
        }
    ),
    "qwen3_omni_moe.talker_config": frozenset({"seconds_per_chunk", "spatial_merge_size"}),
    "qwen3_omni_moe_talker_code_predictor": frozenset({"use_sliding_window"}),
    "qwen3_omni_moe_talker_text": frozenset({"use_sliding_window"}),
    "qwen3_omni_moe_thinker": frozenset({"seconds_per_chunk"}),
    "qwen3_omni_moe_vision_encoder": frozenset({"apply_vit_abs_pos_embed", "image_size", "tokens_per_second"}),
    "step3p5_vision": frozenset(
        {
            "heads",
            "ls_init_value",
            "output_dim",
            "use_abs_posemb",
            "use_cls_token",
            "use_ln_post",
            "use_ln_pre",
            "use_rope2d",
        }
    ),
    "voxtral_encoder": frozenset({"head_dim", "num_key_value_heads"}),
}
"""By the type of a part: fields that files state though its class has none of the name, and that change no shape."""
