"""GGUF files for tests, written by the gguf library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

TOKENS = 1024


def write(
    path: Path,
    arch: str,
    fields: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    types: Mapping[str, Type] | None = None,
    name: str = "Tiny",
) -> Path:
    """Write a GGUF file; matrices are F16 unless `types` names a part of their name, vectors F32."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name(name)
    writer.add_token_list([f"token {n}" for n in range(TOKENS)])
    for key, value in fields.items():
        whole = key.removeprefix("/") if key.startswith("/") else f"{arch}.{key}"
        if isinstance(value, list):
            writer.add_array(whole, value)
        elif isinstance(value, bool):
            writer.add_bool(whole, value)
        elif isinstance(value, float):
            writer.add_float32(whole, value)
        elif isinstance(value, str):
            writer.add_string(whole, value)
        else:
            writer.add_uint32(whole, value)
    for tensor, shape in shapes.items():
        kind = (
            next((t for part, t in (types or {}).items() if part in tensor), Type.F16) if len(shape) > 1 else Type.F32
        )
        block, size = gguf.GGML_QUANT_SIZES[kind]
        packed = (*shape[:-1], shape[-1] // block * size)
        writer.add_tensor(tensor, np.zeros(packed, np.uint8), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
