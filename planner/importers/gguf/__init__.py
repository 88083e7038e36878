"""Reads a GGUF file into a model, from its header alone."""

from planner.importers.gguf.reader import read_gguf

__all__ = ["read_gguf"]
