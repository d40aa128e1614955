"""Fixes of findings: proposed for a report, shown as a diff, and written to the files where that is asked for."""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from truestep import source
from truestep.findings import Finding
from truestep.fixes import Proposal, Result, Wanted, apply_all, propose_for
from truestep.fixes.files import FileText, read
from truestep.report.color import is_colored


@dataclass(frozen=True, slots=True)
class Offer:
    """The fixes of one file."""

    file: FileText
    result: Result
    changed: bool = False
    """Whether the file was written after the run began: its lines may be others than those that ran."""

    @property
    def path(self) -> str:
        """Path for people."""
        return source.posix(source.displayed(str(self.file.path)))


def fix_of(finding: Finding) -> Proposal | None:
    """Return the fix of a finding in its file; None if it has none, or is suppressed.

    A mistake in a fix never ends a report.
    """
    site = finding.primary.site
    if site is None or finding.suppressed:
        return None
    try:
        status = os.stat(site.path)
    except (OSError, ValueError):
        return None
    return _fix_of(finding, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=256)
def _fix_of(finding: Finding, _modified: int, _size: int) -> Proposal | None:
    assert finding.primary.site is not None
    file = read(finding.primary.site.path)
    return None if file is None else proposed(file.text, finding)


def proposed(text: str, finding: Finding) -> Proposal | None:
    """Return the fix of a finding in a text; None if it has none, or if the fix has a mistake."""
    try:
        return propose_for(text, finding)
    except Exception:
        if os.environ.get("TRUESTEP_DEBUG"):
            traceback.print_exc()
        return None


def offers(
    findings: Sequence[Finding],
    *,
    unsafe: bool,
    begun: float = 0.0,
    detect: Callable[[str, str], Iterable[Finding]] | None = None,
    given: FileText | None = None,
) -> list[Offer]:
    """Return the fixes of findings by file, in the order of the first finding of each.

    Args:
        findings: those that the report shows.
        unsafe: whether fixes that must be reviewed are included.
        begun: time at which the run began, in seconds since the epoch; 0 if the files are as the findings saw them.
        detect: returns the findings that are left in a file of this path with this text, for more passes over it.
        given: a text that is in no file, such as standard input, under its name.
    """
    by_path: dict[str, list[Wanted]] = {}
    for finding in findings:
        wanted = None if finding.suppressed else Wanted.of(finding)
        if wanted is not None and wanted not in by_path.setdefault(wanted.site.path, []):
            by_path[wanted.site.path].append(wanted)
    found = []
    for path, several in by_path.items():
        file = given if given is not None and str(given.path) == path else read(path)
        if file is None:
            continue
        changed = begun > 0 and os.stat(path).st_mtime > begun
        left = Result(file.text, file.text, left=tuple(several))
        result = left if changed else made(path, file.text, several, unsafe=unsafe, detect=detect)
        if result.applied or changed:
            found.append(Offer(file, result, changed))
    return found


def made(
    path: str,
    text: str,
    wanted: Sequence[Wanted],
    *,
    unsafe: bool,
    detect: Callable[[str, str], Iterable[Finding]] | None = None,
) -> Result:
    """Return a text with the fixes of several failures; without any if a fix has a mistake.

    Args:
        path: path of the file, for `detect`.
        text: the file.
        wanted: the failures.
        unsafe: whether fixes that must be reviewed are made as well.
        detect: see `offers`.
    """

    def again(now: str) -> list[Wanted]:
        assert detect is not None
        return [one for finding in detect(path, now) if (one := Wanted.of(finding)) is not None]

    try:
        return apply_all(text, wanted, unsafe=unsafe, detect=None if detect is None else again)
    except Exception:
        if os.environ.get("TRUESTEP_DEBUG"):
            traceback.print_exc()
        return Result(text, text, left=tuple(wanted))


def document(fix: Proposal) -> dict[str, Any]:
    """Return a fix as plain values of JSON."""
    return {
        "title": fix.title,
        "safe": fix.safe,
        "edits": [{"line": line, "lines": count, "text": "".join(new)} for line, count, new in fix.hunks()],
        "diff": fix.diff(),
    }


def render(found: Sequence[Offer], *, colour: bool) -> str:
    """Return the fixes as text: for each file their titles, then all changes as one unified diff."""
    parts = []
    for offer in found:
        if offer.changed:
            parts.append(f"no fix for {offer.path}: the file was changed after the run began\n")
            continue
        for fix in offer.result.applied:
            kind = "fix" if fix.safe else "unsafe fix"
            head = f"{kind}[{fix.rule}]"
            parts.append(f"{_styled(head, '1;32' if fix.safe else '1;33', colour)}: {fix.title}\n")
        parts.append(colored(offer.result.diff(offer.path), colour))
    return "".join(parts)


def offered(findings: Sequence[Finding], stream: TextIO, *, edit: bool, unsafe: bool, begun: float = 0.0) -> str:
    """Show the fixes of findings, and make them where that is asked for.

    Args:
        findings: those that the report shows.
        stream: where to show them.
        edit: whether the files are edited; without it all fixes are shown, also those to be reviewed.
        unsafe: whether fixes that must be reviewed are made as well.
        begun: see `offers`.

    Returns:
        A line for the user: the number of fixes, or how to make them.
    """
    found = offers(findings, unsafe=unsafe or not edit, begun=begun)
    if found:
        stream.write("\n")
    show(found, stream)
    made = [offer for offer in found if offer.result.applied]
    count = sum(len(offer.result.applied) for offer in made)
    if not count:
        return "no fix is certain for these findings" if findings else ""
    fixes = f"{count} {'fix' if count == 1 else 'fixes'}"
    if not edit:
        reviewed = sum(not fix.safe for offer in made for fix in offer.result.applied)
        if not reviewed:
            return f"{fixes} shown; --write makes {'it' if count == 1 else 'them'}"
        return f"{fixes} shown, {reviewed} to be reviewed; --write makes the others, with --unsafe-fixes all"
    for offer in made:
        offer.file.write(offer.result.new)
    return f"{fixes} made in {', '.join(offer.path for offer in made)}"


def show(found: Sequence[Offer], stream: TextIO) -> None:
    """Write the fixes to a stream, in colours where it shows them."""
    text = render(found, colour=is_colored(stream))
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, errors="replace").decode(encoding))
    stream.flush()


def colored(text: str, colour: bool) -> str:
    """Return a unified diff, in the usual colours if they are asked for."""
    if not colour:
        return text
    lines = []
    for line in text.splitlines(keepends=True):
        kind = "1" if line.startswith(("--- ", "+++ ")) else {"+": "32", "-": "31", "@": "36"}.get(line[:1], "")
        body = line.rstrip("\r\n")
        lines.append(_styled(body, kind, colour) + line[len(body) :] if kind else line)
    return "".join(lines)


def _styled(text: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text
