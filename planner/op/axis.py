"""Named axes: what a dimension of an operation means, so that it can be sharded by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension made of units that stay whole when it is sharded.

    Attributes
    ----------
    name : str
        What the axis counts: ``hidden``, ``query_heads``, ``kv_heads``, ``ffn``, ``vocab`` ...
    size : int
        Number of units.
    each : int
        Elements in one unit, for example the head dimension.
    """

    name: str
    size: int
    each: int = 1

    @property
    def elements(self) -> int:
        """Elements along the axis.

        >>> Axis("query_heads", 32, 128).elements
        4096
        """
        return self.size * self.each


SINGLE = Axis("single", 1)
"""The axis of what there is one of."""
