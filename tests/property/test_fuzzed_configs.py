"""A damaged config gives a model or one clear error: never a traceback, a hang, or arithmetic that fails later.

`FUZZ_EXAMPLES=20000 pytest tests/property/test_fuzzed_configs.py` runs as many cases.
"""

from __future__ import annotations

import copy
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.decompose import decompose
from planner.errors import PlannerError
from planner.importers.huggingface import read_config
from planner.importers.mistral import read_params
from planner.memory import sequence_bytes
from planner.model import Model
from planner.precision import policy
from planner.units import FORMATS
from planner.workload import Phase, Step

DATA = Path(__file__).parents[1] / "oracle" / "data"
SEEDS = [json.loads(path.read_text()) for path in sorted((DATA / "configs").glob("*.json"))]
SEEDS += [json.loads(line)["config"] for line in (DATA / "model_classes.jsonl").read_text().splitlines()]

# Configs of vLLM's own model files, at small sizes and as released (see tests/unit/test_model_files.py), and Mistral's own files.
MORE = Path(__file__).parents[1] / "data"
SERVED = [json.loads(line) for line in (MORE / "model_files.jsonl").read_text().splitlines()]
PARAMS = [json.loads(line) for line in (MORE / "mistral_params.jsonl").read_text().splitlines()]

DROP = object()
ODD_VALUES = st.one_of(
    st.just(DROP),
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2, 3, 7, 10**3, 9_999, 10_000, 10**6, 10**9, 10**9 + 1, 10**30, -(10**40), 10**5000]),
    st.sampled_from([0.5, -0.5, 1e308, math.nan, math.inf, -math.inf, 4096.0, 1e-30]),
    st.sampled_from(["", "auto", "llama", "4096", "LLLG", "M*E-", "\x00", "full_attention"]),
    st.lists(
        st.sampled_from([0, 1, 64, -1, "sliding_attention", "full_attention", "linear_attention", None]), max_size=70
    ),
    st.dictionaries(st.sampled_from(["hidden_size", "a", "head_dim", "model_type"]), st.integers(-2, 64), max_size=2),
    st.just([[[[]]]]),
)


def paths(data: dict[str, Any], prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in data.items():
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, key))


@st.composite
def damaged(draw: Callable[[st.SearchStrategy[Any]], Any], seeds: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    data = copy.deepcopy(draw(st.sampled_from(seeds or SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        places = sorted(paths(data), key=repr)
        if not places:
            break
        path, value = draw(st.sampled_from(places)), draw(ODD_VALUES)
        part = data
        for key in path[:-1]:
            part = part[key]
        if value is DROP:
            del part[path[-1]]
        else:
            part[path[-1]] = value
    nest = draw(st.sampled_from([None] * 12 + ["text_config", "llm_config", "flatten"]))
    if nest == "flatten" and isinstance(data.get("text_config"), dict):
        data = {**data.pop("text_config"), **data}
    elif nest not in (None, "flatten"):
        data = {"model_type": data.get("model_type"), nest: data}
    return data


FUZZED = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "300")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large],
)


@given(damaged())
@FUZZED
def test_damaged_configs_give_a_model_or_one_error(data: dict[str, Any]) -> None:
    gives_a_model_or_one_error(read_config, data)


@given(damaged(SERVED))
@FUZZED
def test_damaged_configs_of_served_models_give_a_model_or_one_error(data: dict[str, Any]) -> None:
    gives_a_model_or_one_error(read_config, data)


@given(damaged(PARAMS))
@FUZZED
def test_damaged_files_of_mistral_give_a_model_or_one_error(data: dict[str, Any]) -> None:
    gives_a_model_or_one_error(read_params, data)


def gives_a_model_or_one_error(read: Callable[..., Model], data: dict[str, Any]) -> None:
    began = time.perf_counter()
    try:
        model = read(data, name="fuzz", where="config.json")
    except PlannerError as error:
        model, message = None, str(error)
        assert message.startswith("config.json: ")
        assert len(message) < 20_000
    else:
        assert model.parameters > 0
        assert 0 < model.active_parameters <= model.parameters
    assert time.perf_counter() - began < 2
    if model is not None and model.num_hidden_layers < 300:
        for phase in Phase:
            ops = decompose(model, Step(phase=phase, batch=2, new_tokens=3, context=5), policy("bf16"))
            assert all(op.flops >= 0 and op.memory_bytes >= 0 for op in ops)
        assert sequence_bytes(model, 10, FORMATS["bf16"]) >= 0
