"""Rules that hold for every file of the package: no product names, no prefixes outside units, sizes within limits."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner import catalogue

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "planner"
MODULES = sorted(PACKAGE.rglob("*.py"))
EACH_MODULE = pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40

PREFIXES = {10**power for power in (9, 12, 15, 18, 21, 24)} | {2**power for power in (20, 30, 40, 50)} | {1024}
POWERS = {(2, 20), (2, 30), (2, 40), (10, 9), (10, 12), (10, 15), (1024, 2), (1024, 3), (1024, 4)}


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the string constants of a syntax tree that are no docstrings, with their lines."""
    docs = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            docs |= {id(s.value) for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def prefixes(source: str) -> list[int]:
    """Return the lines of code in which a decimal or binary prefix is written as a number."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool) and value in PREFIXES:
                lines.append(node.lineno)
            case ast.BinOp(left=ast.Constant(value=base), op=ast.Pow(), right=ast.Constant(value=power)):
                if (base, power) in POWERS:
                    lines.append(node.lineno)
    return lines


def test_prefixes_are_found_in_every_spelling() -> None:
    assert set(prefixes("a = 1e9\nb = 2**30\nc = 1_000_000_000\nd = 1024**3\ne = 7\nf = 10**12")) == {1, 2, 3, 4, 6}


def test_texts_leaves_docstrings_out() -> None:
    tree = ast.parse('"""h100"""\ndef f():\n    """h200"""\n    return "b200"\nx = 1\n"""attribute"""')
    assert list(texts(tree)) == [(4, "b200")]


@EACH_MODULE
def test_no_model_or_chip_is_named_in_code(path: Path) -> None:
    products = {*catalogue.names("models"), *catalogue.names("hardware")}
    assert len(products) > 50
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [(line, text) for line, text in texts(tree) if text.lower() in products]
    assert not named, "behaviour may not depend on a product: put it in its YAML file"


@EACH_MODULE
def test_prefixes_stand_in_units_alone(path: Path) -> None:
    if path == PACKAGE / "units.py":
        return
    assert not prefixes(path.read_text(encoding="utf-8")), "take the constant from planner.units"


@EACH_MODULE
def test_files_and_functions_fit_a_sitting(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= MAX_FILE_LINES
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"


@EACH_MODULE
def test_no_assert_and_no_broad_except(path: Path) -> None:
    broad = {"Exception", "BaseException"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: input is checked by raising"
        if isinstance(node, ast.ExceptHandler):
            caught = {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else broad
            assert not caught & broad, f"line {node.lineno}: name what can go wrong"


@EACH_MODULE
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def comments(source: str) -> Iterator[str]:
    """Yield the comments of a source."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@EACH_MODULE
def test_no_code_is_commented_out_and_nothing_is_left_to_do(path: Path) -> None:
    marks = ("TODO", "FIXME", "XXX", "HACK")
    found = [
        comment for comment in comments(path.read_text(encoding="utf-8")) if any(mark in comment for mark in marks)
    ]
    assert not found
