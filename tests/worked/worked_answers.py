"""Puts published worked problems to the planner: one small function for each topic, which returns the planner's answer."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from worked.worked_inputs import (
    NOTHING,
    STORED,
    Inputs,
    attention,
    cached_model,
    chip,
    elementwise,
    flops,
    heads,
    kv_format,
    kv_of,
    matmul,
    model,
    rated,
    read_inputs,
    scheme_of,
    stored_weights,
)
from worked.worked_times import (
    key_value_flops,
    layer_flops,
    load_time,
    math_time,
    mfu,
    plain_prefill_time,
    plain_step_time,
    request_latency,
    step_time,
    tokens_per_s,
    tokens_per_s_and_chip,
    tokens_per_s_with_prefill,
    training_flops,
    training_mfu,
)

from planner.decompose import decompose
from planner.memory import cache_bytes, kv_budget_bytes, largest, most_tokens, weight_bytes
from planner.model import DeltaAttention, FeedForward, LayerGroup, MixtureOfExperts
from planner.op import Axis, Kind
from planner.precision import SCHEMES, Role, policy
from planner.roofline import (
    attainable,
    critical_batch,
    critical_batch_experts,
    critical_intensity,
    intensity,
    rate_op,
    transfer_time,
)
from planner.solve.crossing import smallest_batch
from planner.units import parse_quantity
from planner.workload import Phase, Step

HERE = Path(__file__).parent

Answer = Callable[[Inputs], float]

INFINITE = float("inf")


def read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table beside this file."""
    with (HERE / name).open(newline="") as file:
        return list(csv.DictReader(file))


def agrees(computed: float, row: Mapping[str, str]) -> bool:
    """Whether an answer is the row's own value, in the row's unit, within its relative tolerance (0: exactly)."""
    in_unit = computed / (parse_quantity(f"1 {row['unit']}", "B") if row["unit"] in ("MiB", "GiB") else 1)
    own, tolerance = float(row["own_value"]), float(row["tolerance"])
    return in_unit == own if tolerance == 0 else in_unit == pytest.approx(own, rel=tolerance, abs=0)


# ---- topics ----------------------------------------------------------------------------------------------------------


def ridge(i: Inputs) -> float:
    """Critical intensity of a chip and its memory, or a link."""
    links = ("W", "W_link", "W_bidi", "W_pcie", "W_dcn", "W_node")
    return critical_intensity(i.get("C") or i["C_pod"], next(i[name] for name in links if name in i))


def batch_at_ridge(i: Inputs) -> float:
    """Critical batch of a matmul, very wide where no width is given."""
    if "Icrit" in i:
        return smallest_square(i["Icrit"])
    found = critical_batch(
        ridge(i),
        i.get("D", INFINITE),
        i.get("F", INFINITE),
        weight_bytes=i.get("bytes_w", 2),
        activation_bytes=i.get("bytes_a", 2),
        output_bytes=i.get("bytes_o"),
    )
    assert found is not None
    return found


def smallest_square(ridge_: float) -> float:
    """Smallest D = F at which some batch is compute-bound, by halving."""
    low, high = 1.0, 1e6
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        never = critical_batch(ridge_, middle, middle) is None
        low, high = (middle, high) if never else (low, middle)
    return high


def expert_batch(i: Inputs) -> float:
    """Smallest whole batch at which experts are compute-bound, all of them being read."""
    experts, chosen = (i["sparsity"], 1) if "sparsity" in i else (i["E"], i["k"])
    machine = chip(i.get("Bdense") or i.get("alpha") or i["ratio"], 1)
    scheme = scheme_of("bf16", NOTHING)

    def excess(batch: float) -> float:
        rating = rate_op(matmul(batch * chosen, 1024, 1024, scheme, copies=Axis("experts", experts)), machine)
        return float(rating.compute_s) - float(rating.memory_s)  # type: ignore[arg-type]

    found = smallest_batch(excess)
    assert found is not None
    return found


def matmul_intensity(i: Inputs) -> float:
    """FLOPs for each byte of a matmul."""
    rows, inner, outer = i["B"], i["D"], i["F"]
    return float(rate_op(matmul(rows, inner, outer, SCHEMES[STORED[i.get("bytes", 2)]]), chip(1, 1)).intensity)


def batched_intensity(i: Inputs) -> float:
    """Intensity where every row has a matrix of its own, in one byte an element."""
    scheme = scheme_of("int8", "int8")
    op = matmul(i["B"], i["D"], i["F"], scheme, copies=Axis("requests", i["B"]))
    return float(intensity(op.flops, op.memory_bytes))


def dot_intensity(i: Inputs, scheme: str = "bf16") -> float:
    """Intensity of a dot product: 2N - 1 FLOPs, one addition less than a matmul counts."""
    op = matmul(1, i["N"], 1, SCHEMES[scheme])
    return float(intensity(op.flops - 1, op.memory_bytes))


def square_intensity(i: Inputs) -> float:
    """Intensity of a square fp32 matmul."""
    return matmul_intensity({"B": i["N"], "D": i["N"], "F": i["N"], "bytes": 4})


def add_intensity(i: Inputs) -> float:
    """Intensity of an fp32 addition of vectors."""
    return float(intensity(i["N"], elementwise(i["N"], 2, 1, "fp32").memory_bytes))


def attention_intensity(i: Inputs) -> float:
    """Intensity of fused attention."""
    op = attention(i.get("T", 1), i["S"], i.get("G", 1))
    return float(intensity(op.flops, op.memory_bytes))


def compute_bound_prompt(i: Inputs) -> float:
    """Shortest prompt whose unmasked attention is compute-bound."""
    machine = chip(i["Icrit"], 1)

    def excess(tokens: float) -> float:
        rating = rate_op(attention(tokens, tokens), machine)
        return float(rating.compute_s) - float(rating.memory_s)  # type: ignore[arg-type]

    return smallest_batch(excess) or INFINITE


def attention_catches_up(i: Inputs, *, with_ffn: bool) -> float:
    """Prompt from which on unmasked attention takes as many FLOPs as the projections, or as all matmuls of a layer."""
    ffn = FeedForward(kind="gated", intermediate_size=4 * i["D"]) if with_ffn else None
    one_layer = model(i["D"], 1, LayerGroup(attention=heads(i["D"] // 128, 128), ffn=ffn))

    def excess(tokens: float) -> float:
        step = Step(phase=Phase.PREFILL, new_tokens=tokens, mask="full")
        ops = [op for op in decompose(one_layer, step, policy("bf16")) if op.name != "lm_head"]
        of = {kind: sum(op.flops for op in ops if op.kind is kind) for kind in (Kind.ATTENTION, Kind.MATMUL)}
        return float(of[Kind.ATTENTION] - of[Kind.MATMUL])

    return smallest_batch(excess) or INFINITE


def parameters(i: Inputs, norms: int = 0) -> float:
    """Parameters of a model with a gated FFN; router and norms left out."""
    width, hidden = i.get("H", 128), i["D"]
    kv_heads = i.get("K", hidden // width)
    ffn: FeedForward | MixtureOfExperts = FeedForward(kind="gated", intermediate_size=i["F"])
    if "E" in i:
        ffn = MixtureOfExperts(kind="moe", num_experts=i["E"], num_experts_per_tok=1, moe_intermediate_size=i["F"])
    block = LayerGroup(
        repeat=i.get("L", 1), attention=heads(kv_heads, width, i.get("N", kv_heads)), ffn=ffn, norms=norms
    )
    tied = i.get("vmul") == 1 or "E" in i
    tensors = model(hidden, i.get("V", 1), block, tied=tied).stored_tensors
    return sum(count * tensor.parameters for tensor, count in tensors if tensor.role is not Role.ROUTER)


def attention_share(i: Inputs) -> float:
    """Share of a layer's parameters that are attention's."""
    block = LayerGroup(attention=heads(i["D"] // 128, 128), ffn=FeedForward(kind="gated", intermediate_size=i["F"]))
    sizes = weight_bytes(model(i["D"], 1, block), policy("bf16"))
    return sizes[Role.ATTENTION] / (sizes[Role.ATTENTION] + sizes[Role.FFN])


def kv_bytes(i: Inputs) -> float:
    """Bytes of a KV cache: of one token where no length is given."""
    tokens = i.get("T") or i.get("S") or i.get("tokens") or 1
    return i.get("B", 1) * kv_of(i, tokens)


def key_bytes(i: Inputs) -> float:
    """Bytes of the keys alone: half of a cache in which values are as wide."""
    return kv_bytes(i) / 2


def hybrid_kv_bytes(i: Inputs) -> float:
    """Bytes for each token where one layer of four has a cache that grows, and three keep a state."""
    recurrent = DeltaAttention(
        kind="gated_delta",
        num_key_heads=16,
        num_value_heads=32,
        key_head_dim=128,
        value_head_dim=128,
        conv_kernel=4,
    )
    layers = LayerGroup(
        repeat=i["L"],
        pattern=(LayerGroup(repeat=3, attention=recurrent), LayerGroup(attention=heads(i["K"], i["H"]))),
    )
    return cache_bytes(model(1, 1, layers), kv_format(i)).per_token


def tokens_that_fit(i: Inputs) -> float:
    """Tokens whose KV cache fits the memory left, as a real number."""
    free = i["free"] if "free" in i else parse_quantity(f"{i['kv_GiB']} GiB", "B")
    return float(most_tokens(free, cache_bytes(cached_model(i), kv_format(i)).per_token))


def sequences_that_fit(i: Inputs) -> float:
    """Whole sequences whose KV cache fits beside the weights."""
    free = i["free"] if "free" in i else kv_budget_bytes(i["n"] * i["hbm"], stored_weights(i))
    return largest(lambda batch: batch * kv_of(i, i["T"]) <= free)


OPS_PER_ELEMENT = {"softmax": 5, "norm": 7, "add": 1}
"""How LLM-Viewer counts passes over activations (arXiv 2402.16363, table 1); the planner counts their bytes alone."""


def op_roofline(i: Inputs) -> float:
    """OPs, bytes, intensity or attainable rate of one operation of a layer."""
    if "op" not in i:
        return matmul_intensity(i)
    rows = i["S"] if i["stage"] == "prefill" else 1
    if i["op"] in OPS_PER_ELEMENT:
        width = i["heads"] * i["S"] if i["op"] == "softmax" else i["h"]
        done, moved = OPS_PER_ELEMENT[i["op"]] * rows * width, elementwise(rows, width, width).memory_bytes
    else:
        op = matmul(rows, i["h"], i["inter"] if i["op"] == "gate_proj" else i["h"])
        done, moved = op.flops, op.memory_bytes
    ratio = intensity(done, moved)
    return float({"OPs": done, "bytes": moved, "AI": ratio, "perf": attainable(ratio, i["C"], i["W"])}[i["what"]])


def idle_share(i: Inputs) -> float:
    """Share of the peak that is not reached at an intensity."""
    ridge_, fed = (i["rate_max"], i["rate_fed"]) if "rate_max" in i else (i["Icrit"], i["I"])
    return float(1 - attainable(fed, ridge_, 1) / ridge_)


def matmul_memory_time(i: Inputs) -> float:
    """T_mem of a bf16 matmul at a share of the bandwidth."""
    return float(rated({**i, "W": i["W"] * i["eff"]}).memory_s)  # type: ignore[arg-type]


def add_time(i: Inputs) -> float:
    """Time to add two vectors."""
    return float(rate_op(elementwise(i["N"], 2, 1, "fp32"), chip(1, i["W"])).lower_s)  # type: ignore[arg-type]


def bandwidth_ratio(i: Inputs) -> float:
    """How many times longer a transfer takes on the slower path."""
    fast, slow = (i["W_hbm"], i["W_link"]) if "W_hbm" in i else (i["a"], i["b"])
    return float(transfer_time(1, slow) / transfer_time(1, fast))


TOPICS: Mapping[str, Answer] = {
    "T_math": math_time,
    "T_mem": matmul_memory_time,
    "MBU": lambda i: load_time(i) / i["tpot"],
    "MFU": mfu,
    "MoE parameters": parameters,
    "KV bytes": kv_bytes,
    "KV bytes (hybrid)": hybrid_kv_bytes,
    "arithmetic intensity": matmul_intensity,
    "attention intensity": attention_intensity,
    "bandwidth ratio": bandwidth_ratio,
    "critical batch": batch_at_ridge,
    "critical batch (DCN)": batch_at_ridge,
    "critical batch (IB)": batch_at_ridge,
    "critical batch (ICI)": batch_at_ridge,
    "critical batch (MoE)": expert_batch,
    "critical batch (NVLink)": batch_at_ridge,
    "critical batch (PCIe)": batch_at_ridge,
    "critical intensity": ridge,
    "decode step": step_time,
    "decode throughput": tokens_per_s,
    "elementwise time": add_time,
    "FLOPs": flops,
    "matmul time": lambda i: float(rated(i).lower_s),  # type: ignore[arg-type]
    "max batch": sequences_that_fit,
    "max tokens": tokens_that_fit,
    "parameters": parameters,
    "per-op roofline": op_roofline,
    "prefill time": math_time,
    "ratio": lambda i: critical_intensity(i["Icrit"], i["I"]),
    "request latency": request_latency,
    "roofline": lambda i: float(attainable(i["I"], i["C"], i["W"])),
    "utilisation": idle_share,
    "weight-load floor": load_time,
    "weights": stored_weights,
}
"""The answer to the problems of a topic."""

PROBLEMS: Mapping[str, Answer] = {
    "APPL-07": tokens_per_s_and_chip,
    "DSV3-10": training_flops,
    "DSV3-11": training_flops,
    "DSV3-12": training_flops,
    "GPU-08": add_intensity,
    "KIP-01": key_value_flops,
    "KIP-14": layer_flops,
    "LLMA-01": plain_step_time,
    "LLMA-02": plain_step_time,
    "LLMA-03": plain_step_time,
    "LLMA-05": plain_step_time,
    "LLMA-06": plain_step_time,
    "LLMA-07": plain_prefill_time,
    "LLMA-08": tokens_per_s_with_prefill,
    "MODAL-08": square_intensity,
    "POPE-02": lambda i: critical_batch_experts(i["ratio"], i["total"], i["active"]),
    "ROOF-04": dot_intensity,
    "ROOF-12": batched_intensity,
    "SEED-04": dot_intensity,
    "SEED-05": dot_intensity,
    "SEED-35": lambda i: dot_intensity(i, "fp32"),
    "SEED-39": compute_bound_prompt,
    "SEED-41": lambda i: float(rated(i).lower_s),  # type: ignore[arg-type]
    "SEED-42": lambda i: float(rated(i).upper_s),  # type: ignore[arg-type]
    "VLLM-10": key_bytes,
    "XFMR-01": lambda i: parameters(i, norms=1),
    "XFMR-02": attention_share,
    "XFMR-05": lambda i: attention_catches_up(i, with_ffn=False),
    "XFMR-06": lambda i: attention_catches_up(i, with_ffn=True),
    "XFMR-08": training_mfu,
}
"""Problems that ask something else than their topic's others."""


def answer(row: Mapping[str, str]) -> float:
    """Return the planner's answer to a row."""
    found = PROBLEMS[row["id"]] if row["id"] in PROBLEMS else TOPICS[row["topic"]]
    return found(read_inputs(row["inputs"]))
