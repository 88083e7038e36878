"""The table of architectures: for each ``model_type``, how its layers are read and what its configuration class supplies.

Facts are those of the model classes of the transformers library, 5.24.0; of the model's own code where the library has no class.
"""

from planner.importers.huggingface.families import (
    byte_latent,
    bert,
    convolved,
    custom,
    deepseek,
    encoder_decoder,
    gemma,
    gemma_encoder_decoder,
    glm,
    gpt_like,
    hybrid,
    latent_kinds,
    llama_like,
    looped,
    mixed,
    moe,
    moe_layered,
    multimodal,
    older,
    pictures,
    qwen,
    qwen4,
    recent,
    recurrent,
    rwkv,
    samba,
    served,
    speech,
)
from planner.importers.huggingface.families.family import Family

FAMILIES: dict[str, Family] = {
    **llama_like.FAMILIES,
    **qwen.FAMILIES,
    **gpt_like.FAMILIES,
    **gemma.FAMILIES,
    **glm.FAMILIES,
    **deepseek.FAMILIES,
    **moe.FAMILIES,
    **moe_layered.FAMILIES,
    **hybrid.FAMILIES,
    **mixed.FAMILIES,
    **recurrent.FAMILIES,
    **rwkv.FAMILIES,
    **byte_latent.FAMILIES,
    **samba.FAMILIES,
    **encoder_decoder.FAMILIES,
    **recent.FAMILIES,
    **custom.FAMILIES,
    **gemma_encoder_decoder.FAMILIES,
    **looped.FAMILIES,
    **older.FAMILIES,
    **latent_kinds.FAMILIES,
    **convolved.FAMILIES,
    **qwen4.FAMILIES,
    **served.FAMILIES,
    **bert.FAMILIES,
    **speech.FAMILIES,
    **pictures.FAMILIES,
    **multimodal.FAMILIES,
}

__all__ = ["FAMILIES", "Family"]
