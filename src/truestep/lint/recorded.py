"""Suspicions compared with the record of a run: a run confirms some of them, and shows others to be harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from truestep import source
from truestep.findings import Finding, Mark, Outcome, Summary

_PATH = re.compile(r'"path"\s*:\s*"((?:[^"\\]|\\.)*)"')


def files_of(record: Path, summary: Summary) -> frozenset[str]:
    """Return the absolute paths of the user's files that a record mentions."""
    found = {summary.script}
    for file in sorted(record.rglob("*.jsonl")) if record.is_dir() else [record]:
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    found.update(match.replace("\\\\", "\\") for match in _PATH.findall(line))
        except OSError:
            continue
    return frozenset(str(Path(one).absolute()) for one in found if one)


def compared(
    findings: Iterable[Finding], summary: Summary, files: frozenset[str]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the findings that remain, those of the run marked as such, and the ones that the run shows to be harmless.

    Args:
        findings: those of the syntax.
        summary: the run.
        files: absolute paths of the files that ran.
    """
    clear = {one.rule for one in summary.verdicts if one.outcome is Outcome.CLEAR}
    kept, cleared = [], []
    for one in findings:
        site = one.primary.site
        path = "" if site is None else str(Path(_file(site.path)).absolute())
        same = next((each for each in summary.findings if each.rule == one.rule and _in(each, path)), None)
        if same is not None:
            note = Mark(None, f"the run shows it too: {same.seen}")
            kept.append(replace(one, confidence=same.confidence, cost=same.cost, related=(*one.related, note)))
        elif path in files and one.rule in clear:
            cleared.append(one)
        else:
            kept.append(one)
    return tuple(kept), tuple(cleared)


def _in(finding: Finding, path: str) -> bool:
    site = finding.primary.site
    return site is not None and str(Path(site.path).absolute()) == path


def _file(path: str) -> str:
    """Return the notebook of a cell, or the path itself."""
    return source.posix(path).partition(".ipynb:cell ")[0] + ".ipynb" if ".ipynb:cell " in path else path
