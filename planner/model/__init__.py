"""Descriptions of transformers: a stack of groups of layers, each with its attention and its feed-forward network.

A description is frozen, holds Hugging Face field names, and knows its weight tensors and what it caches. It computes no times
and knows no chip.
"""

from planner.model.attention import (
    AttentionBlock,
    Cache,
    LatentAttention,
    SoftmaxAttention,
)
from planner.model.feedforward import FeedForward, FeedForwardBlock, MixtureOfExperts
from planner.model.stack import LayerGroup, LayerKind, Model, Norm, Quantization
from planner.model.tensor import Tensor, Vector

__all__ = [
    "AttentionBlock",
    "Cache",
    "FeedForward",
    "FeedForwardBlock",
    "LatentAttention",
    "LayerGroup",
    "LayerKind",
    "MixtureOfExperts",
    "Model",
    "Norm",
    "Quantization",
    "SoftmaxAttention",
    "Tensor",
    "Vector",
]
