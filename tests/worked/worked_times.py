"""Times of worked problems: of arithmetic, of loads, of prompts, of decode steps and of requests."""

from __future__ import annotations

from worked.worked_inputs import (
    STORED,
    Inputs,
    all_weights,
    attention,
    chip,
    flops,
    kv_of,
    matmul,
    plain_model,
    stored_weights,
)

from planner.decompose import decompose
from planner.memory import sequence_bytes, weight_bytes
from planner.op import FullSpan, Kind
from planner.precision import SCHEMES, Role, policy, policy_of, stored_as
from planner.roofline import compute_time, rate_op, transfer_time
from planner.step import rate_step
from planner.units import FORMATS
from planner.workload import Phase, Step


def math_time(i: Inputs) -> float:
    """T_math."""
    return float(compute_time(flops(i), i.get("n", 1) * i["C"] * i.get("eff", i.get("mfu", 1))))


def load_time(i: Inputs) -> float:
    """T_mem of the weights."""
    return float(transfer_time(stored_weights(i), i.get("n", 1) * i["W"]))


def step_time(i: Inputs) -> float:
    """Time of a decode step: matmuls by their roofline, then the KV cache from memory."""
    chips = i.get("n", i.get("shards", 1))
    if "P_layer" in i:
        return load_time({"P": i["P_layer"], "bytes_w": i["bytes_w"], "n": chips, "W": i["W"]})
    if "hbm" in i:
        return float(transfer_time(i["hbm"], i["W"]))
    if "Pbytes" in i:
        return load_time(i)
    machine = chip(chips * i["C"], chips * i["W"])
    matmuls = rate_op(all_weights(i["P"], i["B"], STORED[i["wbytes"]]), machine)
    return float(matmuls.lower_s) + float(transfer_time(i["B"] * i["kv_seq"], chips * i["W"]))  # type: ignore[arg-type]


def plain_step_time(i: Inputs) -> float:
    """Time of a decode step of one sequence: layers, LM head in 16 bits and KV cache from memory."""
    linear = SCHEMES["bf16"] if i["wb"] == 2 else stored_as(SCHEMES["w4a16"], bits=8 * i["wb"])
    sizes = weight_bytes(plain_model(i), policy_of(linear))
    weights = sizes[Role.ATTENTION] + sizes[Role.FFN] + sizes[Role.LM_HEAD]
    cached = sequence_bytes(plain_model(i), i["T"], FORMATS["bf16"])
    return float(transfer_time(weights + cached, i["n"] * i["W"]))


def tokens_per_s(i: Inputs) -> float:
    """Tokens of all sequences in a second."""
    return float(i["B"] / step_time(i))


def tokens_per_s_and_chip(i: Inputs) -> float:
    """Tokens of all sequences in a second, for each chip."""
    return tokens_per_s(i) / i["n"]


def tokens_per_s_with_prefill(i: Inputs) -> float:
    """Tokens of one sequence in a second, the time to the first included."""
    moved = stored_weights(i) + kv_of(i, i["T"])
    step = float(transfer_time(moved, i["n"] * i["W"] * i["eff"]))
    return float(i["gen"] / (i["ttft"] + i["gen"] * step))


def plain_prefill_time(i: Inputs) -> float:
    """Compute time of a prompt, unmasked and with the logits of every token."""
    step = Step(phase=Phase.PREFILL, new_tokens=i["T"], mask="full", logits="all")
    found = rate_step(plain_model(i), chip(i["C"], 1), step, policy("bf16")).compute_s
    assert found is not None
    return float(found)


def mfu(i: Inputs) -> float:
    """Compute time at the peak over the time taken."""
    return math_time(i) / i["latency"]


def training_mfu(i: Inputs) -> float:
    """The same for training, which takes three times the FLOPs of a forward pass."""
    done = 3 * all_weights(i["N_active"], i["tokens"]).flops
    return float(compute_time(done, i["C"])) / (3600 * i["hours"])


def training_flops(i: Inputs) -> float:
    """FLOPs to train on one token of a sequence of T: three times those of its matmuls and its causal attention."""
    heads_, dims = (i["heads"], (i["dqk"], i["dv"])) if "heads" in i else (i["NH"] // 128, (128, 128))
    pairs = FullSpan().pairs(i["T"], 0, causal=True) / i["T"]
    core = attention(1, i["T"], heads_, pairs=pairs, dims=dims)
    return float(3 * (all_weights(i["N"]).flops + i["L"] * core.flops))


def key_value_flops(i: Inputs) -> float:
    """FLOPs to project keys and values of one token, multi-head."""
    return float(i["L"] * matmul(1, i["D"], 2 * i["D"]).flops)


def layer_flops(i: Inputs) -> float:
    """FLOPs of one token in the matmuls of all layers."""
    ops = decompose(plain_model(i), Step(phase=Phase.DECODE), policy("bf16"))
    return float(sum(op.count * op.flops for op in ops if op.kind is Kind.MATMUL and op.name != "lm_head"))


def request_latency(i: Inputs) -> float:
    """A compute-bound prompt and memory-bound tokens after it, of a model in 16 bits."""
    prefill = math_time({"P": i["P"], "T": i["Tin"], "C": i["C"]})
    return prefill + i["Tout"] * load_time({"P": i["P"], "bytes_w": 2, "W": i["W"]})
