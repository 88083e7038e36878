"""Operations of a forward step: what each one computes and moves, before any chip is chosen.

An operation knows its named axes and its number formats, and from them its FLOPs and its bytes by kind. It knows no model, no
chip and no parallelism. One class stands for each physical operation.

A multiply-add counts as two FLOPs. Left out, as small beside what is counted: rotary embedding (fused into attention), softmax and
the arithmetic of norms and activation functions (their memory traffic is counted), sampling, and copies that an engine makes for
its own housekeeping.
"""

from planner.op.attention import Attention
from planner.op.axis import SINGLE, Axis, Divide, portion
from planner.op.base import Kind, Op
from planner.op.collective import Collective, Group, Operation
from planner.op.elementwise import Elementwise, Lookup, WeightedSum
from planner.op.indexer import Index, IndexMatmul
from planner.op.matmul import Matmul
from planner.op.recurrence import Convolution, Recurrence, ScanMatmul
from planner.op.span import ChunkedSpan, FullSpan, SelectedSpan, SlidingSpan, Span

__all__ = [
    "SINGLE",
    "Attention",
    "Axis",
    "ChunkedSpan",
    "Collective",
    "Convolution",
    "Divide",
    "Elementwise",
    "FullSpan",
    "Group",
    "Index",
    "IndexMatmul",
    "Kind",
    "Lookup",
    "Matmul",
    "Op",
    "Operation",
    "Recurrence",
    "ScanMatmul",
    "SelectedSpan",
    "SlidingSpan",
    "Span",
    "WeightedSum",
    "portion",
]
