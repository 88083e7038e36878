"""Elementwise arithmetic on numbers and arrays alike, where what is not known is one thing: nan.

A formula is written once and works on a plain number, which stays a Python number (counts stay exact), or on arrays that broadcast. A
figure that is not published enters as `UNKNOWN` and passes through every sum and quotient; it leaves as null: see `known`.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:  # see is_array
    import numpy as np
    from numpy.typing import NDArray

Numeric: TypeAlias = "int | float | NDArray[np.float64]"
"""A number, or an array that broadcasts against the others of the same computation."""


def is_array(*values: object) -> bool:
    """Whether any of the values is a NumPy array.

    A command about a single point never needs NumPy, and importing it takes as long as everything else that the command does. So
    it is imported where there are arrays, and where it was not imported, nothing is one.

    >>> is_array(1, 2.5)
    False
    """
    numpy = sys.modules.get("numpy")
    return numpy is not None and any(isinstance(value, numpy.ndarray) for value in values)


def anywhere(condition: Any) -> bool:
    """Whether a condition, or a number's being other than 0, holds for any element."""
    return bool(condition.any() if is_array(condition) else condition)


def everywhere(condition: Any) -> bool:
    """Whether a condition holds for all elements."""
    return bool(condition.all() if is_array(condition) else condition)


def is_finite(value: Any) -> bool:
    """Whether all elements are finite numbers."""
    if is_array(value):
        import numpy as np

        return bool(np.isfinite(value).all())
    return math.isfinite(value)


def summed(value: Any) -> float:
    """Return the sum over all elements."""
    return float(value.sum() if is_array(value) else value)


def largest_of(value: Any) -> float:
    """Return the largest element."""
    return float(value.max() if is_array(value) else value)


def minimum(a: Numeric, b: Numeric) -> Numeric:
    """Return the elementwise minimum; plain numbers stay Python numbers, so that counts stay exact."""
    if is_array(a, b):
        import numpy as np

        return np.minimum(a, b)
    return min(a, b)


def maximum(a: Numeric, b: Numeric) -> Numeric:
    """Return the elementwise maximum; plain numbers stay Python numbers."""
    if is_array(a, b):
        import numpy as np

        return np.maximum(a, b)
    return max(a, b)
