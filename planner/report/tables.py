"""A study as tables of text: every number formatted, so that a template has nothing to compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.engine import Setting
from planner.hardware import Figure
from planner.memory import PARTS
from planner.model import LatentAttention
from planner.op import Op
from planner.precision import Role
from planner.report import words
from planner.report.answer import degrees, from_batch
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
        "why": choice.missing,
    }


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
        "why": rating.missing,
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
        "why": rating.missing,
    }


def _time(seconds: Any) -> str:
    return words.NOTHING if seconds is None or not np.any(np.greater(seconds, 0)) else words.duration(seconds)


# ---- memory ----------------------------------------------------------------------------------------------------------


PART_NAMES = {
    "weights_bytes": "weights",
    "kv_bytes": "KV cache, in whole pages",
    "activation_bytes": "activations, at their peak",
    "communication_bytes": "buffers for exchanges",
    "reserve_bytes": "kept free, and the runtime",
}
"""What the parts of a chip's memory are called."""


def memory(study: Study) -> list[Table]:
    """Return groups of rows, with a cell for each precision: the model as a whole, and the fullest chip."""
    chip = "the chip" if study.layout.is_single else f"the fullest of {study.layout.chips} chips"
    batch, engine = words.counted(int(study.step.batch), "sequence"), study.question.engine.name
    return [
        {"name": "the whole model", "rows": _model_rows(study)},
        {"name": f"{chip}, with {batch}, by the rules of {engine}", "rows": _chip_rows(study)},
    ]


def _model_rows(study: Study) -> list[Table]:
    choices, roles = study.choices, [role for role in Role if any(role in c.weights for c in study.choices)]
    rows = [_bytes_row(f"weights: {role.replace('_', ' ')}", [c.weights.get(role) for c in choices]) for role in roles]
    rows.append(_bytes_row("weights together", [c.weight_bytes for c in choices], strong=True))
    parts: dict[str, list[float]] = {
        "KV cache for each token": [c.cache.per_token for c in choices],
        "KV cache of windows, at most": [c.cache.window for c in choices],
        "recurrent state": [c.cache.state for c in choices],
        "indexer keys for each token": [c.cache.index_per_token for c in choices],
        f"cache of one sequence of {study.question.tokens:,} tokens": [c.sequence_bytes for c in choices],
    }
    return rows + [_bytes_row(name, sizes) for name, sizes in parts.items() if any(sizes)]


def _chip_rows(study: Study) -> list[Table]:
    plans = [choice.memory for choice in study.choices]
    sizes = {PART_NAMES[part]: [getattr(plan, part) for plan in plans] for part in PARTS}
    rows = [_bytes_row(name, values) for name, values in sizes.items() if any(values)]
    rows.append(_bytes_row("together", [plan.total_bytes for plan in plans], strong=True))
    rows.append(_bytes_row("memory of a chip", [plan.capacity_bytes for plan in plans]))
    rows.append(_count_row("largest batch that fits", [plan.max_batch for plan in plans]))
    rows.append(_count_row("longest context that fits", [plan.max_context for plan in plans]))
    return rows


def _bytes_row(name: str, values: Sequence[Any], *, strong: bool = False) -> Table:
    return {"name": name, "cells": [words.scaled(value, "B") for value in values], "strong": strong}


def _count_row(name: str, values: Sequence[int | None]) -> Table:
    cells = [words.NOTHING if value is None else f"{value:,}" if value else "none" for value in values]
    return {"name": name, "cells": cells, "strong": True}


# ---- sources ---------------------------------------------------------------------------------------------------------


def figures(study: Study) -> list[Table]:
    """Return every figure that a number in the report rests on, with its source: of the chip, then of the engine."""
    used = {f"peak.{r.rate.used}" for c in study.choices for r in c.point.ops if np.any(np.greater(r.flops, 0))}
    used |= {"memory.bandwidth", "memory.usable" if study.hardware.memory.usable else "memory.capacity"}
    links = _links(study)
    chip = [_figure(path, item) for path, item in study.hardware.figures() if path in used or path.startswith(links)]
    engine = study.question.engine
    rules: dict[str, tuple[Setting | Figure, str]] = {
        "share of memory that it uses": (engine.memory_fraction, words.percent(engine.memory_fraction.value, 1)),
        "tokens of a page": (engine.page_tokens, words.number(engine.page_tokens.value)),
        "tokens of a step at most": (engine.batched_tokens, f"{engine.batched_tokens.value:,.0f}"),
        "memory of the runtime": (engine.runtime, words.scaled(engine.runtime.value, "B")),
    }
    return chip + [
        {
            "name": f"{engine.name}: {name}",
            "value": value,
            "source": item.source,
            "date": "",
            "verified": item.verified,
        }
        for name, (item, value) in rules.items()
    ]


def _links(study: Study) -> tuple[str, ...]:
    """Return what the paths of the links that are used begin with."""
    domain, chips = study.hardware.links.scale_up, study.layout.chips
    reached = {"links.scale_up.": chips > 1, "links.scale_out.": chips > (domain.chips if domain else 1)}
    return tuple(path for path, is_used in reached.items() if is_used)


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
        ("Chips", _chips(study)),
        ("Model", f"{model.parameters:,} parameters{active}"),
    ]
    if any(isinstance(block, LatentAttention) for kind in model.layer_kinds for block in kind.layer.mixers):
        found.insert(6, ("Latent attention", {"auto": "the form with fewer FLOPs"}.get(step.mla, step.mla)))
    return found


def _chips(study: Study) -> str:
    """Return over which chips the step is laid out, and which of them the figures are for."""
    layout, stage = study.layout, study.asked.point.stage
    if layout.is_single:
        return "one"
    which = "figures are for one of them, but tokens/s for all"
    if layout.pp > 1:
        waits = words.percent(study.asked.point.flow.bubble, 1)
        which = f"figures are for one of stage {stage.index + 1}, the slowest ({stage.layer_count} layers; it waits {waits} of the time), but tokens/s for all"
    return f"{layout.chips}: {degrees(layout)}; {which}"


def readouts(study: Study) -> dict[str, dict[int, str]]:
    """Return the step in a sentence, for every precision and every batch that can be looked at."""
    return {
        choice.name: {batch: _readout(study, choice, index) for index, batch in enumerate(study.batches)}
        for choice in study.choices
    }


def _readout(study: Study, choice: Choice, index: int) -> str:
    sweep = choice.sweep
    if sweep.lower_s is None or sweep.upper_s is None or sweep.tokens_per_s is None:
        return f"{choice.missing}."
    shape = (len(study.batches),)
    lower, upper, rate = (np.broadcast_to(v, shape)[index] for v in (sweep.lower_s, sweep.upper_s, sweep.tokens_per_s))
    bound = np.broadcast_to(sweep.bound, shape)[index]
    needed, room = choice.taken_bytes[index], choice.memory.capacity_bytes
    taken = f"memory {words.scaled(needed, 'B')}"
    if room is not None:
        held = words.scaled(room, "B")
        taken += f" of {held}" if needed <= room else f", too much for {held}"
    return (
        f"{bound}-bound, {words.duration(lower)} to {words.duration(upper)} a step at datasheet rates, "
        f"at most {words.number(rate)} tokens/s; {taken}."
    )
