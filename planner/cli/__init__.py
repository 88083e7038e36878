"""The command line: each command parses, calls one library function, and prints. Nothing is computed here."""

from planner.cli.main import main

__all__ = ["main"]
