"""Readers of the parts of a layer: each takes a config and a layer's index, and returns a block."""
