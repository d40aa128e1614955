"""Modules and functions stay small enough to be read at once, and their names describe their contents."""

import ast
from pathlib import Path
from statistics import median

from every import every

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "src" / "truestep").rglob("*.py"))
VAGUE = {"utils", "util", "helpers", "helper", "common", "core", "manager", "base", "misc"}
MODULE_LINES, MEDIAN_LINES, FUNCTION_LINES = 500, 150, 70

each_module = every("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))


def lines(path):
    """How many lines say something: blank ones are not counted."""
    return sum(bool(line.strip()) for line in path.read_text(encoding="utf-8").splitlines())


@each_module
def test_module_is_not_long(path):
    assert lines(path) <= MODULE_LINES


def test_most_modules_are_short():
    assert median(map(lines, MODULES)) <= MEDIAN_LINES


@each_module
def test_functions_are_not_long(path):
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    }
    assert not long


@each_module
def test_name_says_what_is_inside(path):
    names = path.relative_to(ROOT / "src").with_suffix("").parts
    assert not VAGUE & {name.strip("_") for name in names}
