"""Named axes: what a dimension of an operation means, so that it can be sharded by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.numeric import Numeric


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

Divide = Callable[[Axis], Axis]
"""Turns an axis into the piece of it that one chip holds."""


def portion(value: Numeric, part: Numeric, whole: Numeric) -> Numeric:
    """Return `value` times `part` over `whole`; a whole number stays one where it divides, and nothing changes where nothing is cut.

    >>> portion(6, 2, 3), portion(7, 1, 2)
    (4, 3.5)
    """
    if isinstance(value, int) and isinstance(part, int) and isinstance(whole, int):
        scaled = value * part
        return scaled // whole if scaled % whole == 0 else scaled / whole
    return value * (part / whole)
