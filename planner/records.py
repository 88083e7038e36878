"""Results as plain mappings, under the keys of the JSON interface. SI base units and USD; null where nothing can be said."""

from __future__ import annotations

from typing import Any

from planner.collectives import Fabric
from planner.collectives.survey import Survey
from planner.hardware import Hardware
from planner.memory import PARTS, MemoryPlan, cache_bytes, checkpoint_bytes, sequence_bytes, weight_bytes
from planner.model import Model
from planner.op import Collective, Kind
from planner.parallel import DEGREES, Layout
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
    as_stored = precision == model.quantization.precision(precision.kv.name)
    if model.checkpoint is not None and as_stored:
        total, how = model.checkpoint.bytes, model.checkpoint.source
        by_class = {part.of: part.bytes for part in model.checkpoint.by_class} or computed
    return {
        "weight_bytes": total,
        "weight_bytes_by_class": {name: round(size) for name, size in by_class.items()},
        "weight_bytes_from": how,
        "stored_format_from": model.quantization.source or None if as_stored else f"asked for: {precision.name}",
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
        **_exchange(rating),
        "note": rating.missing or op.note,
    }


def _exchange(rating: Rating) -> Record:
    """Return what is only known of collectives; null for other operations, so that all rows have the same keys."""
    op, cost = rating.op, rating.cost
    if not isinstance(op, Collective) or cost is None:
        return dict.fromkeys(("operation", "chips", "message_bytes", "algorithm", "steps"))
    return {
        "operation": str(op.operation),
        "chips": op.chips.chips,
        "message_bytes": op.size_bytes,
        "algorithm": cost.algorithm,
        "steps": cost.steps,
    }


def totals_record(result: StepRating) -> Record:
    """Return the sums of a step."""
    return {
        "flops": result.flops(),
        "matmul_flops": result.flops(Kind.MATMUL),
        "attention_flops": result.flops(Kind.ATTENTION),
        "bytes": result.memory_bytes,
        "network_bytes": result.network_bytes,
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


def memory_record(plan: MemoryPlan) -> Record:
    """Return the bytes on the fullest chip, by part, and what fits."""
    return {
        "chip_stage": plan.stage,
        "engine": plan.engine,
        "parts": {name: getattr(plan, name) for name in PARTS},
        "total_bytes": plan.total_bytes,
        "capacity_bytes": plan.capacity_bytes,
        "fits": plan.fits,
        "kv_bytes_per_sequence": plan.kv_bytes_per_sequence,
        "kv_blocks": plan.kv_blocks,
        "max_batch": plan.max_batch,
        "max_context": plan.max_context,
        "advice": list(plan.advice),
    }


def step_record(result: StepRating, memory: MemoryPlan | None = None) -> Record:
    """Return a whole step: what was asked, every operation, the sums, and what it takes of a chip's memory."""
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
        "parallelism": parallelism_record(result),
        "ops": [op_record(rating) for rating in result.ops],
        "totals": totals_record(result),
        "memory": None if memory is None else memory_record(memory),
        "notes": list(result.notes),
        "unverified": list(recalled_figures(result)),
        "provenance": "bound",
    }


def recalled_figures(result: StepRating) -> tuple[str, ...]:
    """Return the figures of the chip that a step's times rest on and that were recalled, not read again."""
    used = {rating.rate.used for rating in result.ops}
    return result.hardware.recalled(used, linked=not result.layout.is_single)


def layout_record(layout: Layout) -> Record:
    """Return the degrees of a layout, and the chips that it takes."""
    return {**{name: getattr(layout, name) for name in DEGREES}, "moe_tp": layout.moe_tp, "chips": layout.chips}


def parallelism_record(result: StepRating) -> Record:
    """Return how a step is laid out over chips, and which chip the figures are for."""
    layout, stage, flow = result.layout, result.stage, result.flow
    return {
        **layout_record(layout),
        "expert_imbalance": layout.expert_imbalance,
        "stage": stage.index + 1,
        "stage_layers": stage.layer_count,
        "microbatches": flow.microbatches,
        "bubble": flow.bubble,
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


def fabric_record(fabric: Fabric | None) -> Record | None:
    """Return the links on one level."""
    if fabric is None:
        return None
    return {
        "name": fabric.name,
        "shape": str(fabric.family),
        "chips": fabric.chips,
        "port_bytes_per_s": fabric.port_bytes_per_s,
        "link_bytes_per_s": fabric.link_bytes_per_s,
        "latency_s": fabric.latency_s,
        "in_network_reduction": fabric.reduces,
        "sides": list(fabric.sides),
        "wraps": list(fabric.wraps),
    }


def survey_record(found: Survey) -> Record:
    """Return the links of a group of chips, and what collectives cost on them."""
    return {
        "hardware": found.hardware.name,
        "chips": found.chips,
        "within_domain": fabric_record(found.reach.inner),
        "between_domains": fabric_record(found.reach.outer),
        "explanation": list(found.words),
        "collectives": [
            {
                "operation": str(row.operation),
                "message_bytes": row.size_bytes,
                "algorithm": row.cost.algorithm,
                "default": row.is_default,
                "steps": row.cost.steps,
                "sent_bytes": row.cost.sent_bytes,
                "latency_s": row.cost.latency_s,
                "transfer_s": row.cost.transfer_s,
                "seconds": row.cost.seconds,
                "message_bytes_per_s": row.size_bytes / row.cost.seconds if row.cost.seconds else None,
            }
            for row in found.rows
        ],
        "provenance": "bound",
    }
