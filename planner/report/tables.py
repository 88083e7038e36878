"""A study as tables of text: every number formatted, so that a template has nothing to compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.hardware import Figure
from planner.model import LatentAttention
from planner.op import Op
from planner.precision import Role
from planner.report import words
from planner.report.answer import from_batch
from planner.report.study import Choice, Study, Threshold, key
from planner.roofline import Rating, critical_intensity

Table = dict[str, Any]


def precisions(study: Study) -> list[Table]:
    """Return a row for each precision: the ridge, the bounds of the step, and from which batch on it is compute-bound."""
    return [_precision(study, choice) for choice in study.choices]


def _precision(study: Study, choice: Choice) -> Table:
    point = choice.point
    rate, bandwidth = study.hardware.rate(choice.precision.linear.arithmetic), study.hardware.memory.bandwidth.value
    ridge = critical_intensity(rate.flops_per_s, bandwidth) if rate.flops_per_s and bandwidth else None
    return {
        "name": choice.name,
        "arithmetic": rate.used,
        "peak": words.scaled(rate.flops_per_s, "FLOP/s"),
        "ridge": words.number(ridge),
        "bytes": words.scaled(point.memory_bytes, "B"),
        "compute": words.duration(point.compute_s),
        "memory": words.duration(point.memory_s),
        "network": words.duration(point.network_s),
        "lower": words.duration(point.lower_s),
        "upper": words.duration(point.upper_s),
        "floor": words.duration(point.overlap_floor_s),
        "tokens_per_s": words.number(point.tokens_per_s),
        "bound": point.bound,
        "from_batch": from_batch(choice.threshold),
        "why": _why_unknown(choice),
    }


def _why_unknown(choice: Choice) -> str:
    """Return why a precision has no times, empty where it has."""
    if choice.point.lower_s is not None:
        return ""
    notes = dict.fromkeys(r.rate.note for r in choice.point.ops if not r.is_rated and r.rate.note)
    return "; ".join(notes) or "the memory bandwidth of the chip is not known"


# ---- operations ------------------------------------------------------------------------------------------------------


def side_by_side(study: Study) -> list[Table]:
    """Return the operations in groups, each with its lower bound, bound and threshold in every precision."""
    rated = [{key(r.op): r for r in choice.point.ops} for choice in study.choices]
    rows: list[tuple[Op, Table]] = []
    for rating in study.asked.point.ops:
        cells = [
            _cell(ratings.get(key(rating.op)), choice.thresholds.get(key(rating.op)))
            for choice, ratings in zip(study.choices, rated, strict=True)
        ]
        rows.append((rating.op, {"name": rating.op.name, "flops": _work(rating.flops, "FLOP"), "cells": cells}))
    return _grouped(rows)


def _cell(rating: Rating | None, threshold: Threshold | None) -> Table:
    if rating is None:
        return {"lower": words.NOTHING, "intensity": words.NOTHING, "bound": None, "from_batch": "", "why": ""}
    return {
        "lower": words.duration(rating.lower_s),
        "intensity": _intensity(rating),
        "bound": rating.bound,
        "from_batch": from_batch(threshold) if threshold is not None else "",
        "why": "" if rating.is_rated else rating.rate.note,
    }


def _grouped(rows: Sequence[tuple[Op, Table]]) -> list[Table]:
    """Return rows under the group they belong to; a group that comes back later stands once, where it first was."""
    groups: dict[str, Table] = {}
    for op, row in rows:
        group = groups.setdefault(op.group, {"name": op.group, "layers": _layers(op), "rows": []})
        group["rows"].append(row)
    return list(groups.values())


def _layers(op: Op) -> str:
    return f"{words.counted(op.layers, 'layer')}" if op.layers > 1 else ""


def _work(value: Any, unit: str) -> str:
    return words.scaled(value, unit) if np.any(np.greater(value, 0)) else words.NOTHING


def _intensity(rating: Rating) -> str:
    return words.number(rating.intensity) if np.any(np.greater(rating.flops, 0)) else words.NOTHING


def details(study: Study) -> list[Table]:
    """Return for each precision everything that is known of each operation."""
    return [
        {
            "name": choice.name,
            "formats": _formats(choice),
            "groups": _grouped([(r.op, _detail(r, choice)) for r in choice.point.ops]),
            "has_network": bool(np.any(np.greater(choice.point.network_s or 0.0, 0))),
            "notes": list(choice.point.notes),
        }
        for choice in study.choices
    ]


def _formats(choice: Choice) -> str:
    formats = choice.precision.formats
    experts = "" if formats["experts"] == formats["linear"] else f", experts {formats['experts']}"
    return (
        f"linear layers {formats['linear']}{experts}, what stays unquantised {formats['unquantized']}, "
        f"attention computes in {formats['attention_arithmetic']}, KV cache {formats['kv_cache']}"
    )


def _detail(rating: Rating, choice: Choice) -> Table:
    return {
        "name": rating.op.name,
        "runs": f"{rating.op.count:,}",
        "flops": _work(rating.flops, ""),
        "weights": _work(rating.weight_bytes, "B"),
        "activations": _work(rating.activation_bytes, "B"),
        "kv": _work(rating.kv_bytes, "B"),
        "network_bytes": _work(rating.network_bytes, "B"),
        "intensity": _intensity(rating),
        "ridge": words.number(rating.critical_intensity) if np.any(np.greater(rating.flops, 0)) else words.NOTHING,
        "arithmetic": (rating.rate.used or words.NOTHING) if np.any(np.greater(rating.flops, 0)) else words.NOTHING,
        "compute": _time(rating.compute_s),
        "memory": _time(rating.memory_s),
        "network": _time(rating.network_s),
        "lower": words.duration(rating.lower_s),
        "share": words.percent(rating.lower_s, choice.point.lower_s),
        "bound": rating.bound,
        "why": "" if rating.is_rated else rating.rate.note,
    }


def _time(seconds: Any) -> str:
    return words.NOTHING if seconds is None or not np.any(np.greater(seconds, 0)) else words.duration(seconds)


# ---- memory ----------------------------------------------------------------------------------------------------------


def memory(study: Study) -> list[Table]:
    """Return rows of bytes, with a cell for each precision."""
    roles = [role for role in Role if any(role in choice.weights for choice in study.choices)]
    tokens = study.step.context + study.step.new_tokens
    rows = [
        _memory_row(f"weights: {role.replace('_', ' ')}", [c.weights.get(role) for c in study.choices])
        for role in roles
    ]
    rows.append(_memory_row("weights together", [c.weight_bytes for c in study.choices], strong=True))
    rows += [_memory_row(label, values) for label, values in _cache_parts(study) if any(values)]
    rows.append(_memory_row(f"cache of one sequence of {tokens:,} tokens", [c.sequence_bytes for c in study.choices]))
    batch = int(study.step.batch)
    needed = [choice.needed_bytes(batch) for choice in study.choices]
    rows.append(_memory_row(f"weights and {words.counted(batch, 'sequence')}", needed, strong=True))
    rows.append(_memory_row("memory of the chip", [study.room for _ in study.choices]))
    fitting = [_fitting(choice, study.room) for choice in study.choices]
    rows.append({"name": "sequences that fit", "cells": fitting, "strong": True})
    return rows


def _memory_row(name: str, values: Sequence[float | None], *, strong: bool = False) -> Table:
    return {"name": name, "cells": [words.scaled(value, "B") for value in values], "strong": strong}


def _cache_parts(study: Study) -> list[tuple[str, list[float]]]:
    caches = [choice.cache for choice in study.choices]
    return [
        ("KV cache for each token", [cache.per_token for cache in caches]),
        ("KV cache of windows, at most", [cache.window for cache in caches]),
        ("recurrent state", [cache.state for cache in caches]),
        ("indexer keys for each token", [cache.index_per_token for cache in caches]),
    ]


def _fitting(choice: Choice, room: float | None) -> str:
    if room is not None and choice.weight_bytes > room:
        return "none"
    return words.NOTHING if choice.fitting is None else f"{choice.fitting:,}"


# ---- sources ---------------------------------------------------------------------------------------------------------


def figures(study: Study) -> list[Table]:
    """Return every figure of the chip that a number in the report rests on, with its source."""
    used = {f"peak.{r.rate.used}" for c in study.choices for r in c.point.ops if np.any(np.greater(r.flops, 0))}
    used |= {"memory.bandwidth", "memory.usable" if study.hardware.memory.usable else "memory.capacity"}
    linked = any(np.any(np.greater(choice.point.network_s or 0.0, 0)) for choice in study.choices)
    return [
        _figure(path, figure)
        for path, figure in study.hardware.figures()
        if path in used or (linked and path.startswith("links."))
    ]


def _figure(path: str, figure: Figure) -> Table:
    return {
        "name": path.replace(".", " ").replace("_", " "),
        "value": words.figure(path, figure.value),
        "source": figure.source,
        "date": figure.date or "",
        "verified": figure.verified,
    }


def settings(study: Study) -> list[tuple[str, str]]:
    """Return what the step was taken to be, where a reader might have expected something else."""
    step, model = study.step, study.model
    masks = {
        "causal": "positions behind the causal mask are skipped, as kernels do",
        "full": "every query over all positions, or its window",
    }
    logits = {"last": "of the last token of each sequence", "all": "of every token"}
    active = (
        "" if model.active_parameters == model.parameters else f", {model.active_parameters:,} of them used by a token"
    )
    found = [
        ("Phase", str(step.phase)),
        ("Batch", words.counted(int(step.batch), "sequence")),
        ("New tokens", f"{step.new_tokens:,} in each sequence"),
        ("Context", f"{step.context:,} tokens in each KV cache before the step"),
        ("Attention", masks[step.mask]),
        ("Logits", logits[step.logits]),
        ("Precision", f"{study.asked.name}: {_formats(study.asked)}"),
        ("Chips", "one"),
        ("Model", f"{model.parameters:,} parameters{active}"),
    ]
    if any(isinstance(block, LatentAttention) for kind in model.layer_kinds for block in kind.layer.mixers):
        found.insert(6, ("Latent attention", {"auto": "the form with fewer FLOPs"}.get(step.mla, step.mla)))
    return found


def readouts(study: Study) -> dict[str, dict[int, str]]:
    """Return the step in a sentence, for every precision and every batch that can be looked at."""
    return {
        choice.name: {batch: _readout(study, choice, index) for index, batch in enumerate(study.batches)}
        for choice in study.choices
    }


def _readout(study: Study, choice: Choice, index: int) -> str:
    sweep, batch = choice.sweep, study.batches[index]
    if sweep.lower_s is None or sweep.upper_s is None or sweep.tokens_per_s is None:
        return f"{_why_unknown(choice)}."
    shape = (len(study.batches),)
    lower, upper, rate = (np.broadcast_to(v, shape)[index] for v in (sweep.lower_s, sweep.upper_s, sweep.tokens_per_s))
    bound = np.broadcast_to(sweep.bound, shape)[index]
    needed, room = choice.needed_bytes(batch), study.room
    taken = f"weights and cache take {words.scaled(needed, 'B')}"
    if room is not None:
        taken += (
            f" of {words.scaled(room, 'B')}" if needed <= room else f", the chip has only {words.scaled(room, 'B')}"
        )
    return (
        f"{bound}-bound, {words.duration(lower)} to {words.duration(upper)} a step at datasheet rates, "
        f"at most {words.number(rate)} tokens/s; {taken}."
    )
