"""Results as plain mappings, under the keys of the JSON interface. SI base units and USD; null where nothing can be said."""

from __future__ import annotations

from typing import Any

from planner.hardware import Hardware
from planner.memory import cache_bytes, checkpoint_bytes, sequence_bytes, weight_bytes
from planner.model import Model
from planner.op import Kind
from planner.precision import Precision
from planner.roofline import Rating
from planner.scenario import hardware_gaps
from planner.step import StepRating

Record = dict[str, Any]


def model_record(model: Model, precision: Precision, context: int | None = None) -> Record:
    """Return the counts of a model: parameters, KV cache, weights."""
    cache = cache_bytes(model, precision.kv)
    stored = stored_record(model, precision)
    record: Record = {
        "name": model.name,
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "embedding_parameters": model.embedding.parameters,
        "mtp_parameters": model.mtp_parameters,
        "vision_parameters": model.vision_parameters,
        "layers": model.num_hidden_layers,
        "kv_bytes_per_token": cache.per_token,
        "kv_window_bytes": cache.window,
        "state_bytes": cache.state,
        "indexer_bytes_per_token": cache.index_per_token,
        **stored,
        "precision": {"name": precision.name, **precision.formats},
        "layer_kinds": [
            {
                "label": kind.label,
                "layers": kind.count,
                "parameters_per_layer": sum(tensor.parameters for tensor in kind.tensors(model)),
            }
            for kind in model.layer_kinds
        ],
        "source": model.source,
        "provenance": "exact",
    }
    if context is not None:
        record["context"] = context
        record["kv_bytes"] = sequence_bytes(model, context, precision.kv)
    return record


def stored_record(model: Model, precision: Precision) -> Record:
    """Return the bytes of a checkpoint: as its files say where they were read and are asked for, else by arithmetic."""
    computed = checkpoint_bytes(model, precision)
    total, by_class, how = round(sum(computed.values())), computed, "arithmetic on the architecture"
    if model.vision_parameters is None:
        how += "; towers for pictures or sound, if there are any, are left out"
    if model.checkpoint is not None and precision == model.quantization.precision(precision.kv.name):
        total, how = model.checkpoint.bytes, model.checkpoint.source
        by_class = {part.of: part.bytes for part in model.checkpoint.by_class} or computed
    return {
        "weight_bytes": total,
        "weight_bytes_by_class": {name: round(size) for name, size in by_class.items()},
        "weight_bytes_from": how,
        "served_weight_bytes": round(sum(weight_bytes(model, precision).values())),
    }


def op_record(rating: Rating) -> Record:
    """Return one operation of a step; figures are for all its runs together."""
    op = rating.op
    return {
        "name": op.name,
        "kind": str(op.kind),
        "group": op.group,
        "layers": op.layers,
        "count": op.count,
        "flops": rating.flops,
        "weight_bytes": rating.weight_bytes,
        "activation_bytes": rating.activation_bytes,
        "kv_bytes": rating.kv_bytes,
        "network_bytes": rating.network_bytes,
        "intensity": rating.intensity,
        "critical_intensity": rating.critical_intensity,
        "arithmetic": rating.rate.used or None,
        "bound": rating.bound,
        "compute_s": rating.compute_s,
        "memory_s": rating.memory_s,
        "network_s": rating.network_s,
        "lower_s": rating.lower_s,
        "upper_s": rating.upper_s,
        "estimate_s": None,
        "attainable_flops": rating.attainable_flops,
        "note": op.note if rating.is_rated else rating.rate.note,
    }


def totals_record(result: StepRating) -> Record:
    """Return the sums of a step."""
    return {
        "flops": result.flops(),
        "matmul_flops": result.flops(Kind.MATMUL),
        "attention_flops": result.flops(Kind.ATTENTION),
        "bytes": result.memory_bytes,
        "compute_s": result.compute_s,
        "memory_s": result.memory_s,
        "network_s": result.network_s,
        "lower_s": result.lower_s,
        "upper_s": result.upper_s,
        "estimate_s": None,
        "overlap_floor_s": result.overlap_floor_s,
        "tokens_per_s": result.tokens_per_s,
        "bound": result.bound,
    }


def step_record(result: StepRating) -> Record:
    """Return a whole step: what was asked, every operation, and the sums."""
    step = result.step
    return {
        "model": result.model.name,
        "hardware": result.hardware.name,
        "phase": str(step.phase),
        "workload": {
            "batch": step.batch,
            "new_tokens": step.new_tokens,
            "context": step.context,
            "mask": step.mask,
            "logits": step.logits,
            "mla": step.mla,
        },
        "precision": {"name": result.precision.name, **result.precision.formats},
        "parallelism": {"tp": 1, "pp": 1, "ep": 1, "attention_dp": 1, "cp": 1},
        "ops": [op_record(rating) for rating in result.ops],
        "totals": totals_record(result),
        "notes": list(result.notes),
        "provenance": "bound",
    }


def hardware_record(name: str, chip: Hardware) -> Record:
    """Return every figure of a chip, with its source."""
    return {
        "id": name,
        "name": chip.name,
        "vendor": chip.vendor,
        "kind": chip.kind,
        "year": chip.year,
        "figures": {
            path: {
                "value": figure.value,
                "source": figure.source,
                "verified": figure.verified,
                **({"date": figure.date} if figure.date else {}),
            }
            for path, figure in chip.figures()
        },
        "notes": list(chip.notes),
        "gaps": list(hardware_gaps(chip)),
    }
