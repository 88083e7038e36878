"""A model and a step become a sequence of operations, by a registry of attention and feed-forward kinds. Nothing here knows a chip.

Projections of one input are fused as engines fuse them: queries, keys and values; gate and up. A norm that begins a block is
fused with the residual add before it.
"""

from planner.decompose import attention, feedforward, latent, recurrent  # noqa: F401 - they register their kinds
from planner.decompose.lowering import Lowering, decompose

__all__ = ["Lowering", "decompose"]
