"""Importers: one package or module for each source that a model can be read from."""
