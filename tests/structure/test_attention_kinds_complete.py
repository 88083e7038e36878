"""What the guide to a new kind of attention asks for is there for every kind."""

from __future__ import annotations

import importlib
import pkgutil
from typing import get_args

import pytest

import planner.model
import planner.model.attention
from planner import catalogue
from planner.importers.huggingface.quantization.modules import LEAVES, SAME, pieces
from planner.model import AttentionBlock, Tensor
from planner.model.attention import AnyAttention
from planner.precision import NEVER_QUANTIZED
from tests.golden.test_op_tables import CASES, TESTS

KINDS = get_args(get_args(AnyAttention)[0])


def blocks() -> list[AttentionBlock]:
    """Return the attention blocks of the models that have golden tables, which are of every kind."""
    names = dict.fromkeys(case.model for case in CASES.values())
    models = [catalogue.load_model(str(TESTS / name) if name.endswith(".json") else name) for name in names]
    return list({block: None for model in models for kind in model.layer_kinds for block in kind.layer.mixers})


def concrete(kind: type) -> set[type]:
    return {kind} if not kind.__subclasses__() else {c for sub in kind.__subclasses__() for c in concrete(sub)}


def test_every_class_is_a_kind_that_files_may_name() -> None:
    for module in pkgutil.iter_modules(planner.model.attention.__path__):
        importlib.import_module(f"planner.model.attention.{module.name}")
    assert concrete(AttentionBlock) == set(KINDS), "AnyAttention in planner/model/attention/__init__.py"


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_exported(kind: type) -> None:
    for package in (planner.model.attention, planner.model):
        assert kind.__name__ in package.__all__, f"add {kind.__name__} to __all__ of {package.__name__}"


@pytest.mark.parametrize("kind", KINDS)
def test_it_has_a_hand_computed_test(kind: type) -> None:
    texts = [path.read_text("utf-8") for path in sorted((TESTS / "unit").glob("test_*.py"))]
    assert any(f"{kind.__name__}(" in text for text in texts), f"no file of tests/unit makes a {kind.__name__}"


def test_lists_of_modules_can_name_its_matrices() -> None:
    """A quantisation list names modules as checkpoints do, so their names have to be known, or known to be the planner's."""
    found = blocks()
    assert {type(block) for block in found} == set(KINDS)
    matrices = [(block, tensor) for block in found for tensor in block.tensors(4096) if isinstance(tensor, Tensor)]
    unknown = {
        f"{type(block).__name__}: {key}"
        for block, tensor in matrices
        if tensor.role not in NEVER_QUANTIZED
        for key, _ in pieces(tensor)
        if key not in LEAVES and key not in SAME
    }
    assert not unknown, (
        "say what checkpoints call these, in LEAVES or SAME of planner/importers/huggingface/quantization/modules.py"
    )
