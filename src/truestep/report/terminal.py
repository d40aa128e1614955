"""The report as text: findings in the style of compiler messages, then the counts of rules clear and not observed."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.text import Text

from truestep.findings import PostMortem, Severity, Summary
from truestep.report import closing, coverage, excerpt
from truestep.report.closing import Failure
from truestep.report.excerpt import Row

SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.SPEED: "bold cyan"}
_DEATH = "bold magenta"
_STYLES = {
    "": "",
    "code": "",
    "gutter": "bold blue",
    "key": "bold",
    "message": "bold",
    "name": "bold",
    "note": "bold blue",
    "place": "",
    "related": "bold blue",
}


def render(summary: Summary, *, width: int, colour: bool) -> str:
    """Return the report as text for a terminal of this width."""
    out = io.StringIO()
    console = console_for(out, width=width, colour=colour)
    shown = closing.failures(summary)
    died = summary.post_mortem
    if died is not None:
        for row in _post_mortem(died, width):
            console.print(_styled(row, _DEATH))
        console.print()
    print_failures(console, shown, width)
    ledger = _ledger(summary, width)
    if len(shown) > 1 or (shown and (died is not None or ledger)):
        console.print()
    for row in ledger:
        console.print(_styled(row, Severity.ERROR))
    if ledger:
        console.print()
    for row in _closing(summary, width):
        console.print(_styled(row, Severity.ERROR))
    return out.getvalue()


_PLACE = re.compile(r"([^\s()]+):(\d+)")
"""A file name and a line in a line of the ledger."""
_LEDGER_ROWS = 10
_IN_BRACKETS = re.compile(r" \((?:line \d+|[^\s()]+:\d+)\)")


def console_for(out: TextIO, *, width: int, colour: bool) -> Console:
    """Return a console that gives equal texts for equal arguments, in any environment and front end."""
    return Console(
        file=out,
        width=width,
        force_terminal=colour,
        force_jupyter=False,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        soft_wrap=True,
        _environ={},
    )


def print_failures(console: Console, failures: Sequence[Failure], width: int) -> None:
    """Print findings with the lines of code, separated by empty lines."""
    for position, failure in enumerate(failures):
        if position:
            console.print()
        for row in _failure(failure, width):
            console.print(_styled(row, failure.finding.severity))


def print_closing(console: Console, headline: str, notes: Sequence[str], width: int, *, failed: bool) -> None:
    """Print a line of counts, and notes below it."""
    first, comma, rest = headline.partition(",")
    rows: list[Row] = [((first, "primary" if failed else "clear"), (comma + rest, ""))]
    for text in notes:
        begun, *more = excerpt.wrap(text, width - 6)
        rows.append((("note: ", "note"), (begun, "")))
        rows.extend((("      " + line, ""),) for line in more)
    for row in rows:
        console.print(_styled(row, Severity.ERROR))


def _failure(failure: Failure, width: int) -> list[Row]:
    finding = failure.finding
    margin = excerpt.gutter(finding)
    head = f"{finding.severity.value}[{finding.rule}]"
    first, *rest = excerpt.wrap(f"{head}: {finding.message}", width, hang=4) or [head]
    found: list[Row] = [((head, "primary"), (first.removeprefix(head), "message"))]
    found.extend((("    " + line, "message"),) for line in rest)
    found.extend(excerpt.rows(finding, width))
    ranks = failure.ranks
    where = f"; {'rank' if len(ranks) == 1 else 'ranks'} {closing.numbers(ranks)}" if ranks else ""
    found.extend(
        excerpt.note("seen", f"{finding.seen}{where}; confidence {finding.confidence.value}", margin, width),
    )
    for key, text in (("cost", finding.cost), ("explains", "; ".join(failure.explains)), ("help", finding.help)):
        if text:
            found.extend(excerpt.note(key, text, margin, width))
    found.extend(excerpt.note("more", f"truestep explain {finding.rule}", margin, width))
    return found


def _post_mortem(died: PostMortem, width: int) -> list[Row]:
    margin = excerpt.gutter(died)
    head = f"post-mortem[{died.slug}]"
    first, *rest = excerpt.wrap(f"{head}: {died.message}", width, hang=4)
    found: list[Row] = [((head, "primary"), (first.removeprefix(head), "message"))]
    found.extend((("    " + line, "message"),) for line in rest)
    found.extend(excerpt.rows(died, width))
    for key, text in (*died.facts, ("help", died.help)):
        if text:
            found.extend(excerpt.note(key, text, margin, width))
    return found


def _ledger(summary: Summary, width: int) -> list[Row]:
    """Return one row for each account, those with a finding marked by "!", and some of ranks that differ."""
    name = max((len(line.account) for line in summary.ledger), default=0)
    one_file = len({file for line in summary.ledger for file, _ in _PLACE.findall(line.text)}) == 1
    more = _LEDGER_ROWS - len(summary.ledger)
    rows: list[Row] = []
    for line in summary.ledger:
        rows.append(
            (
                (f"  {line.account:{name}} ", "name"),
                ("! " if line.rules else "  ", "primary" if line.rules else ""),
                (_fitted(line.text, width - name - 5, one_file=one_file), ""),
            )
        )
        texts: dict[str, list[int]] = {}
        for rank, text in line.facts.get("ranks", {}).items():
            texts.setdefault(text, []).append(int(rank))
        for text, ranks in texts.items():
            if more > 0:
                of_ranks = f"{'rank' if len(ranks) == 1 else 'ranks'} {closing.numbers(tuple(ranks))}: {text}"
                rows.append(((" " * (name + 5), ""), (_fitted(of_ranks, width - name - 5, one_file=one_file), "")))
                more -= 1
    return rows


def _fitted(text: str, room: int, *, one_file: bool) -> str:
    """Return a line of the ledger that fits: without the name of the only file, without places, without last facts."""
    if len(text) > room and one_file:
        text = _PLACE.sub(r"line \2", text)
    if len(text) > room:
        text = _IN_BRACKETS.sub("", text)
    if len(text) <= room:
        return text
    cut = max(text.rfind(mark, 0, room - 1) for mark in (", ", "; "))
    if cut <= room // 2:  # a word, unless it is as long as the line
        cut = text.rfind(" ", 0, room - 1)
    return text[: cut if cut > room // 2 else room - 2].rstrip(" ,;(") + " …"


def _closing(summary: Summary, width: int) -> list[Row]:
    first, *rest = excerpt.wrap(closing.headline(summary), width, hang=2)
    head, comma, tail = first.partition(",")
    limited = summary.post_mortem is not None or coverage.limits(summary)
    alive = "key" if limited else "clear"
    verdict = "primary" if closing.counts(summary)["failures"] else alive
    found: list[Row] = [((head, verdict), (comma + tail, ""))]
    found.extend((("  " + line, ""),) for line in rest)
    for text in closing.notes(summary):
        first, *rest = excerpt.wrap(text, width - 6)
        found.append((("note: ", "note"), (first, "")))
        found.extend((("      " + line, ""),) for line in rest)
    return found


def _styled(row: Row, severity: Severity | str) -> Text:
    styles = _STYLES | {
        "primary": severity if severity == _DEATH else SEVERITY_STYLES[Severity(severity)],
        "clear": "bold green",
    }
    return Text.assemble(*((piece, styles[name]) for piece, name in row), no_wrap=True, overflow="ignore")
