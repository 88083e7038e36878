"""Reads a GGUF file into a model, from its header alone."""

from planner.importers.gguf.reader import first_part, read_gguf

__all__ = ["first_part", "read_gguf"]
