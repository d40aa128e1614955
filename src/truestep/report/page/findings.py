"""Findings and post-mortems with their lines of code, and the manual pages of their rules."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from truestep import source
from truestep.findings import Confidence, Finding, PostMortem, Summary
from truestep.fixes import Proposal
from truestep.fixes.proposal import lines
from truestep.report import closing, fixes
from truestep.report.page.code import Excerpt, Piece, colored, excerpts
from truestep.rules import _proof, all_rules
from truestep.rules._page import Page, parse

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class OwnFix:
    """A fix in the user's file."""

    title: str
    safe: bool
    diff: tuple[tuple[str, int, tuple[Piece, ...]], ...]
    """"+", "-", " ", or "@" for lines left out; the number of the line, in the fixed file for "+"; the line."""


@dataclass(frozen=True, slots=True)
class Card:
    """A finding, or a post-mortem."""

    rule: str
    kind: str
    """The severity, or "post-mortem"."""
    message: str
    place: str
    excerpts: tuple[Excerpt, ...]
    notes: tuple[str, ...] = ()
    """Labels of marks without a place."""
    facts: tuple[tuple[str, str], ...] = ()
    """Evidence: pairs of a name and a text."""
    help: str = ""
    added: tuple[str, ...] = ()
    """Lines of code of the fix."""
    fix: OwnFix | None = None
    """The fix in the user's file, if one is certain."""
    diff: tuple[tuple[str, str], ...] = ()
    """The fix in the program of the rule's proof: "+", "-", "@" or " ", and the line."""
    consequences: tuple[Card, ...] = ()


@dataclass(frozen=True, slots=True)
class Manual:
    """The manual page of a rule."""

    rule: str
    severity: str
    page: Page
    diff: tuple[tuple[str, str], ...] = ()
    """The fix in the program of its proof, as in `Card`."""


def cards(summary: Summary) -> list[Card]:
    """Return the failures in the order of the report, each with its consequences."""
    read_at = summary.timeline.read_at if summary.timeline is not None else 0.0
    waiting: dict[str, list[Finding]] = {}
    for finding in summary.findings:
        if finding.explained_by and not finding.suppressed and finding.confidence is not Confidence.LOW:
            waiting.setdefault(finding.explained_by, []).append(finding)
    found = []
    for failure in closing.failures(summary):
        consequences = [_card(one, read_at) for one in waiting.pop(failure.finding.rule, ())]
        found.append(_card(failure.finding, read_at, failure.ranks, tuple(consequences)))
    return found


def post_mortem(summary: Summary) -> Card | None:
    """Return the cause of the error that ended the run; None without one."""
    died = summary.post_mortem
    if died is None:
        return None
    help, added = _split(died.help)
    facts = (("error", died.error), *died.facts)
    return Card(died.slug, "post-mortem", died.message, _place(died), *_code(died), facts, help, added)


def uncounted(summary: Summary) -> list[tuple[str, str, str]]:
    """Return the findings that are not counted: rule, place and reason."""
    found = []
    for finding in summary.findings:
        if finding.suppressed:
            comment = source.suppression(finding)
            reason = f": {comment.reason}" if comment is not None and comment.reason else ""
            found.append((finding.rule, _place(finding), f"suppressed{reason}"))
        elif finding.confidence is Confidence.LOW and not finding.explained_by:
            found.append((finding.rule, _place(finding), f"of low confidence: {finding.message}"))
    return found


def manuals(rules: Iterable[str]) -> list[Manual]:
    """Return the manual pages of these rules, by name."""
    known = all_rules()
    return [
        Manual(id, known[id].severity.value, parse(known[id].__doc__ or ""), tuple(_diff(id)))
        for id in sorted(set(rules))
        if id in known
    ]


def _card(finding: Finding, read_at: float, ranks: tuple[int, ...] = (), consequences: tuple[Card, ...] = ()) -> Card:
    facts = [("seen", str(finding.seen)), ("confidence", finding.confidence.value)]
    facts += [("rank" if len(ranks) == 1 else "ranks", closing.numbers(ranks))] if ranks else []
    facts += [("cost", finding.cost)] if finding.cost else []
    help, added = _split(finding.help)
    place = _place(finding)
    code, notes = _code(finding)
    kind = finding.severity.value
    diff, fix = tuple(_diff(finding.rule)), _own_fix(finding, read_at)
    return Card(
        finding.rule, kind, finding.message, place, code, notes, tuple(facts), help, added, fix, diff, consequences
    )


def _own_fix(finding: Finding, read_at: float) -> OwnFix | None:
    """Return the fix of a finding; None without one, or if the file was written after the run had read it."""
    fix = None if finding.primary.site is None else fixes.fix_of(finding)
    if fix is None or finding.primary.site is None:
        return None
    if read_at and os.stat(finding.primary.site.path).st_mtime > read_at:
        return None
    return OwnFix(fix.title, fix.safe, tuple(_numbered(fix)))


def _numbered(fix: Proposal) -> Iterable[tuple[str, int, tuple[Piece, ...]]]:
    """Yield the lines of the diff of a fix with their numbers."""
    before, after = (tuple(text.rstrip("\r\n") for text in lines(whole)) for whole in (fix.old, fix.new))
    old = new = 0
    for line in fix.diff().split("\n"):
        sign, place = line[:1], _HUNK.match(line)
        if place is not None:
            if old:
                yield "@", 0, ()
            old, new = int(place[1]), int(place[2])
        elif sign in ("+", "-", " ") and line:
            yield sign, new if sign == "+" else old, colored(after, new) if sign == "+" else colored(before, old)
            old, new = old + (sign != "+"), new + (sign != "-")


def _code(found: Finding | PostMortem) -> tuple[tuple[Excerpt, ...], tuple[str, ...]]:
    loose = tuple(mark.label for mark in (found.primary, *found.related) if mark.site is None)
    return tuple(excerpts(found.primary, found.related)), loose


def _place(found: Finding | PostMortem) -> str:
    site = found.primary.site
    return "" if site is None else f"{source.posix(source.displayed(site.path))}:{site.line}"


def _split(help: str) -> tuple[str, tuple[str, ...]]:
    """Return the sentence of a fix, and its lines of code."""
    first, *rest = help.split("\n")
    return first, tuple(rest)


def _diff(rule: str) -> Iterable[tuple[str, str]]:
    folder = _proof.find(rule)
    if folder is None:
        return
    try:
        bad, good = (_program((folder / name).read_text(encoding="utf-8")) for name in ("bad.py", "good.py"))
    except OSError:
        return
    for position, line in enumerate(difflib.unified_diff(bad, good, n=2, lineterm="")):
        if position > 1:
            yield (line[0], line[1:]) if line[0] in "+- " else ("@", line)


def _program(text: str) -> list[str]:
    """Return the lines of a program of a proof, without the mark of its mistake and its first comment."""
    return [line.partition("  # error: ")[0] for line in text.splitlines()]
