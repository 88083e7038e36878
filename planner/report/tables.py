"""A study as tables of text: every number formatted, so that a template has nothing to compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from planner.engine import Engine
from planner.model import LatentAttention
from planner.op import Op
from planner.parallel import DEGREES, layout_notes
from planner.precision import Role
from planner.report import solved, words
from planner.report.study import Choice, Study, key
from planner.roofline import Rating, critical_intensity
from planner.solve import OpAnswer
from planner.sourced import Figure, Setting

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
        "from_batch": solved.batch(choice.critical_batch, is_known=choice.is_known),
        "why": why_unknown(choice),
    }


def why_unknown(choice: Choice) -> str:
    """Return why a precision has no times, empty where it has."""
    if choice.point.lower_s is not None:
        return ""
    notes = dict.fromkeys(r.rate.note for r in choice.point.ops if not r.is_rated and r.rate.note)
    return "; ".join(notes) or "the memory bandwidth of the chip is not known"


# ---- operations ------------------------------------------------------------------------------------------------------


def side_by_side(study: Study) -> list[Table]:
    """Return the operations in groups, each with its lower bound, intensity and bound in every precision."""
    rated = [{key(r.op): r for r in choice.point.ops} for choice in study.choices]
    rows: list[tuple[Op, Table]] = []
    for rating in study.asked.point.ops:
        cells = [_cell(ratings.get(key(rating.op))) for ratings in rated]
        rows.append((rating.op, {"name": rating.op.name, "flops": _work(rating.flops, "FLOP"), "cells": cells}))
    return _grouped(rows)


def _cell(rating: Rating | None) -> Table:
    if rating is None:
        return {"lower": words.NOTHING, "intensity": words.NOTHING, "bound": None, "why": ""}
    return {
        "lower": words.duration(rating.lower_s),
        "intensity": _intensity(rating),
        "bound": rating.bound,
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
            "has_network": study.has_network,
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
        "algorithm": rating.cost.algorithm if rating.cost else "",
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


# ---- compute-bound ---------------------------------------------------------------------------------------------------


def critical(study: Study) -> list[Table]:
    """Return from which batch on each operation that computes is compute-bound in every precision, and the step as a whole."""
    computing = [r.op for r in study.asked.point.ops if np.any(np.greater(r.flops, 0))]
    found = [choice.critical for choice in study.choices]
    rows = [
        {
            "name": op.name,
            "group": op.group if op.layers > 1 else "",
            "cells": [_critical(ops[key(op)], choice) for ops, choice in zip(found, study.choices, strict=True)],
            "strong": False,
        }
        for op in computing
    ]
    steps = [choice.solved.step for choice in study.choices]
    whole = [solved.batch(step.critical_batch, is_known=solved.is_known(step)) for step in steps]
    rows.append({"name": "whole step", "group": "", "cells": whole, "strong": True})
    rows.append(_row("up to a context of, in tokens", [solved.context(step) for step in steps]))
    return rows


def _critical(op: OpAnswer, choice: Choice) -> str:
    """Return a critical batch; in prefill, where a sequence has many tokens, with the tokens of a step that it stands for."""
    text = solved.batch(op.critical_batch, is_known=choice.is_known)
    if op.critical_tokens is None or choice.question.new_tokens == 1:
        return text
    return f"{text} (from {words.number(op.critical_tokens)} tokens)"


def _row(name: str, cells: Sequence[str], *, strong: bool = False) -> Table:
    return {"name": name, "group": "", "cells": list(cells), "strong": strong}


def chips(study: Study) -> list[Table]:
    """Return the fewest chips in every precision, with what decides on their number."""
    found = [choice.solved.chips for choice in study.choices]
    return [
        _row("chips that hold the model", [words.number_or_dash(c.minimum_to_fit) for c in found]),
        _row(
            "chips that are compute-bound", [words.number_or_dash(c.minimum_compute_bound) for c in found], strong=True
        ),
        _row("laid out as", [solved.layout(c) for c in found]),
        _row("from a batch of", [words.number_or_dash(c.batch) for c in found]),
        _row("largest batch that fits there", [words.number_or_dash(c.largest_batch) for c in found]),
        _row("limited by", [solved.limited_by(c) for c in found]),
    ]


def levers(study: Study) -> list[str]:
    """Return what would help the precision asked for, the most helpful first."""
    asked = study.asked
    if not asked.is_known or asked.critical_batch == 1:
        return []
    return [solved.lever(lever) for lever in asked.solved.levers]


def reasons(study: Study) -> list[str]:
    """Return why there is no batch or no chip."""
    return solved.reasons([choice.solved for choice in study.choices])


# ---- memory ----------------------------------------------------------------------------------------------------------


def memory(study: Study) -> list[Table]:
    """Return what the fullest chip holds, part by part, with a cell for each precision."""
    batch, tokens = int(study.step.batch), study.asked.question.tokens
    plans = [choice.memory for choice in study.choices]
    held = [choice.footprint.fullest(batch, tokens)[0].weights for choice in study.choices]
    rows = [
        _memory_row(f"weights: {role.replace('_', ' ')}", [weights.get(role) for weights in held])
        for role in Role
        if any(role in weights for weights in held)
    ]
    rows += [
        _memory_row("weights together", [plan.weights_bytes for plan in plans]),
        _memory_row(f"KV cache of {words.counted(batch, 'sequence')}", [plan.kv_bytes for plan in plans]),
        _memory_row("activations, at their peak", [plan.activation_bytes for plan in plans]),
        _memory_row("buffers of collectives", [plan.communication_bytes for plan in plans]),
        _memory_row(f"kept free or taken by {study.engine.name}", [plan.reserve_bytes for plan in plans]),
        _memory_row("all together", [plan.total_bytes for plan in plans], strong=True),
        _memory_row("memory of a chip", [plan.capacity_bytes for plan in plans]),
        _row("verdict", [VERDICTS[plan.fits] for plan in plans], strong=True),
        _row(f"largest batch at {tokens:,} tokens", [words.number_or_dash(plan.max_batch) for plan in plans]),
        _row(f"largest context at batch {batch:,}", [words.number_or_dash(plan.max_context) for plan in plans]),
    ]
    each = [plan.kv_bytes_per_sequence for plan in plans]
    rows.append(_memory_row(f"KV cache of one sequence of {tokens:,} tokens", each))
    return rows + [_memory_row(label, values) for label, values in _cache_parts(study) if any(values)]


VERDICTS = {True: "fits", False: "does not fit", None: words.NOTHING}
"""Whether the memory of a chip is enough."""


def advice(study: Study) -> list[str]:
    """Return what would make it fit, a line for the precisions that differ in numbers only."""
    said = ((choice.name, ", or ".join(choice.memory.advice)) for choice in study.choices)
    return list(solved.merged(said))


def _memory_row(name: str, values: Sequence[Any], *, strong: bool = False) -> Table:
    return _row(name, [words.scaled(value, "B") for value in values], strong=strong)


def _cache_parts(study: Study) -> list[tuple[str, list[float]]]:
    """Return what the model keeps over all chips of a replica, by the way it grows."""
    caches, where = [choice.cache for choice in study.choices], "" if study.layout.is_single else ", over all chips"
    return [
        (f"KV cache for each token{where}", [cache.per_token for cache in caches]),
        (f"KV cache of windows, at most{where}", [cache.window for cache in caches]),
        (f"recurrent state{where}", [cache.state for cache in caches]),
        (f"indexer keys for each token{where}", [cache.index_per_token for cache in caches]),
    ]


# ---- sources ---------------------------------------------------------------------------------------------------------


def figures(study: Study) -> list[Table]:
    """Return every figure that a number in the report rests on, with its source: of the chip, then of the engine."""
    used = {f"peak.{r.rate.used}" for c in study.choices for r in c.point.ops if np.any(np.greater(r.flops, 0))}
    used |= {"memory.bandwidth", "memory.usable" if study.hardware.memory.usable else "memory.capacity"}
    links = _links(study)
    chip = [_figure(path, item) for path, item in study.hardware.figures() if path in used or path.startswith(links)]
    return chip + _rules(study.engine)


def _links(study: Study) -> tuple[str, ...]:
    """Return what the paths of the links that are used begin with."""
    domain, chips = study.hardware.links.scale_up, study.layout.chips
    reached = {"links.scale_up.": chips > 1, "links.scale_out.": chips > (domain.chips if domain else 1)}
    return tuple(path for path, is_used in reached.items() if is_used)


def _rules(engine: Engine) -> list[Table]:
    rules: dict[str, tuple[Setting | Figure, str]] = {
        "share of memory that it uses": (engine.memory_fraction, words.percent(engine.memory_fraction.value, 1)),
        "tokens of a page": (engine.page_tokens, words.number(engine.page_tokens.value)),
        "tokens of a step at most": (engine.batched_tokens, f"{engine.batched_tokens.value:,.0f}"),
        "memory of the runtime": (engine.runtime, words.scaled(engine.runtime.value, "B")),
    }
    return [
        {"name": f"{engine.name}: {name}", "value": value, "source": item.source, "date": "", "verified": item.verified}
        for name, (item, value) in rules.items()
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
        ("Chips", laid_out(study)),
        ("Engine", f"{study.engine.name}, whose memory rules say what fits"),
        ("Model", f"{model.parameters:,} parameters{active}"),
    ]
    if any(isinstance(block, LatentAttention) for kind in model.layer_kinds for block in kind.layer.mixers):
        found.insert(6, ("Latent attention", {"auto": "the form with fewer FLOPs"}.get(step.mla, step.mla)))
    return found


def laid_out(study: Study) -> str:
    """Return in words how the replica is laid out, and which of its chips the figures are for."""
    layout, point = study.layout, study.asked.point
    if layout.is_single:
        return "one"
    degrees = (f"{name.replace('_', '-')} {getattr(layout, name)}" for name in DEGREES if getattr(layout, name) > 1)
    found = [f"one of {layout.chips} chips: {', '.join(degrees)}"]
    if layout.pp > 1:
        stage, flow = point.stage, point.flow
        found.append(
            f"stage {stage.index + 1} of {stage.of}, the slowest, with {words.counted(stage.layer_count, 'layer')} and "
            f"{words.counted(int(flow.microbatches), 'microbatch').replace('microbatchs', 'microbatches')}; "
            f"it waits {words.percent(flow.bubble, 1)} of the time"
        )
    return "; ".join(found)


def layout_points(study: Study) -> list[str]:
    """Return what a reader should know of the layout: copies, padding, assumptions."""
    return list(layout_notes(study.model, study.layout))


def readouts(study: Study) -> dict[str, dict[int, str]]:
    """Return the step in a sentence, for every precision and every batch that can be looked at."""
    return {
        choice.name: {batch: _readout(study, choice, index) for index, batch in enumerate(study.batches)}
        for choice in study.choices
    }


def _readout(study: Study, choice: Choice, index: int) -> str:
    sweep, batch = choice.sweep, study.batches[index]
    if sweep.lower_s is None or sweep.upper_s is None or sweep.tokens_per_s is None:
        return f"{why_unknown(choice)}."
    shape = (len(study.batches),)
    lower, upper, rate = (np.broadcast_to(v, shape)[index] for v in (sweep.lower_s, sweep.upper_s, sweep.tokens_per_s))
    bound = np.broadcast_to(sweep.bound, shape)[index]
    needed, room = float(choice.parts(batch).total_bytes), study.room
    taken = f"{'the chip' if study.layout.is_single else 'each chip'} would hold {words.scaled(needed, 'B')}"
    if room is not None:
        taken += f" of {words.scaled(room, 'B')}" if needed <= room else f", but has only {words.scaled(room, 'B')}"
    return (
        f"{bound}-bound, {words.duration(lower)} to {words.duration(upper)} a step at datasheet rates, "
        f"at most {words.number(rate)} tokens/s; {taken}."
    )
