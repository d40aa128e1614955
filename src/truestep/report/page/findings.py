"""Findings and post-mortems with their lines of code, and the manual pages of their rules."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from truestep import source
from truestep.findings import Confidence, Finding, PostMortem, Summary
from truestep.report import closing
from truestep.report.page.code import Excerpt, excerpts
from truestep.rules import _proof, all_rules
from truestep.rules._page import Page, parse


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
    waiting: dict[str, list[Finding]] = {}
    for finding in summary.findings:
        if finding.explained_by and not finding.suppressed and finding.confidence is not Confidence.LOW:
            waiting.setdefault(finding.explained_by, []).append(finding)
    found = []
    for failure in closing.failures(summary):
        consequences = [_card(one) for one in waiting.pop(failure.finding.rule, ())]
        found.append(_card(failure.finding, failure.ranks, tuple(consequences)))
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


def _card(finding: Finding, ranks: tuple[int, ...] = (), consequences: tuple[Card, ...] = ()) -> Card:
    facts = [("seen", str(finding.seen)), ("confidence", finding.confidence.value)]
    facts += [("rank" if len(ranks) == 1 else "ranks", closing.numbers(ranks))] if ranks else []
    facts += [("cost", finding.cost)] if finding.cost else []
    help, added = _split(finding.help)
    place = _place(finding)
    code, notes = _code(finding)
    kind = finding.severity.value
    diff = tuple(_diff(finding.rule))
    return Card(finding.rule, kind, finding.message, place, code, notes, tuple(facts), help, added, diff, consequences)


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
