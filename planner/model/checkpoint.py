"""What a checkpoint's files take, for models of which they were at hand."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.sourced import Description


class ClassBytes(Description):
    """What one class of tensors takes in the files of a checkpoint."""

    of: Annotated[str, Field(min_length=1)]
    """A tensor class, `mtp`, `vision`, or `other`."""
    bytes: Annotated[int, Field(strict=True, ge=0)]
    """Bytes [B]."""


class Checkpoint(Description):
    """What the files of a checkpoint take, read from them."""

    bytes: Annotated[int, Field(strict=True, ge=0)]
    """All tensors together [B]."""
    by_class: tuple[ClassBytes, ...] = ()
    """The same by tensor class [B], where the files say it."""
    source: str = ""
    """Where this was read."""
