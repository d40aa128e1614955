"""Fixes in notebooks: made in the code of all cells, then written into the sources of the cells that changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from truestep import source
from truestep.events import Site
from truestep.findings import Finding
from truestep.fixes import Proposal, Result, Wanted
from truestep.fixes.files import FileText, read
from truestep.lint.cell_sources import with_sources
from truestep.lint.notebooks import python_of
from truestep.lint.reading import LARGEST_NOTEBOOK
from truestep.report import fixes
from truestep.report.fixes import Offer
from truestep.source import SourceFile

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
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        path = of_notebook(finding.primary.site)
        if path and not finding.suppressed:
            by_path.setdefault(path, []).append(finding)
    found = []
    for path, several in by_path.items():
        file = given if given is not None and str(given.path) == path else read(Path(path), LARGEST_NOTEBOOK)
        cells = None if file is None else cells_of(path, file.text)
        if file is None or cells is None:
            continue
        placed = [Wanted.of(moved) for one in several if (moved := cells.moved(one)) is not None]
        wanted = list(dict.fromkeys(one for one in placed if one is not None))
        result = fixes.made(path, cells.text, wanted, unsafe=unsafe, detect=detect)
        changed = cells.divided(result.new) if result.applied else None
        new = None if changed is None else document(file.text, changed)
        if new is not None:
            found.append(Offer(file, Result(file.text, new, result.applied, result.left)))
    return found


@dataclass(frozen=True, slots=True)
class CellFix:
    """The fix of a finding in a notebook."""

    proposal: Proposal
    """The fix in the text of all cells."""
    path: str
    cells: tuple[tuple[int, Proposal], ...]
    """The fix in each cell that it changes, with the number of the cell."""
    json: Proposal
    """The fix in the file of the notebook."""

    def document(self) -> dict[str, Any]:
        """Return the fix as plain values of JSON, as `truestep.report.fixes.document` does; lines count in the cell."""
        shown = source.posix(source.displayed(self.path))
        return {
            "title": self.proposal.title,
            "safe": self.proposal.safe,
            "edits": [
                {"cell": number, "line": line, "lines": count, "text": "".join(new)}
                for number, fix in self.cells
                for line, count, new in fix.hunks()
            ],
            "diff": "".join(fix.diff(f"{shown}:cell {number}") for number, fix in self.cells),
        }


def fix_of(finding: Finding) -> CellFix | None:
    """Return the fix of a finding in a cell of a notebook; None if no single edit is certain.

    There is none either if the file does not contain the cell that was checked.
    """
    path, site = of_notebook(finding.primary.site), finding.primary.site
    file = read(Path(path), LARGEST_NOTEBOOK) if path and not finding.suppressed else None
    cells = None if file is None else cells_of(path, file.text)
    moved = None if cells is None else cells.moved(finding)
    if file is None or cells is None or moved is None or site is None:
        return None
    here = int(site.path.rpartition(" ")[2]) - 1
    if source.read(site.path).lines != SourceFile.from_text(site.path, cells.sources[here]).lines:
        return None
    proposal = fixes.proposed(cells.text, moved)
    changed = None if proposal is None else cells.divided(proposal.new)
    new = None if not changed else document(file.text, changed)
    if proposal is None or not changed or new is None:
        return None
    inside = tuple(
        (index + 1, replace(proposal, old=cells.sources[index], new=text)) for index, text in sorted(changed.items())
    )
    return CellFix(proposal, path, inside, replace(proposal, old=file.text, new=new))


@dataclass(frozen=True, slots=True)
class Cells:
    """The Python cells of a notebook as one text, which can be edited and divided again."""

    path: str
    text: str
    """Cells with a border between two of them; lines of IPython are statements with a mark."""
    starts: dict[int, int]
    """First line in the text of each cell, by the index of the cell in the notebook."""
    sources: dict[int, str]
    hidden: tuple[str, ...]
    """The lines of IPython, by the number in their mark."""

    @classmethod
    def of(cls, path: str, codes: Mapping[int, str]) -> Cells | None:
        """Return the cells of a notebook; None if its code has the marks already.

        Args:
            path: path of the notebook.
            codes: sources of the cells with code, by their index in the notebook.
        """
        if any(_MARK in code or _BORDER in code for code in codes.values()):
            return None
        lines: list[str] = []
        starts, sources, hidden = dict[int, int](), dict[int, str](), list[str]()
        for index, code in codes.items():
            plain = code.split("\n")
            changed = python_of(plain) if "\r" not in code else []
            if not any(line.strip() for line in changed):
                continue
            lines += [_BORDER] if starts else []
            starts[index], sources[index] = len(lines) + 1, code
            for old, new in zip(plain, changed, strict=True):
                if old == new:
                    lines.append(old)
                else:
                    lines.append(f"{new or 'pass'}  {_MARK}{len(hidden)}")
                    hidden.append(old)
        return cls(path, "\n".join(lines) + "\n", starts, sources, tuple(hidden))

    def moved(self, finding: Finding) -> Finding | None:
        """Return a finding with its places in the text; None if its cell is left out."""
        site = None if finding.primary.site is None else self._site(finding.primary.site)
        if site is None:
            return None
        related = [
            one if one.site is None else replace(one, site=place)
            for one in finding.related
            if one.site is None or (place := self._site(one.site)) is not None
        ]
        return replace(finding, primary=replace(finding.primary, site=site), related=tuple(related))

    def _site(self, site: Site) -> Site | None:
        found = _CELL.match(site.path)
        start = self.starts.get(int(found["number"]) - 1) if found is not None and found["path"] == self.path else None
        if start is None:
            return None
        end = site.end_line + start - 1 if site.end_line > 0 else site.end_line
        return replace(site, path=self.path, line=site.line + start - 1, end_line=end)

    def divided(self, text: str) -> dict[int, str] | None:
        """Return the sources of the cells that an edit of the text changes; None if it is not possible in cells."""
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
        changed = {index: code for index, code in new.items() if code != self.sources[index]}
        if any(index > min(changed) and self._imports(index, code) for index, code in changed.items()):
            return None
        return changed

    def _imports(self, index: int, code: str) -> bool:
        """Return True if a new source of a cell has another import, which other cells need before it."""
        return len(_IMPORT.findall(code)) > len(_IMPORT.findall(self.sources[index]))


def cells_of(path: str, text: str) -> Cells | None:
    """Return the cells of the JSON of a notebook; None if its code has the marks already."""
    cells = enumerate(_cells(text))
    return Cells.of(path, {index: _code(cell) for index, cell in cells if cell.get("cell_type") == "code"})


def document(text: str, changed: Mapping[int, str]) -> str | None:
    """Return the JSON of a notebook with other sources of some cells; None if it would change anything else."""
    new = with_sources(text, changed)
    return new if _sources_of(new) == {**_sources_of(text), **changed} else None


def _is_magic(code: str) -> bool:
    return code.lstrip().startswith("%%")


def _sources_of(text: str) -> dict[int, str]:
    return dict(enumerate(map(_code, _cells(text))))


def _cells(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text.removeprefix("\ufeff"), strict=False)["cells"]
    return found


def _code(cell: Mapping[str, Any]) -> str:
    return "".join(cell.get("source", ""))
