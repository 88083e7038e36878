"""Reads a Hugging Face ``config.json`` into a model, by a table of architectures."""

from planner.importers.huggingface.quantization import find_block
from planner.importers.huggingface.reader import read_config

__all__ = ["find_block", "read_config"]
