"""Descriptions to put faults into, and what every refusal has in common."""

from __future__ import annotations

import copy
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SLOWEST_S = 2.0
"""An answer to bad input takes no longer than this."""

MODEL: dict[str, Any] = {
    "name": "Small",
    "hidden_size": 64,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "layers": [
        {
            "repeat": 2,
            "attention": {"kind": "gqa", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16},
            "ffn": {"kind": "gated", "intermediate_size": 128},
        }
    ],
}
CHIP: dict[str, Any] = {
    "name": "Chip",
    "vendor": "Vendor",
    "kind": "gpu",
    "year": 2024,
    "peak": {"bf16": {"value": "100 TFLOP/s", "source": "datasheet"}},
    "memory": {
        "capacity": {"value": "10 GiB", "source": "datasheet"},
        "bandwidth": {"value": "1 TB/s", "source": "datasheet"},
    },
    "chips_per_host": 8,
}
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "vocab_size": 1000,
    "num_hidden_layers": 2,
    "max_position_embeddings": 8192,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "tie_word_embeddings": False,
}

Refused = Callable[..., str]
"""Runs a command that has to fail, and gives its one line."""


def listing(folder: Path) -> dict[str, bytes | None]:
    """Return every file below a folder with what it holds; None for a folder, and for what cannot be read."""
    found: dict[str, bytes | None] = {}
    for path in sorted(folder.rglob("*")):
        try:
            is_file = stat.S_ISREG(path.lstat().st_mode)
            found[str(path.relative_to(folder))] = path.read_bytes() if is_file else None
        except PermissionError:
            found[str(path.relative_to(folder))] = None
    return found


def assert_one_line(code: int, out: str, err: str) -> None:
    assert code == 2, (code, out, err)
    assert out == ""
    assert err.startswith("error: ")
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1, err
    assert "Traceback" not in err
    assert len(err) < 3000, len(err)


def write(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def reading(path: str, kind: str) -> list[tuple[str, ...]]:
    """Return the commands that read a file of a kind; the second would also write one."""
    output = ("--format", "json", "--output", "out.json")
    if kind == "hardware":
        return [("hardware", path), ("ops", "llama-3.1-70b", "--hardware", path, *output)]
    return [
        ("model", path),
        ("ops", path, "--hardware", "h100-sxm", *output),
        ("import", path, "--output", "out.yaml"),
    ]


def changed(data: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy with the value at a dotted path replaced; taken out where the value is ``...``."""
    result = copy.deepcopy(dict(data))
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
    target: Any = result
    for part in parents:
        target = target[part]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return result


COMMAND = [sys.executable, "-c", "from planner.cli import main; main()"]


def process(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*COMMAND, *arguments], check=False, capture_output=True, text=True, env=environment, timeout=60, **more
    )


DEEP = 10**5
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)
