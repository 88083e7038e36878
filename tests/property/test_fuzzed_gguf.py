"""GGUF files whose metadata are changed, or whose tensors are missing, give a model or one clear error, in time."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from gguf_cases import CASES, Case
from gguf_files import write
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import SLOWEST_S

from planner.catalogue import load_model
from planner.errors import InputError
from planner.scenario import model_warnings

MORE = (
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.shared_kv_layers",
    "attention.key_length",
    "expert_count",
    "nextn_predict_layers",
    "leading_dense_block_count",
)
VALUES = st.one_of(
    st.none(),
    st.sampled_from([0, 1, 3, 6, 10_000, 2**32 - 1, True, 0.5, "x", ""]),
    st.lists(st.integers(0, 9), min_size=1, max_size=8),
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=6),
)


@st.composite
def changed(draw: st.DrawFn) -> tuple[Case, dict[str, Any], dict[str, tuple[int, ...]]]:
    """Draw an architecture with some metadata changed and some tensors gone."""
    case = draw(st.sampled_from(CASES))
    keys = draw(st.lists(st.sampled_from([*case.fields, *MORE]), min_size=1, max_size=3))
    fields = {**case.fields, **{key: draw(VALUES) for key in keys}}
    gone = draw(st.sets(st.sampled_from([*case.shapes]), max_size=3))
    shapes = {name: shape for name, shape in case.shapes.items() if name not in gone}
    return case, {key: value for key, value in fields.items() if value is not None}, shapes


@settings(max_examples=200, deadline=None)
@given(changed())
def test_changed_files(drawn: tuple[Case, dict[str, Any], dict[str, tuple[int, ...]]]) -> None:
    case, fields, shapes = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "m.gguf", case.arch, fields, shapes)
        started = time.process_time()
        try:
            model = load_model(str(path))
        except InputError as error:
            assert str(error).startswith(str(path))
            assert str(error).isprintable()
        else:
            assert model.parameters > 0
            # A file that misses a whole matrix is never taken for whole.
            missing = [
                name for name in case.shapes if name not in shapes and name.endswith(("down.weight", "attn_q.weight"))
            ]
            assert not missing or model_warnings(model)
        assert time.process_time() - started < SLOWEST_S
