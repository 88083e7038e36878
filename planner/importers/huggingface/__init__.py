"""Reads a Hugging Face ``config.json`` into a model, by a table of architectures."""

from planner.importers.huggingface.quantization import find_block
from planner.importers.huggingface.quantization.unstated import EXPORTER_NAME, name_notes
from planner.importers.huggingface.reader import read_config

__all__ = ["EXPORTER_NAME", "find_block", "name_notes", "read_config"]
