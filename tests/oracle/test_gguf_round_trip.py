"""A GGUF file as llama.cpp's converter writes it gives the model that the Hugging Face config gives, and that its tensors add up to."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from gguf_cases import CASES, Case
from gguf_cases.shapes import LAYERS
from gguf_files import write

from planner.catalogue import load_model, model_yaml
from planner.importers.gguf.architectures import KNOWN
from planner.importers.huggingface import read_config
from planner.memory import cache_bytes
from planner.scenario import model_warnings
from planner.units import FORMATS


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.arch}-{case.config['model_type']}")
def test_round_trip(tmp_path: Path, case: Case) -> None:
    expected = read_config(case.config, name="config", where="config.json")
    model = load_model(str(write(tmp_path / "m.gguf", case.arch, case.fields, case.shapes)))
    assert model.layers == expected.layers
    assert (model.parameters, model.active_parameters) == (expected.parameters, expected.active_parameters)
    assert cache_bytes(model, FORMATS["bf16"]) == cache_bytes(expected, FORMATS["bf16"])
    # Facts that llama.cpp keeps in its code and not in the file are the class's, and told.
    assert [note for note in model_warnings(model) if not note.startswith(BY_CLASS)] == []
    written = tmp_path / "m.yaml"
    written.write_text(model_yaml(model))
    assert load_model(str(written)).layers == model.layers
    # What the planner does not count: tables, buffers, dummies, and corrections of the router where the class keeps them as buffers.
    counted = model.parameters + model.mtp_parameters
    assert elements(case, "rope_", "exp_probs_b", *UNCOUNTED) <= counted - IN_METADATA.get(case.arch, 0)
    assert counted - IN_METADATA.get(case.arch, 0) <= elements(case, "rope_", *UNCOUNTED)


BY_CLASS = "not in the file, so the class of "
UNCOUNTED = ("layer_output_scale", *(f"blk.0.time_mix_v{part}." for part in range(3)))

IN_METADATA = {"apertus": 2 * LAYERS}
"""Learned parameters that the file keeps among its metadata: two for each activation function."""


def elements(case: Case, *left_out: str) -> int:
    """Return the elements of all tensors but those with one of some parts in their names."""
    return sum(math.prod(shape) for name, shape in case.shapes.items() if not any(part in name for part in left_out))


def test_every_architecture_that_has_a_config_is_covered() -> None:
    assert set(KNOWN) - {case.arch for case in CASES} == {"openelm"}
