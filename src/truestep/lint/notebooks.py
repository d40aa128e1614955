"""Notebooks: the code of all cells as one text, and the cell of each line."""

from __future__ import annotations

import ast
import bisect
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from truestep.lint.results import Problem

_MAGIC = re.compile(r"^(\s*)(?:%|!|\?)|^\s*[\w.]+\?\??\s*$")
"""Lines of IPython: magics, shell commands, questions for help."""
_ASSIGNED = re.compile(r"^(\s*[\w.,\s]+=\s*)[%!]")


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code of a notebook."""

    text: str
    """All cells, in their order; lines of IPython are replaced by `pass`."""
    starts: tuple[int, ...]
    """First line of each cell in the text."""
    numbers: tuple[int, ...]
    """Number of each cell in the notebook, counted from 1 over all cells."""
    sources: tuple[str, ...]
    """Each cell as it is written."""

    @classmethod
    def of_cells(cls, codes: Iterable[tuple[int, str]]) -> Notebook:
        """Return the code of cells.

        Args:
            codes: number and source of each cell, in their order.

        >>> Notebook.of_cells([(1, "%time"), (3, "x = 1")]).text
        'pass\\nx = 1\\n'
        """
        cells = tuple(codes)
        parts: list[str] = []
        starts: list[int] = []
        for _, code in cells:
            starts.append(len(parts) + 1)
            parts += python_of(code.replace("\r\n", "\n").split("\n"))
        numbers, sources = tuple(number for number, _ in cells), tuple(code for _, code in cells)
        return cls("\n".join(parts) + "\n", tuple(starts), numbers, sources)

    def place(self, line: int) -> tuple[int, int]:
        """Return the cell, as an index of `numbers`, and the line in it of a line of the text."""
        cell = max(bisect.bisect_right(self.starts, line) - 1, 0)
        return cell, line - self.starts[cell] + 1

    def name(self, path: str, cell: int) -> str:
        """Return the name of a cell, as reports show it."""
        return f"{path}:cell {self.numbers[cell]}"


def notebook_of(path: str, text: str) -> Notebook | Problem:
    """Return the code of a notebook; a problem if the text is not a notebook."""
    try:
        document = json.loads(text)
        cells = document["cells"]
        language = document.get("metadata", {}).get("kernelspec", {}).get("language") or "python"
        codes = [
            (number, "".join(cell["source"]) if isinstance(cell["source"], list) else str(cell["source"]))
            for number, cell in enumerate(cells, start=1)
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Problem(path, "the file is not a notebook of format 4")
    if language.lower() != "python":
        codes = []
    return Notebook.of_cells(codes)


def python_of(lines: list[str]) -> list[str]:
    """Return a cell with lines of IPython replaced, and one that is not Python replaced as a whole."""
    first = next((line.strip() for line in lines if line.strip()), "")
    if first.startswith("%%"):
        keep = first.split()[0] in ("%%time", "%%timeit", "%%capture")
        lines = [line if keep and not line.startswith("%%") else "" for line in lines]
    changed = []
    for line in lines:
        magic = _MAGIC.match(line)
        if magic:
            line = f"{magic[1] or ''}pass"
        elif _ASSIGNED.match(line):
            line = _ASSIGNED.sub(r"\1None  #", line)
        changed.append(line)
    try:
        ast.parse("\n".join(changed))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [""] * len(changed)
    return changed
