"""The contents of the page for one run, as plain values."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from truestep import source
from truestep.findings import Outcome, Summary
from truestep.report import closing, coverage
from truestep.report.page.annotated import AnnotatedFile, annotated
from truestep.report.page.findings import Card, cards, post_mortem, uncounted
from truestep.report.page.line_times import Times
from truestep.report.page.pictures.heat import HeatMap, heat_maps
from truestep.report.page.score import ALWAYS, LANES, Bar, score
from truestep.rules import all_rules
from truestep.rules._page import parse

_ENDS = {
    "finished": "finished",
    "exited": "ended by sys.exit",
    "crashed": "crashed",
    "interrupted": "interrupted",
    "stopped": "stopped",
    "unfinished": "no end in the record",
}


@dataclass(frozen=True, slots=True)
class Wait:
    """The time of a run on one loader."""

    loader: str
    place: str
    waited: float
    span: float
    workers: float
    """Seconds of the wait for workers that were started again."""

    @property
    def share(self) -> float:
        """Per cent of the time in which the run waited."""
        return 100 * self.waited / self.span if self.span else 0.0


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One account."""

    account: str
    text: str
    rules: tuple[str, ...]
    ranks: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]], ...]
    """Tables of facts: name, heads and rows."""


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One rule."""

    rule: str
    title: str
    outcome: str
    reason: str
    severity: str
    account: str


@dataclass(frozen=True, slots=True)
class RunPage:
    """One run."""

    name: str
    script: str
    tone: str
    """"bad", "warned", "limited" or "good": the colour of the verdict."""
    headline: str
    lead: str
    """Second sentence of the verdict, or empty."""
    end: str
    steps: int
    torch: str
    ranks: int
    counts: dict[str, int]
    notes: tuple[str, ...]
    post_mortem: Card | None
    error: str
    """Type and first line of the error that ended the run."""
    cards: tuple[Card, ...]
    uncounted: tuple[tuple[str, str, str], ...]
    files: tuple[AnnotatedFile, ...]
    anchors: dict[str, str]
    """Path to the name of its file on the page, for files with lines."""
    lanes: tuple[str, ...]
    bars: tuple[Bar, ...]
    heat: tuple[HeatMap, ...]
    ledger: tuple[LedgerRow, ...]
    waits: tuple[Wait, ...]
    verdicts: tuple[VerdictRow, ...]
    errors: tuple[str, ...]
    """Tracebacks of errors inside TrueStep."""


def run_page(summary: Summary, name: str = "", times: Times | None = None) -> RunPage:
    """Return the contents of the page for a run.

    Args:
        summary: the run.
        name: name of the run beside others; empty for a single run.
        times: times by line, of a profile of the script.
    """
    count = closing.counts(summary)
    headline, lead = coverage.verdict(summary, count["failures"]), ""
    if summary.how == "crashed" and (summary.post_mortem is not None or count["failures"]):
        headline, lead = coverage.limits(summary)[0].text, headline
    bars = tuple(score(summary))
    shown = tuple(annotated(summary, times))
    played = {note.lane for bar in bars for note in bar.notes}
    return RunPage(
        name=name,
        script=source.posix(source.displayed(summary.script)),
        tone=_tone(summary, count["failures"]),
        headline=headline,
        lead=lead,
        end=_ENDS.get(summary.how, summary.how),
        steps=summary.steps,
        torch=summary.torch,
        ranks=summary.ranks,
        counts=count,
        notes=tuple(closing.notes(summary)),
        post_mortem=post_mortem(summary),
        error=summary.coverage.error,
        cards=tuple(cards(summary)),
        uncounted=tuple(uncounted(summary)),
        files=shown,
        anchors={file.at: f"f{place}" for place, file in enumerate(shown) if file.stretches},
        lanes=tuple(lane for lane in LANES if lane in played | ALWAYS),
        bars=bars,
        heat=heat_maps(summary),
        ledger=tuple(
            LedgerRow(line.account, line.text, line.rules, _of_ranks(line.facts), tuple(_tables(line.facts)))
            for line in summary.ledger
        ),
        waits=tuple(_waits(summary)),
        verdicts=tuple(_verdicts(summary)),
        errors=summary.internal_errors,
    )


def _tone(summary: Summary, failures: int) -> str:
    severities = {finding.severity.value for finding in summary.shown()}
    if "error" in severities or summary.post_mortem is not None or summary.how == "crashed":
        return "bad"
    if failures:
        return "warned"
    limited = coverage.limits(summary) or summary.missing_ranks or coverage.extent(summary) != "whole"
    return "limited" if limited else "good"


def _of_ranks(facts: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(rank), str(text)) for rank, text in facts.get("ranks", {}).items())


def _tables(facts: dict[str, Any]) -> list[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]]:
    """Return the facts of an account as tables: one for each list of dicts, and one of the single values."""
    tables = []
    single: dict[str, str] = {}
    for name, value in facts.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            heads = tuple(dict.fromkeys(key for row in value for key in row))
            rows = tuple(tuple(_cell(row.get(head)) for head in heads) for row in value)
            tables.append((_words(name), tuple(map(_words, heads)), rows))
        elif name != "ranks" and value not in ([], {}):
            single[_words(name)] = _cell(value)
    if single:
        tables.insert(0, ("", tuple(single), (tuple(single.values()),)))
    return tables


def _words(name: str) -> str:
    return name.removesuffix("_s").replace("_", " ") + (" (s)" if name.endswith("_s") else "")


def _cell(value: Any) -> str:
    """Return a fact of the ledger as text of one cell."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case int():
            return f"{value:,}"
        case {"path": str(path), "line": line, **rest}:
            function = rest.get("function", "<module>")
            inside = "" if function == "<module>" else f" in {function}"
            return f"{source.posix(source.displayed(path))}:{line}{inside}"
        case dict():
            return ", ".join(f"{_words(str(key))} {_cell(one)}" for key, one in value.items())
        case list() | tuple():
            joint = "; " if value and isinstance(value[0], dict) else ", "
            return joint.join(map(_cell, value)) or "-"
    return str(value) or "-"


def _waits(summary: Summary) -> list[Wait]:
    found = []
    for line in summary.ledger:
        for one in line.facts.get("loaders", ()) if line.account == "time" else ():
            place = "" if one["site"] is None else f"{os.path.basename(one['site']['path'])}:{one['site']['line']}"
            found.append(Wait(one["loader"], place, one["waited_s"], one["span_s"], one["restarting_workers_s"]))
    return found


def _verdicts(summary: Summary) -> list[VerdictRow]:
    """Return the rules: found, then clear, then not observed."""
    known = all_rules()
    rows = []
    for verdict in sorted(summary.verdicts, key=lambda one: list(Outcome).index(one.outcome)):
        rule = known.get(verdict.rule)
        title = parse(rule.__doc__ or "").title if rule is not None else ""
        severity, account = (rule.severity.value, rule.account) if rule is not None else ("", "")
        outcome = verdict.outcome.value.replace("-", " ")
        rows.append(VerdictRow(verdict.rule, title, outcome, verdict.reason, severity, account))
    return rows
