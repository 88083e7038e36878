"""Descriptions of transformers: a stack of groups of layers, each with its attention and its feed-forward network.

A description is frozen, holds Hugging Face field names, and knows its weight tensors and what it caches. It computes no times
and knows no chip.
"""

from planner.model.attention import (
    AttentionBlock,
    Cache,
    CompressedAttention,
    CrossAttention,
    DeltaAttention,
    GatedMemory,
    GatedRecurrence,
    Indexer,
    LatentAttention,
    LightningAttention,
    Mamba,
    Mamba2,
    MatrixLstm,
    NgramMemory,
    PatchAttention,
    RecurrentBlock,
    Rwkv,
    Rwkv7,
    RwkvMatrix,
    ShortConvolution,
    SoftmaxAttention,
)
from planner.model.checkpoint import Checkpoint, ClassBytes
from planner.model.feedforward import FeedForward, FeedForwardBlock, MixtureOfExperts
from planner.model.quantization import Quantization, Stored, StoredPart
from planner.model.stack import (
    Encoder,
    LayerGroup,
    LayerKind,
    Model,
    MultiTokenPrediction,
    Norm,
    Table,
)
from planner.model.tensor import Projection, Tensor, Vector

__all__ = [
    "AttentionBlock",
    "Cache",
    "Checkpoint",
    "ClassBytes",
    "CompressedAttention",
    "CrossAttention",
    "DeltaAttention",
    "Encoder",
    "FeedForward",
    "FeedForwardBlock",
    "GatedMemory",
    "GatedRecurrence",
    "Indexer",
    "LatentAttention",
    "LayerGroup",
    "LayerKind",
    "LightningAttention",
    "Mamba",
    "Mamba2",
    "MatrixLstm",
    "MixtureOfExperts",
    "Model",
    "MultiTokenPrediction",
    "NgramMemory",
    "Norm",
    "PatchAttention",
    "Projection",
    "Quantization",
    "RecurrentBlock",
    "Rwkv",
    "Rwkv7",
    "RwkvMatrix",
    "ShortConvolution",
    "SoftmaxAttention",
    "Stored",
    "StoredPart",
    "Table",
    "Tensor",
    "Vector",
]
