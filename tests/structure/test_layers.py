"""The layers of the package: a module imports only from layers below it, or from its left within its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "planner"

# From the bottom up; docs/decisions and this table name the same layers.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "units", "numeric", "sourced"),
    ("precision",),
    ("op",),
    ("model", "hardware", "engine", "workload"),
    ("efficiency",),
    ("importers", "catalogue"),
    ("decompose",),
    ("parallel", "collectives"),
    ("roofline",),
    ("memory", "scenario", "step"),
    ("records",),
    ("serving",),
    ("cost",),
    ("solve", "search", "sweep"),
    ("calibrate", "validate"),
    ("deploy",),
    ("charts", "report", "cli"),
)
ORDER = {name: (row, column) for row, names in enumerate(LAYERS) for column, name in enumerate(names)}

MODULES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    """Return the part of the package that a file belongs to; empty for the package's own file."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def imported_modules(tree: ast.AST) -> set[str]:
    """Return the parts of the package that a syntax tree imports, wherever the import stands."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("planner.")}
    return found


def may_import(importer: str, imported: str) -> bool:
    """Whether the layers let `importer` import `imported`."""
    (row, column), (other_row, other_column) = ORDER[importer], ORDER[imported]
    return other_row < row or (other_row == row and other_column <= column)


def test_the_rule_itself() -> None:
    assert may_import("roofline", "op")
    assert may_import("units", "errors")
    assert may_import("cli", "records")
    assert may_import("solve", "records")
    assert not may_import("op", "roofline")
    assert not may_import("errors", "units")


def test_imports_are_found_wherever_they_stand() -> None:
    source = (
        "import planner.units\ndef f():\n    from planner import catalogue\nfrom planner.op.axis import Axis\nimport os"
    )
    assert imported_modules(ast.parse(source)) == {"units", "catalogue", "op"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_imports_only_from_layers_below(path: Path) -> None:
    module = module_of(path)
    if module == "":
        return
    assert module in ORDER, f"{module} stands in no layer, add it to the table"
    imported = imported_modules(ast.parse(path.read_text(encoding="utf-8"))) - {"__version__"}
    wrong = {name for name in imported if not may_import(module, name)}
    assert not wrong, f"{path.name} imports {sorted(wrong)} from above"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_relative_imports(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
