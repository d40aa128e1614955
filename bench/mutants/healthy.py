"""The healthy programs that mistakes are planted in, with their style and their half."""

from __future__ import annotations

import ast
import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

from source import Source, name_of

ROOT = Path(__file__).resolve().parents[2]
_WHERE = ("tests/wild/programs/*.py", "tests/wild/adversarial_healthy/*.py", "proofs/*/good.py", "examples/raw/*.py")


@dataclass(frozen=True)
class Program:
    """A healthy program."""

    path: Path

    @functools.cached_property
    def source(self) -> Source:
        """Its text, parsed."""
        return Source(self.path.read_text(encoding="utf-8"))

    @property
    def style(self) -> str:
        """Return the place of its backward pass: "flat", "function", "class", "closure", else "framework"."""
        return _style(self.source)

    @property
    def loader(self) -> bool:
        """Return True if it reads its data from a DataLoader."""
        return "DataLoader" in self.source.text

    @property
    def name(self) -> str:
        """Return the path below the root of the project, or the name of the file."""
        return str(self.path.relative_to(ROOT)) if self.path.is_relative_to(ROOT) else self.path.name

    @property
    def half(self) -> str:
        """Return the half it belongs to: misses are read in "open" programs only."""
        return half(self.name)


def half(name: str) -> str:
    """Return "open" or "aside" for a name, the same in each run."""
    return ("open", "aside")[hashlib.sha256(name.encode()).digest()[0] % 2]


def programs() -> list[Program]:
    """Return the healthy programs of the project."""
    return [Program(path) for pattern in _WHERE for path in sorted(ROOT.glob(pattern))]


def _style(source: Source) -> str:
    for call in source.calls:
        if name_of(call.func) != "backward":
            continue
        around: list[type] = []
        node: ast.AST = call
        while node in source.parents:
            node = source.parents[node]
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
                around.append(type(node))
        if ast.ClassDef in around:
            return "class"
        if len(around) > 1:
            return "closure"
        return "function" if around else "flat"
    return "framework"
