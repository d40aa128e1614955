"""Suspicions compared with the record of a run: a run confirms some of them, and shows others to be harmless."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from truestep import source
from truestep.events import Site
from truestep.findings import Finding, Mark, Outcome, Summary


class Ran:
    """Places of the user's files that a record mentions: lines that a run has passed.

    Args:
        places: sites of the record.
    """

    def __init__(self, places: Iterable[Site]) -> None:
        self._lines: set[tuple[str, int]] = set()
        self._functions: set[tuple[str, str]] = set()
        for site in places:
            path = str(Path(site.path).absolute())
            self._lines.update((path, line) for line in range(site.line, max(site.line, site.end_line) + 1))
            self._functions.add((path, _last(site.function)))

    def passed(self, finding: Finding) -> bool:
        """Return True if the run has passed a line of a finding, or a line of its function."""
        for mark in (finding.primary, *finding.related):
            site = mark.site
            if site is None:
                continue
            path = str(Path(_file(site.path)).absolute())
            inside = site.function not in ("", "<module>") and (path, _last(site.function)) in self._functions
            if inside or any((path, n) in self._lines for n in range(site.line, max(site.line, site.end_line) + 1)):
                return True
        return False


def places_of(record: Path) -> Ran:
    """Return the places that a record mentions."""
    found: list[Site] = []
    for file in sorted(record.rglob("*.jsonl")) if record.is_dir() else [record]:
        with contextlib.suppress(OSError), file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith('{"site":'):
                    with contextlib.suppress(ValueError, KeyError, TypeError):
                        found.append(Site(*json.loads(line)["at"]))
    return Ran(found)


def compared(
    findings: Iterable[Finding], summary: Summary, ran: Ran
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the findings that remain, those of the run marked as such, and the ones that the run shows to be harmless.

    Args:
        findings: those of the syntax.
        summary: the run.
        ran: the places that the run has passed: of a line that it did not, it says nothing.
    """
    clear = {one.rule for one in summary.verdicts if one.outcome is Outcome.CLEAR}
    kept, cleared = [], []
    for one in findings:
        same = next((each for each in summary.findings if each.rule == one.rule and _near(each, one)), None)
        if same is not None:
            note = Mark(None, f"the run shows it too: {same.seen}")
            kept.append(replace(one, confidence=same.confidence, cost=same.cost, related=(*one.related, note)))
        elif one.rule in clear and ran.passed(one):
            cleared.append(one)
        else:
            kept.append(one)
    return tuple(kept), tuple(cleared)


def _near(seen: Finding, one: Finding) -> bool:
    """Return True if a finding of a run and one of the syntax mark a common line, or lines of one function."""
    return bool(_marked(seen) & _marked(one))


def _marked(finding: Finding) -> set[tuple[str, int | str]]:
    """Return the lines of a finding and the functions around them, each with its file."""
    found: set[tuple[str, int | str]] = set()
    for mark in (finding.primary, *finding.related):
        if mark.site is not None:
            path = str(Path(_file(mark.site.path)).absolute())
            found.add((path, mark.site.line))
            if mark.site.function not in ("", "<module>"):
                found.add((path, _last(mark.site.function)))
    return found


def _last(function: str) -> str:
    return function.rpartition(".")[2]


def _file(path: str) -> str:
    """Return the notebook of a cell, or the path itself."""
    return source.posix(path).partition(".ipynb:cell ")[0] + ".ipynb" if ".ipynb:cell " in path else path
