"""The same small model as a Hugging Face config and as GGUF metadata and tensors, for many architectures.

Metadata fields and tensor names are those that llama.cpp's converter writes for such a config (ggml-org/llama.cpp: conversion/,
gguf-py/gguf/constants.py). Shapes of tensors are given output before input, and were worked out from the model classes by hand.
"""

from gguf_cases.gpt2 import GPT2
from gguf_cases.latent import LATENT
from gguf_cases.layered import LAYERED
from gguf_cases.linear import LINEAR
from gguf_cases.llama import LLAMA
from gguf_cases.mixed import MIXED
from gguf_cases.others import OTHERS
from gguf_cases.pairs import ALIKE, T5
from gguf_cases.shapes import Case
from gguf_cases.shifted import SHIFTED
from gguf_cases.sparse import SPARSE
from gguf_cases.states import STATES

CASES = (*LLAMA, *OTHERS, *GPT2, *SPARSE, *MIXED, *LATENT, *STATES, *LINEAR, *SHIFTED, *LAYERED, *T5, *ALIKE)

__all__ = ["CASES", "Case"]
