"""Descriptions and texts of any content are answered or refused in one line, in time."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import (
    CHIP,
    CONFIG,
    MODEL,
    SLOWEST_S,
    assert_one_line,
    changed,
    reading,
    write,
)

from planner.cli.main import run

# ---- fuzz ------------------------------------------------------------------------------------------------------------


def outcome(arguments: tuple[str, ...]) -> None:
    """Run a command, which has to answer or to refuse in one line, in time."""
    out, err, started = io.StringIO(), io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    assert time.process_time() - started < SLOWEST_S
    if code == 0:
        assert json.loads(out.getvalue())
        assert all(line.startswith("note: ") for line in err.getvalue().splitlines())
    else:
        assert_one_line(code, out.getvalue(), err.getvalue())


def paths(data: Any, prefix: str = "") -> Iterator[str]:
    """Yield the dotted path of every value inside nested data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield f"{prefix}{key}"
        yield from paths(value, f"{prefix}{key}.")


odd = st.one_of(
    st.sampled_from(
        [None, True, False, 0, -1, 1, 2, 3, 7, 10**9, 10**10, 10**30, 0.5, 1e300, float("nan"), float("inf"), "", "1"]
    ),
    st.sampled_from(["bf16", "gqa", "mla", "moe", "1e12", "3 TB/s", "1e999 B", "-0", "\0", "\ud800", "é", "x" * 1000]),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.dates(),
    st.binary(max_size=4),
)
values = st.recursive(
    odd,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.text(max_size=5) | st.sampled_from(["kind", "value", "source", "repeat"]), inner, max_size=3
        ),
    ),
    max_leaves=6,
)
additions = st.sampled_from(
    [
        "quantization",
        "norm",
        "encoder",
        "mtp",
        "tables",
        "notes",
        "checkpoint",
        "links",
        "price",
        "power",
        "cache",
        "quantization_config",
        "rope_scaling",
        "sliding_window",
        "layer_types",
        "head_dim",
        "architectures",
    ]
)


def as_yaml(data: Any) -> bytes:
    return yaml.safe_dump(data, allow_unicode=True).encode("utf-8", "surrogatepass")


def as_json(data: Any) -> bytes:
    return json.dumps(data, default=str).encode()


@pytest.mark.parametrize(
    ("kind", "data", "name", "written"),
    [
        ("model", MODEL, "model.yaml", as_yaml),
        ("hardware", CHIP, "chip.yaml", as_yaml),
        ("model", CONFIG, "config.json", as_json),
    ],
    ids=["model", "hardware", "config"],
)
@settings(max_examples=60)
@given(data_=st.data())
def test_descriptions_with_odd_values(
    data_: st.DataObject,
    kind: str,
    data: dict[str, Any],
    name: str,
    written: Callable[[Any], bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    changes = data_.draw(
        st.dictionaries(st.sampled_from(sorted(paths(data))) | additions, values | st.just(...), min_size=1, max_size=3)
    )
    for path, value in changes.items():
        with contextlib.suppress(KeyError, IndexError, TypeError):  # an earlier change took the place away
            data = changed(data, path, value)
    path = write(tmp_path_factory.mktemp("fuzz"), name, written(data))
    for arguments in reading(path, kind)[:2]:
        outcome((*[a for a in arguments if a not in ("--output", "out.json", "--format", "json")], "--format", "json"))


fragments = st.sampled_from(
    [
        "a",
        "b: ",
        "- ",
        "\n",
        "  ",
        "[",
        "]",
        "{",
        "}",
        ",",
        ": ",
        "&a ",
        "*a",
        "<<: ",
        "!!int ",
        "!x ",
        "|\n",
        ">\n",
        "'",
        '"',
        "#",
        "%YAML 1.1\n",
        "---\n",
        "...\n",
        "? ",
        "~",
        "1e9",
        ".nan",
        "\t",
        "\\",
        "\x00",
        "é",
        "\ufeff",
        "=",
        "name: x\n",
        "layers: ",
        "hidden_size: 1\n",
        "model_type: llama\n",
        "memory: ",
        "peak: ",
    ]
)


@settings(max_examples=150)
@given(
    text=st.lists(fragments, max_size=25).map("".join) | st.text(max_size=40), suffix=st.sampled_from(["yaml", "json"])
)
def test_texts(text: str, suffix: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write(tmp_path_factory.mktemp("fuzz"), f"file.{suffix}", text.encode("utf-8", "replace"))
    outcome(("model", path, "--format", "json"))
    outcome(("hardware", path, "--format", "json"))


@settings(max_examples=100)
@given(content=st.binary(max_size=60))
def test_bytes(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = write(tmp_path_factory.mktemp("fuzz"), "file", content)
    outcome(("model", path, "--format", "json"))
    outcome(("hardware", path, "--format", "json"))
