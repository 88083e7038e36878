"""Lowering of kinds with a constant state: projections, a short convolution, and the recurrence."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from planner.decompose.lowering import Lowering, lowers, tensors_by_name
from planner.model import (
    DeltaAttention,
    GatedMemory,
    GatedRecurrence,
    LightningAttention,
    Mamba,
    Mamba2,
    MatrixLstm,
    NgramMemory,
    RecurrentBlock,
    Rwkv,
    Rwkv7,
    RwkvMatrix,
    ShortConvolution,
)
from planner.op import Convolution, Matmul, Op, Recurrence, ScanMatmul
from planner.units import FORMATS

STATE_FORMAT = FORMATS["bf16"]
"""State is kept in 16 bits, whatever the KV cache is kept in."""

ELEMENT_FLOPS: dict[type[RecurrentBlock], int] = {
    LightningAttention: 5,
    DeltaAttention: 7,
    Mamba: 7,
    Mamba2: 5,
    ShortConvolution: 0,
    GatedRecurrence: 5,
    MatrixLstm: 5,
    Rwkv: 5,
    Rwkv7: 7,
    RwkvMatrix: 5,
}
"""FLOPs of one token for each element of the state; see `planner.op.recurrence.Recurrence`."""


DECAY_FLOPS = 2
"""Of them, those that form the decay of every element of Mamba's state; channels that share a time step share the decay."""


def element_flops(block: RecurrentBlock) -> int:
    """Return the FLOPs of one token for each element of a block's state."""
    is_shared = isinstance(block, Mamba) and block.time_steps is not None
    return ELEMENT_FLOPS[type(block)] - (DECAY_FLOPS if is_shared else 0)


@lowers(*ELEMENT_FLOPS)
def recurrent(block: RecurrentBlock, lowering: Lowering) -> Iterator[Op]:
    """Project in, convolve, update the state and read it, project back."""
    step, base = lowering.step, lowering.precision.base
    tensors = tensors_by_name(block.tensors(lowering.hidden_size))
    _check_names(block, tensors)
    out = tensors.pop(block.projected_back)
    for tensor in tensors.values():
        # The time step, and what each head selects by itself, are projected inside the scan.
        inside = tensor.name == "dt_proj" or (tensor.name == "x_proj" and tensor.copies.size > 1)
        kind = ScanMatmul if inside else Matmul
        yield lowering.matmul(tensor, step.tokens * tensor.copies.size, kind=kind)
    if block.convolved is not None:
        yield Convolution(
            name="convolution",
            group=lowering.group,
            layers=lowering.layers,
            count=lowering.layers,
            rows=step.tokens,
            sequences=step.batch,
            channels=block.convolved,
            kernel=block.kernel,
            state_format=STATE_FORMAT,
            scheme=base,
        )
    if block.state.elements:
        projected = sum(axis.elements for name in block.projected_in for axis in tensors[name].outer)
        yield Recurrence(
            name="recurrence",
            group=lowering.group,
            layers=lowering.layers,
            count=lowering.layers,
            rows=step.tokens,
            sequences=step.batch,
            state=block.state,
            element_flops=element_flops(block),
            row_width=projected + out.inner.elements,
            state_format=STATE_FORMAT,
            scheme=base,
        )
    yield lowering.matmul(out)


def _check_names(block: RecurrentBlock, tensors: Collection[str]) -> None:
    """Raise `TypeError` if a kind has no matrix of a name that it gives: a slip in the kind, not in a file."""
    absent = [name for name in (*block.projected_in, block.projected_back) if name not in tensors]
    if absent:
        raise TypeError(
            f"{type(block).__name__}: no matrix among its tensors is called {' or '.join(absent)} (they are {', '.join(tensors)}), "
            "name those whose results the recurrence reads in projected_in, and the one after it in projected_back"
        )


@lowers(GatedMemory)
def gated_memory(block: GatedMemory, lowering: Lowering) -> Iterator[Op]:
    """Project in, gate the earlier layer's result, project back."""
    tensors = tensors_by_name(block.tensors(lowering.hidden_size))
    out = tensors["out_proj"]
    yield lowering.matmul(tensors["in_proj"])
    yield lowering.elementwise("gate", 2 * block.inner_size, block.inner_size, axis=out.inner)
    yield lowering.matmul(out)


@lowers(NgramMemory)
def ngram_memory(block: NgramMemory, lowering: Lowering) -> Iterator[Op]:
    """Project what was looked up to keys and values, gate the values in every stream, convolve."""
    tensors = tensors_by_name(block.tensors(lowering.hidden_size))
    for tensor in tensors.values():
        yield lowering.matmul(tensor)
    yield lowering.elementwise("ngram.gate", 2 * block.width + lowering.hidden_size, block.width)
    yield Convolution(
        name="ngram.convolution",
        group=lowering.group,
        layers=lowering.layers,
        count=lowering.layers,
        rows=lowering.step.tokens,
        sequences=lowering.step.batch,
        channels=block.convolved,
        kernel=block.conv_kernel,
        state_format=STATE_FORMAT,
        scheme=lowering.precision.base,
    )
