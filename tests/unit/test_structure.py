"""Every public function, method and class says what it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "planner"
MODULES = sorted(PACKAGE.rglob("*.py"))

Named = ast.FunctionDef | ast.ClassDef


def public(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Named]]:
    """Yield the public definitions of a module, and of the public classes in it."""
    for node in body:
        if isinstance(node, Named) and not node.name.startswith("_"):
            yield f"{prefix}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{node.name}.")


def silent(source: str) -> list[str]:
    return [name for name, node in public(ast.parse(source).body) if not ast.get_docstring(node)]


def test_what_has_no_docstring_is_found() -> None:
    source = 'class A:\n    """A."""\n    def b(self): ...\n    def _c(self): ...\ndef d():\n    """D."""\ndef e(): ...'
    assert silent(source) == ["A.b", "e"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_public_name_has_a_docstring(path: Path) -> None:
    assert silent(path.read_text("utf-8")) == []
