"""Kinds of attention, and of what stands in its place: their fields, weights, and what they keep for each token or sequence."""

from typing import Annotated

from pydantic import Field

from planner.model.attention.base import STATE_BYTES, AttentionBlock, Cache, Indexer
from planner.model.attention.gated_memory import GatedMemory
from planner.model.attention.latent import CompressedAttention, LatentAttention
from planner.model.attention.ngrams import NgramMemory
from planner.model.attention.patches import PatchAttention
from planner.model.attention.recurrent import (
    DeltaAttention,
    GatedRecurrence,
    LightningAttention,
    Mamba,
    Mamba2,
    MatrixLstm,
    RecurrentBlock,
    ShortConvolution,
)
from planner.model.attention.rwkv import Rwkv, Rwkv7, RwkvMatrix
from planner.model.attention.softmax import CrossAttention, SoftmaxAttention

AnyAttention = Annotated[
    SoftmaxAttention
    | LatentAttention
    | CompressedAttention
    | CrossAttention
    | PatchAttention
    | LightningAttention
    | DeltaAttention
    | Mamba
    | Mamba2
    | ShortConvolution
    | GatedMemory
    | NgramMemory
    | GatedRecurrence
    | MatrixLstm
    | Rwkv
    | RwkvMatrix
    | Rwkv7,
    Field(discriminator="kind"),
]

__all__ = [
    "STATE_BYTES",
    "AnyAttention",
    "AttentionBlock",
    "Cache",
    "CompressedAttention",
    "CrossAttention",
    "DeltaAttention",
    "GatedMemory",
    "GatedRecurrence",
    "Indexer",
    "LatentAttention",
    "LightningAttention",
    "Mamba",
    "Mamba2",
    "MatrixLstm",
    "NgramMemory",
    "PatchAttention",
    "RecurrentBlock",
    "Rwkv",
    "Rwkv7",
    "RwkvMatrix",
    "ShortConvolution",
    "SoftmaxAttention",
]
