"""Count how many planted faults a selection of tests notices.

    python tools/plant_faults.py --faults 20 --seed 0 --among src/truestep/probes -- tests/probes -m "not slow"

Each fault is one change of one line: an operator swapped, a condition negated, a number changed, a statement deleted.
Faults are planted one at a time in a copy of the tree; a fault is noticed if pytest fails, or takes ten times as long.
With `--near`, the tests in the folder with the name of the room run first, and the selection if they notice nothing.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

ROOT = Path(__file__).resolve().parents[1]
Change = Callable[[cst.CSTNode], cst.CSTNode]
OPERATORS: dict[type[cst.CSTNode], type[cst.CSTNode]] = {
    cst.Add: cst.Subtract, cst.Subtract: cst.Add, cst.Multiply: cst.Divide, cst.Divide: cst.Multiply,
    cst.LessThan: cst.LessThanEqual, cst.LessThanEqual: cst.LessThan, cst.GreaterThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.GreaterThan, cst.Equal: cst.NotEqual, cst.NotEqual: cst.Equal, cst.Is: cst.IsNot,
    cst.IsNot: cst.Is, cst.In: cst.NotIn, cst.NotIn: cst.In, cst.And: cst.Or, cst.Or: cst.And,
}  # fmt: skip


def change_of(node: cst.CSTNode) -> tuple[str, cst.CSTNode] | None:
    """Return the name of the fault that can be planted at a node, and the node with it."""
    swapped = OPERATORS.get(type(node))
    if swapped is not None:
        return f"{type(node).__name__} becomes {swapped.__name__}", swapped()
    if isinstance(node, cst.If | cst.While | cst.IfExp):
        negated = cst.UnaryOperation(cst.Not(), node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))
        return "condition negated", node.with_changes(test=negated)
    if isinstance(node, cst.Integer):
        return f"{node.value} becomes {node.evaluated_value + 1}", cst.Integer(str(node.evaluated_value + 1))
    if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
        statement = node.body[0]
        text = isinstance(statement, cst.Expr) and isinstance(statement.value, cst.BaseString)
        if isinstance(statement, cst.Expr | cst.Assign | cst.AugAssign | cst.Return | cst.Raise) and not text:
            return "statement deleted", node.with_changes(body=[cst.Pass()])
    return None


class Places(cst.CSTVisitor):
    """Collects the nodes in functions where a fault can be planted, with their lines."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, cst.CSTNode]] = []
        self._functions = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._functions += isinstance(node, cst.FunctionDef)
        if isinstance(node, cst.Annotation):
            return False
        if self._functions and change_of(node) is not None:
            self.found.append((self.get_metadata(PositionProvider, node).start.line, node))
        return super().on_visit(node)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self._functions -= isinstance(original_node, cst.FunctionDef)


class Plant(cst.CSTTransformer):
    """Replaces one node."""

    def __init__(self, place: cst.CSTNode, by: cst.CSTNode) -> None:
        super().__init__()
        self._place, self._by = place, by

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        return self._by if original_node is self._place else updated_node


def faults(files: list[Path], count: int, seed: int) -> Iterator[tuple[Path, int, str, str]]:
    """Yield file, line, name of the fault and the changed source, at random lines of all files."""
    lines: list[tuple[Path, int]] = []
    places: dict[tuple[Path, int], list[cst.CSTNode]] = {}
    modules = {}
    for file in files:
        wrapper = MetadataWrapper(cst.parse_module(file.read_text(encoding="utf-8")))
        visitor = Places()
        wrapper.visit(visitor)
        modules[file] = wrapper.module
        for line, node in visitor.found:
            places.setdefault((file, line), []).append(node)
    lines = sorted(places)
    chance = random.Random(seed)
    for file, line in chance.sample(lines, min(count, len(lines))):
        node = chance.choice(places[file, line])
        change = change_of(node)
        assert change is not None
        changed = modules[file].visit(Plant(node, change[1]))
        yield file, line, change[0], changed.code


def copied(folder: Path) -> Path:
    """Copy the files that git tracks, and untracked ones that it does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def fails(tree: Path, selection: list[str], limit: float | None) -> str:
    """Return the first test that fails in a tree, "" where all pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", *selection]
    data = {"TRUESTEP_DATA": os.environ.get("TRUESTEP_DATA", str(ROOT.parent / "shared" / "data"))}
    environment = os.environ | data | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "does not end"
    if done.returncode == 0:
        return ""
    named = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return named[0] if named else f"pytest ends with {done.returncode}"


def timed(tree: Path, selection: list[str]) -> float:
    """Return ten times the seconds that a selection takes without a fault.

    Raises:
        SystemExit: a test fails without a fault.
    """
    begun = time.monotonic()
    if first := fails(tree, selection, None):
        sys.exit(f"without a fault: {first}")
    return 10 * (time.monotonic() - begun)


def nearest(tree: Path, file: Path) -> tuple[str, ...] | None:
    """Return the selection of the tests of the room of a file; None if it has none."""
    room = f"tests/{file.relative_to(tree / 'src' / 'truestep').parts[0]}"
    return (room, "-m", "not slow and not program") if (tree / room).is_dir() else None


def main() -> None:
    """Plant faults and print which were noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--among", nargs="+", type=Path, default=[Path("src/truestep")])
    parser.add_argument("--near", action="store_true", help="first run the tests of the room")
    parser.add_argument("selection", nargs="+")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        files = [file for place in chosen.among for file in sorted((tree / place).rglob("*.py")) or [tree / place]]
        limits = {tuple(chosen.selection): timed(tree, chosen.selection)}
        noticed = 0
        for file, line, name, changed in faults(files, chosen.faults, chosen.seed):
            near = nearest(tree, file) if chosen.near else None
            stages = [*([near] if near else []), tuple(chosen.selection)]
            for stage in stages:
                if stage not in limits:
                    limits[stage] = timed(tree, list(stage))
            original = file.read_bytes()
            file.write_text(changed, encoding="utf-8")
            failure = next(filter(None, (fails(tree, list(stage), limits[stage]) for stage in stages)), "")
            file.write_bytes(original)
            noticed += bool(failure)
            print(f"{file.relative_to(tree)}:{line}: {name}: {failure or 'NOT NOTICED'}", flush=True)
    print(f"{noticed} of {chosen.faults} noticed")


if __name__ == "__main__":
    main()
