"""Maps rows of measured kernels to the planner's operations, and rates them on the chip's datasheet.

The floor of a kernel is the lower bound that the roofline gives: the largest of compute and memory time at datasheet peaks. Nothing
here knows an efficiency. Where a measurement beats the floor, a reason is stated beside it, and each reason is a test on the row's own
figures: see `data/README.md`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from planner.catalogue import load_hardware
from planner.decompose import decompose
from planner.decompose.feedforward import experts_touched
from planner.hardware import Hardware
from planner.model import LayerGroup, MixtureOfExperts, Model, SoftmaxAttention
from planner.op import Attention, Axis, Elementwise, Matmul, Op, WeightedSum
from planner.precision import SCHEMES, policy
from planner.roofline import rate_op, transfer_time
from planner.workload import Phase, Step

DATA = Path(__file__).parent / "data"

HBM_CHIPS = ("a100-sxm-80gb", "h100-sxm", "h200-sxm", "b200-sxm", "gb200-nvl72")
LARGE_CACHE_CHIPS = ("l40s", "rtx-pro-6000-server")

SCHEME_OF_DTYPE = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "nvfp4": "nvfp4",
    "sq": "int8",
    "int8_wo": "w8a16",
    "int4_wo": "w4a16",
    "w4a16_mxfp4": "mxfp4_w4a16",
    "w4a8_mxfp4_mxfp8": "mxfp4_w4a8",
}
"""Names of formats in the measurements, and in the planner."""

KV_OF_DTYPE = {"bfloat16": "bf16", "fp8": "fp8"}

Row = Mapping[str, str]


# ---- operations of a row ---------------------------------------------------------------------------------------------


def gemm_ops(row: Row) -> tuple[Op, ...]:
    """Return the matmul of a row."""
    scheme = SCHEMES[SCHEME_OF_DTYPE[row["dtype"]]]
    m, n, k = int(row["m"]), int(row["n"]), int(row["k"])
    return (Matmul(name="gemm", group="kernel", rows=m, inner=Axis("k", k), outer=(Axis("n", n),), scheme=scheme),)


def _model(layer: LayerGroup, hidden_size: int) -> Model:
    return Model(name="kernel", hidden_size=hidden_size, vocab_size=1, tie_word_embeddings=True, layers=(layer,))


def _attention(row: Row, step: Step, value_dim: int | None) -> tuple[Op, ...]:
    """Return the attention of a model of one layer."""
    heads, kv_heads, head_dim = (int(row[name]) for name in ("num_heads", "num_kv_heads", "head_dim"))
    block = SoftmaxAttention(
        kind="gqa",
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=value_dim,
    )
    model = _model(LayerGroup(attention=block), heads * head_dim)
    ops = decompose(model, step, policy("bf16", kv=KV_OF_DTYPE[row["kv_dtype"]]))
    return tuple(op for op in ops if isinstance(op, Attention))


def decode_ops(row: Row, value_dim: int | None = None) -> tuple[Op, ...]:
    """Return the attention of a row: `context_len` tokens are attended to, the new one among them."""
    step = Step(phase=Phase.DECODE, batch=int(row["batch"]), context=int(row["context_len"]) - 1)
    return _attention(row, step, value_dim)


def prefill_ops(row: Row, value_dim: int | None = None) -> tuple[Op, ...]:
    """Return the attention of a row, over prompts without a cached prefix."""
    step = Step(phase=Phase.PREFILL, batch=int(row["batch"]), new_tokens=int(row["seq_len"]))
    return _attention(row, step, value_dim)


def moe_ops(row: Row) -> tuple[Op, ...]:
    """Return the routed experts' operations on one of the chips of a group; the router's matmul is not among the measured.

    Tensor parallelism slices each expert; expert parallelism gives a chip its share of the experts, of the pairs of token and expert,
    and so of the experts that some token is sent to.
    """
    tensor_parallel, groups = int(row["moe_tp_size"]), int(row["moe_ep_size"])
    tokens, experts, chosen = int(row["num_tokens"]), int(row["num_experts"]), int(row["topk"])
    block = MixtureOfExperts(
        kind="moe",
        num_experts=experts,
        num_experts_per_tok=chosen,
        moe_intermediate_size=int(row["inter_size"]) // tensor_parallel,
    )
    step = Step(phase=Phase.PREFILL, new_tokens=tokens)
    model = _model(LayerGroup(ffn=block), int(row["hidden_size"]))
    ops = decompose(model, step, policy(SCHEME_OF_DTYPE[row["dtype"]]))
    touched = experts_touched(experts, chosen, tokens, held=experts // groups)
    return tuple(_on_one_chip(op, touched, groups) for op in ops if op.name.startswith("experts."))


def _on_one_chip(op: Op, touched: float, groups: int) -> Op:
    if isinstance(op, Matmul):
        return replace(op, rows=op.rows / groups, touched=touched)
    assert isinstance(op, Elementwise | WeightedSum)
    return replace(op, rows=op.rows / groups)


OPS: Mapping[str, Callable[[Row], tuple[Op, ...]]] = {
    "gemm": gemm_ops,
    "decode_attention": decode_ops,
    "prefill_attention": prefill_ops,
    "moe": moe_ops,
}
"""The operations that each kind of kernel fuses."""


# ---- the floor -------------------------------------------------------------------------------------------------------


@cache
def chip(name: str) -> Hardware:
    """Return a chip of the catalogue, read once."""
    return load_hardware(name)


def floor_of(ops: tuple[Op, ...], hardware: Hardware) -> float:
    """Return the lower bound of operations that run one after the other [s]."""
    return sum(float(rate_op(op, hardware).lower_s) for op in ops)  # type: ignore[arg-type] - these chips have every rate


@dataclass(frozen=True, slots=True)
class Case:
    """A measured kernel beside its lower bound.

    Attributes
    ----------
    kernel : str
        A key of `OPS`.
    row : Row
        As measured.
    """

    kernel: str
    row: Row

    @property
    def hardware(self) -> Hardware:
        """The chip."""
        return chip(self.row["chip"])

    @property
    def ops(self) -> tuple[Op, ...]:
        """What the kernel fuses."""
        return OPS[self.kernel](self.row)

    @property
    def measured_s(self) -> float:
        """Latency [s]."""
        return float(self.row["latency_s"])

    @property
    def ratio(self) -> float:
        """Measured time over the lower bound: below 1 where the measurement beats it."""
        return self.ratio_to(self.ops)

    def ratio_to(self, ops: tuple[Op, ...]) -> float:
        """Return measured time over the lower bound of other operations."""
        return self.measured_s / floor_of(ops, self.hardware)

    def read_time(self, size_bytes: float) -> float:
        """Return the time to move bytes at the datasheet's bandwidth [s]."""
        bandwidth = self.hardware.memory.bandwidth.value
        assert bandwidth is not None
        return float(transfer_time(size_bytes, bandwidth))

    @property
    def working_set(self) -> float:
        """Bytes that the kernel reads and writes, each once [B]."""
        return float(sum(op.memory_bytes for op in self.ops))

    @property
    def cache_bytes(self) -> float:
        """Capacity of the chip's last-level cache [B]."""
        cache_ = self.hardware.cache
        assert cache_ is not None
        assert cache_.capacity.value is not None
        return cache_.capacity.value


# ---- why a measurement may beat the floor ----------------------------------------------------------------------------


def fits_cache(case: Case) -> bool:
    """Everything that the benchmark reads again and again fits the last-level cache."""
    return case.working_set <= case.cache_bytes


LITTLE_MORE = 4 / 3
"""A working set of up to so many times the cache is partly read from it."""


def fits_cache_in_part(case: Case) -> bool:
    """The working set is little more than the cache, and what exceeds it can be read in the measured time."""
    rest = case.working_set - case.cache_bytes
    return case.working_set <= LITTLE_MORE * case.cache_bytes and case.read_time(rest) <= case.measured_s


FEWER_VALUES = {"192": 128}
"""Value dimensions of the models whose attention has keys of so many elements."""


def has_fewer_values(case: Case) -> bool:
    """Values have fewer elements than keys, which the measurements do not note; with them the floor holds."""
    lowerings = {"decode_attention": decode_ops, "prefill_attention": prefill_ops}
    value_dim = FEWER_VALUES.get(case.row.get("head_dim", ""))
    return bool(value_dim) and case.ratio_to(lowerings[case.kernel](case.row, value_dim)) >= 1


def is_beyond_memory(case: Case) -> bool:
    """An old release is faster than the memory could read the keys and values alone: it did not read them all."""
    is_old = (case.row["framework"], case.row["version"]) == ("trtllm", "1.0.0")
    return (
        is_old and case.kernel == "decode_attention" and case.read_time(float(case.row["kv_bytes"])) > case.measured_s
    )


def is_skewed(case: Case) -> bool:
    """Tokens went to fewer experts than uniform routing sends them to; were they as few as can be, the floor would hold.

    Routing was drawn from a power law, or was to be balanced and is faster than the memory could read the weights of the experts that
    balanced routing hits.
    """
    if case.kernel != "moe":
        return False
    read = case.read_time(float(case.row["active_weight_bytes_per_gpu"]))
    drawn = case.row["distribution"].startswith("power_law") or read > case.measured_s
    fewest = int(case.row["topk"]) / int(case.row["moe_ep_size"])
    ops = tuple(replace(op, touched=fewest) if isinstance(op, Matmul) else op for op in case.ops)
    return drawn and case.ratio_to(ops) >= 1


def keeps_activations(case: Case) -> bool:
    """The experts' kernels hand activations on without a trip to memory; without such passes the floor holds."""
    if case.kernel != "moe":
        return False
    weights = sum(float(op.weight_bytes) for op in case.ops)
    computing = sum(float(rate_op(op, case.hardware).compute_s or 0.0) for op in case.ops)
    return max(case.read_time(weights), computing) <= case.measured_s


REASONS: Mapping[str, Callable[[Case], bool]] = {
    "cache": fits_cache,
    "cache_in_part": fits_cache_in_part,
    "fewer_values": has_fewer_values,
    "beyond_memory": is_beyond_memory,
    "skewed_routing": is_skewed,
    "fused_activations": keeps_activations,
}
"""Why a measurement may beat the floor, each with what must be true of its row."""


def read_cases(kernel: str, folder: Path = DATA) -> list[Case]:
    """Return the rows of a kind of kernel."""
    with (folder / f"{kernel}.csv").open(newline="") as file:
        return [Case(kernel, row) for row in csv.DictReader(file)]
