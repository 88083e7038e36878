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
            "qwen3_asr_encoder",
            "qwen3_omni_moe_audio_encoder",
            "voxtral_encoder",
            "voxtral_realtime_encoder",
        ),
        _SPEECH,
    ),
    "dots3_note_vision_encoder": {"hidden_size": "embed_dim", "attention_bias": "use_bias"},
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
    "step3p5_vision": {"hidden_size": "width", "num_hidden_layers": "layers"},
}
"""By the type of a part: the other name of each field that has one."""
