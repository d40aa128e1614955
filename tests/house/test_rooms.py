"""Folders are rooms: small, listed in the docstring of their `__init__`, and without circles of imports."""

import ast
import json
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
PACKAGE = SRC / "truestep"
LISTED = (
    "assistants",
    "data",
    "debugging",
    "doctor",
    "experiments",
    "lint",
    "loop",
    "model",
    "postmortem",
    "probes",
    "runs",
    "supervision",
    "symptoms",
    "syntax",
)
"""The other folders are found by listing them, or export all their files."""
FOUND = ("remedies", "speedups")
"""Rooms below these folders, with files that are found by listing."""
FILES = 16
"""Files of a room, with its `__init__`."""
ONE_PER_FILE = ("rules", "experiments/changes/remedies")

NAMES = {
    path: ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imported(path):
    """Return the modules of the package that a module imports when it is imported."""
    known = set(NAMES.values())
    waiting = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            inner = [f"{node.module}.{name.name}" for name in node.names]
            yield from (name if name in known else node.module for name in inner if {name, node.module} & known)
        waiting += ast.iter_child_nodes(node)


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: set(imported(path)) - {name} for path, name in NAMES.items()}
    assert sum(map(len, graph.values())) > 1000
    TopologicalSorter(graph).prepare()


FIRST = """
import importlib, json, sys
import torch
failed = []
for name in sys.argv[1:]:
    for module in [one for one in sys.modules if one.startswith("truestep")]:
        del sys.modules[module]
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed.append(f"{name}: {error}")
print(json.dumps(failed))
"""


@pytest.mark.program
def test_each_probe_can_be_imported_first():
    """The circles that the packages make are not those of single modules."""
    names = [name for name in NAMES.values() if name.startswith("truestep.probes.")]
    assert len(names) > 100
    done = subprocess.run([sys.executable, "-c", FIRST, *names], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_the_docstring_of_a_room_names_its_files():
    missing = {}
    for place in LISTED:
        for path in sorted((PACKAGE / place).rglob("__init__.py")):
            if path.parent.name in FOUND:
                continue
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            files = {file.stem for file in path.parent.glob("*.py")} - {"__init__"}
            files |= {inner.parent.name for inner in path.parent.glob("*/__init__.py")}
            missing[str(path.parent)] = sorted(file for file in files if not re.search(rf"\b{file}\b", text))
    assert len(missing) > 15
    unnamed = {room: files for room, files in missing.items() if files}
    assert unnamed == {}, "name these files in the docstring of `__init__.py` of their room"


def test_a_room_has_few_files():
    counts = {
        str(folder.relative_to(PACKAGE)): len(list(folder.glob("*.py")))
        for folder in PACKAGE.rglob("*/")
        if folder.is_dir()
    }
    full = {room: count for room, count in counts.items() if count > FILES and room not in ONE_PER_FILE}
    assert full == {}, f"a room must have at most {FILES} files: extend one of them, or make a room below it"
