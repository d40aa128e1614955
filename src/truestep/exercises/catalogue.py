"""The exercises: their scripts, symptoms, hints and solutions."""

from __future__ import annotations

import ast
import difflib
import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

from truestep.errors import UsageError

_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Exercise:
    """An exercise of either kind."""

    name: str
    hint: str
    why: str
    """Explanation of the solution."""

    @property
    def file(self) -> str:
        """Name of the file that is written."""
        return self.name.replace("-", "_") + ".py"

    @property
    def title(self) -> str:
        """First line of the docstring of the file."""
        return (ast.get_docstring(ast.parse(self.text())) or "").split("\n")[0]

    def text(self) -> str:
        """Return the content of the file."""
        raise NotImplementedError

    def solution(self) -> str:
        """Return the content of the file with the solution."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class PlantedFailure(Exercise):
    """A training script with one failure."""

    account: str
    """Line of the report's ledger in which it shows."""
    symptom: str
    look: str
    rule: str
    """Rule that finds it."""
    metric: str
    """Name before the colon on the last line of the output."""
    healthy: tuple[float, float]
    """Range of the metric of a mended script."""
    mends: tuple[tuple[str, str], ...]
    """Texts of the script, each with its replacement in the solution."""

    def text(self) -> str:
        return (_HERE / "planted" / self.file).read_text(encoding="utf-8")

    def solution(self) -> str:
        text = self.text()
        for before, after in self.mends:
            text = text.replace(before, after)
        return text


@dataclass(frozen=True, slots=True)
class FunctionsToWrite(Exercise):
    """A file with functions without a body, to be written."""

    def text(self) -> str:
        return without_bodies(self.solution())

    def solution(self) -> str:
        return (_HERE / "written" / self.file).read_text(encoding="utf-8")


def without_bodies(text: str) -> str:
    """Return a program in which each function has its docstring, and raises NotImplementedError.

    >>> print(without_bodies("def one():\\n    'Return 1.'\\n    return 1"))
    def one():
        'Return 1.'
        raise NotImplementedError
    """
    lines = text.splitlines()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: node.lineno, reverse=True):
        first, last = node.body[1], node.body[-1]
        assert last.end_lineno is not None
        lines[first.lineno - 1 : last.end_lineno] = [" " * first.col_offset + "raise NotImplementedError"]
    return "\n".join(lines) + "\n" * text.endswith("\n")


@functools.cache
def exercises() -> dict[str, Exercise]:
    """Return all exercises by name, in the order of the list.

    >>> exercises()["long-memory"].title
    'Read digits with a small network and Adam.'
    """
    found: dict[str, Exercise] = {}
    for name, entry in tomllib.loads((_HERE / "catalogue.toml").read_text(encoding="utf-8")).items():
        low, high = entry.pop("healthy")
        mends = tuple((before, after) for before, after in entry.pop("mends"))
        found[name] = PlantedFailure(name=name, healthy=(low, high), mends=mends, **entry)
    for name, entry in tomllib.loads((_HERE / "functions.toml").read_text(encoding="utf-8")).items():
        found[name] = FunctionsToWrite(name=name, **entry)
    return found


def exercise(name: str) -> Exercise:
    """Return an exercise by its name, or by the name of its file.

    Raises:
        UsageError: no exercise has that name.
    """
    asked = name.removesuffix(".py").replace("_", "-")
    if asked not in exercises():
        near = difflib.get_close_matches(asked, exercises(), n=1)
        raise UsageError(
            f'"{name}" is not an exercise',
            expected="expected a name from the list of `truestep exercise`",
            remedy=f"write truestep exercise {near[0] if near else next(iter(exercises()))}",
        )
    return exercises()[asked]
