"""Fixes in notebooks: made in the code of all cells, then written into the sources of the cells that changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from truestep.events import Site
from truestep.findings import Finding
from truestep.fixes import Result, Wanted
from truestep.fixes.files import FileText, read
from truestep.lint.cell_sources import with_sources
from truestep.lint.notebooks import python_of
from truestep.lint.reading import LARGEST_NOTEBOOK
from truestep.report import fixes
from truestep.report.fixes import Offer

_CELL = re.compile(r"^(?P<path>.*\.ipynb):cell (?P<number>\d+)$")
_BORDER = "pass  # border of truestep"
_MARK = "# line of truestep "
_IMPORT = re.compile(r"^(?:import|from) ", re.MULTILINE)
_MARKED = re.compile(rf"^(\s*).*{_MARK}(\d+)$")


def of_notebook(site: Site | None) -> str:
    """Return the path of the notebook of a site; "" if it is in another file."""
    found = None if site is None else _CELL.match(site.path)
    return "" if found is None else found["path"]


def offers(
    findings: Sequence[Finding],
    *,
    unsafe: bool,
    detect: Callable[[str, str], Iterable[Finding]] | None = None,
    given: FileText | None = None,
) -> list[Offer]:
    """Return the fixes of findings in the cells of notebooks, by notebook, as `truestep.report.fixes.offers` does.

    The diff of an offer is that of the JSON.
    """
    by_path: dict[str, list[Wanted]] = {}
    for finding in findings:
        wanted = None if finding.suppressed else Wanted.of(finding)
        path = of_notebook(finding.primary.site)
        if wanted is not None and path:
            by_path.setdefault(path, []).append(wanted)
    found = []
    for path, several in by_path.items():
        file = given if given is not None and str(given.path) == path else read(Path(path), LARGEST_NOTEBOOK)
        cells = None if file is None else Cells.of(path, file.text)
        if file is None or cells is None:
            continue
        placed = [moved for one in several if (moved := cells.wanted(one)) is not None]
        result = fixes.made(path, cells.text, placed, unsafe=unsafe, detect=detect)
        new = cells.document(result.new) if result.applied else None
        if new is not None:
            found.append(Offer(file, Result(file.text, new, result.applied, result.left)))
    return found


@dataclass(frozen=True, slots=True)
class Cells:
    """The Python cells of a notebook as one text, which can be edited and divided again."""

    path: str
    json: str
    text: str
    """Cells with a border between two of them; lines of IPython are statements with a mark."""
    starts: dict[int, int]
    """First line in the text of each cell, by the index of the cell in the notebook."""
    sources: dict[int, str]
    hidden: tuple[str, ...]
    """The lines of IPython, by the number in their mark."""

    @classmethod
    def of(cls, path: str, text: str) -> Cells | None:
        """Return the cells of a notebook; None if its text has the marks already, or is not a notebook."""
        if _MARK in text or _BORDER in text:
            return None
        lines: list[str] = []
        starts, sources, hidden = dict[int, int](), dict[int, str](), list[str]()
        for index, cell in enumerate(json.loads(text.removeprefix("\ufeff"), strict=False)["cells"]):
            source = "".join(cell.get("source", ""))
            plain = source.split("\n")
            changed = python_of(plain) if cell.get("cell_type") == "code" and "\r" not in source else []
            if not any(line.strip() for line in changed):
                continue
            lines += [_BORDER] if starts else []
            starts[index], sources[index] = len(lines) + 1, source
            for old, new in zip(plain, changed, strict=True):
                if old == new:
                    lines.append(old)
                else:
                    lines.append(f"{new or 'pass'}  {_MARK}{len(hidden)}")
                    hidden.append(old)
        return cls(path, text, "\n".join(lines) + "\n", starts, sources, tuple(hidden))

    def wanted(self, one: Wanted) -> Wanted | None:
        """Return a failure with its places in the text; None if its cell is left out."""
        site = self._site(one.site)
        related = tuple(moved for other in one.related if (moved := self._site(other)) is not None)
        return None if site is None else replace(one, site=site, related=related)

    def _site(self, site: Site) -> Site | None:
        found = _CELL.match(site.path)
        start = self.starts.get(int(found["number"]) - 1) if found is not None and found["path"] == self.path else None
        if start is None:
            return None
        end = site.end_line + start - 1 if site.end_line > 0 else site.end_line
        return replace(site, path=self.path, line=site.line + start - 1, end_line=end)

    def document(self, text: str) -> str | None:
        """Return the JSON with the cells of an edited text; None if it cannot be divided into the same cells."""
        cells: list[list[str]] = [[]]
        seen: list[int] = []
        for line in text.removesuffix("\n").split("\n"):
            marked = _MARKED.match(line)
            if line == _BORDER:
                cells.append([])
            elif marked is not None:
                seen.append(int(marked[2]))
                cells[-1].append(marked[1] + self.hidden[seen[-1]].lstrip())
            else:
                cells[-1].append(line)
        new = {index: "\n".join(lines) for index, lines in zip(self.sources, cells, strict=False)}
        kept = len(cells) == len(self.sources) and seen == list(range(len(self.hidden)))
        if not kept or any(_is_magic(old) != _is_magic(new[index]) for index, old in self.sources.items()):
            return None
        changed = {index: source for index, source in new.items() if source != self.sources[index]}
        if any(index > min(changed) and self._imports(index, source) for index, source in changed.items()):
            return None
        document = with_sources(self.json, changed)
        return document if _sources_of(document) == {**_sources_of(self.json), **changed} else None

    def _imports(self, index: int, source: str) -> bool:
        """Return True if a new source of a cell has another import, which other cells need before it."""
        return len(_IMPORT.findall(source)) > len(_IMPORT.findall(self.sources[index]))


def _is_magic(source: str) -> bool:
    return source.lstrip().startswith("%%")


def _sources_of(text: str) -> dict[int, str]:
    cells = json.loads(text.removeprefix("\ufeff"), strict=False)["cells"]
    return {index: "".join(cell.get("source", "")) for index, cell in enumerate(cells)}
