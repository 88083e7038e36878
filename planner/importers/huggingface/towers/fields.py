"""Reads fields that towers of several kinds share: sizes of both dimensions, kinds of norms."""

from __future__ import annotations

from collections.abc import Mapping

from planner.importers.huggingface.config import STAND_IN, Config
from planner.importers.huggingface.towers.counts import norm
from planner.units import LARGEST_COUNT

TWO = 2

NORM_BIAS: Mapping[str, bool] = {"layer_norm": True, "layernorm": True, "rms_norm": False, "rmsnorm": False}
"""Whether a kind of norm has an offset beside its weight."""


def pair(config: Config, field: str) -> tuple[int, int]:
    """Return both dimensions of a size that is one number, or a list of two."""
    if not isinstance(config.get(field), list):
        size = config.integer(field)
        return size, size
    sizes = config.integers(field, least=1) or ()
    if len(sizes) != TWO:
        config.fault(field, f"has {len(sizes)} items, one size or two are expected")
        return STAND_IN, STAND_IN
    return sizes[0], sizes[1]


def area(config: Config, field: str) -> int:
    """Return the product of both dimensions of a size."""
    height, width = pair(config, field)
    return height * width


def grid(config: Config) -> int:
    """Return the patches of a picture that a tower takes, from `image_size` and `patch_size`."""
    (height, width), (down, across) = pair(config, "image_size"), pair(config, "patch_size")
    return (height // down) * (width // across)


def stated_norm(config: Config, width: int) -> int:
    """Return the parameters of a norm of the kind that `norm_type` names."""
    kind = config.text("norm_type", "layer_norm")
    if kind not in NORM_BIAS:
        config.fault("norm_type", f"{kind[:40]!r} is not a kind of norm that is known: {', '.join(NORM_BIAS)}")
    return norm(width, bias=NORM_BIAS.get(kind, False))


def shrinking(config: Config) -> float:
    """Return how many patches of a row, and of a column, are joined into one."""
    return min(1 / config.real("downsample_ratio", 0.5), LARGEST_COUNT)
