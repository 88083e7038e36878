"""How a serving engine shares out a chip's memory: rules that are data, because engines and their versions differ."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.sourced import Description, Flag, Setting, Size


class Engine(Description):
    """Memory rules of a serving engine."""

    name: Annotated[str, Field(min_length=1)]
    memory_fraction: Setting
    """Share of the memory that it uses; the rest stays free."""
    fraction_of: Literal["total", "free"]
    """Of all memory, or of what is free beside weights and buffers."""
    page_tokens: Setting
    """Tokens of a page of the KV cache."""
    batched_tokens: Setting
    """Tokens of a step at most: prompts are cut into chunks of this size."""
    runtime: Size
    """What the driver and libraries take of a chip's memory."""
    default: Flag = False
    """Whose rules hold where no engine is named; one of the catalogue's engines says so."""
