"""The answers of ``truestep check``: one row for each rule that calls copies of the model or of the data."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from truestep import source
from truestep.config import Format
from truestep.events import Site
from truestep.findings import Confidence, Outcome, Summary
from truestep.report import closing, terminal
from truestep.report.json import finding_document
from truestep.rules import Rule, battery

SCHEMA = "truestep.check/1"
WIDTH = 80
_STYLES = {"failed": "bold red", "passed": "bold green", "not asked": "dim"}
"""Outcomes in the order of the table."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one check."""

    rule: str
    asks: str
    outcome: str
    """"passed", "failed" or "not asked"."""
    reason: str = ""
    """Why it was not asked."""
    site: Site | None = None
    """Line of the failure."""


def answers(summary: Summary) -> list[Answer]:
    """Return the answer to each check, in the order of the rules."""
    return [_answer(rule, summary) for rule in battery()]


def _answer(rule: type[Rule], summary: Summary) -> Answer:
    found = [finding for finding in summary.findings if finding.rule == rule.id]
    sure = [finding for finding in found if not finding.suppressed and finding.confidence is not Confidence.LOW]
    if sure:
        return Answer(rule.id, rule.asks, "failed", site=sure[0].primary.site)
    if found:
        reason = "a finding is suppressed" if found[0].suppressed else "the evidence for a failure is weak"
        return Answer(rule.id, rule.asks, "not asked", reason)
    verdict = next((verdict for verdict in summary.verdicts if verdict.rule == rule.id), None)
    if verdict is None:
        reason = "the configuration ignores this rule" if summary.verdicts else "the script did not import torch"
        return Answer(rule.id, rule.asks, "not asked", reason)
    if verdict.outcome is Outcome.CLEAR:
        return Answer(rule.id, rule.asks, "passed")
    return Answer(rule.id, rule.asks, "not asked", verdict.reason)


def render(summary: Summary, format: Format = "text", *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the answers as text or as a JSON document, followed by the findings of these rules."""
    if format == "json":
        return json.dumps(document(summary), indent=2, ensure_ascii=False) + "\n"
    width = min(width, WIDTH)
    out = io.StringIO()
    console = terminal.console_for(out, width=width, colour=colour)
    given = answers(summary)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for outcome, style in _STYLES.items():
        lines = _lines([answer for answer in given if answer.outcome == outcome])
        for place, line in enumerate(lines):
            table.add_row(Text("" if place else outcome, style=style), line)
    console.print(table, soft_wrap=False)
    console.print()
    console.print(Text(_closing(summary, given)), soft_wrap=False)
    for note in closing.notes(summary):
        console.print(Text(f"note: {note}"), soft_wrap=False)
    failures = closing.failures(summary)
    if failures:
        console.print()
    terminal.print_failures(console, failures, width)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _lines(given: list[Answer]) -> list[Text]:
    """Return the checks with one outcome: failures with rule and line, those not asked below their reason."""
    lines = []
    for reason in dict.fromkeys(answer.reason for answer in given):
        if reason:
            lines.append(Text(f"{reason}:", style="dim"))
        for answer in given:
            if answer.reason == reason:
                lines.append(Text(f"{'  ' if reason else ''}{answer.asks}"))
                if answer.outcome == "failed":
                    where = "" if answer.site is None else f" {source.displayed(answer.site.path)}:{answer.site.line}"
                    lines.append(Text(f"  {answer.rule}{where}", style="bold"))
    return lines


def _closing(summary: Summary, given: list[Answer]) -> str:
    """Return the counts of the answers, and the part of the script that they stand for."""
    counts = {outcome: sum(answer.outcome == outcome for answer in given) for outcome in _STYLES}
    steps = f"{summary.steps} optimizer step{'' if summary.steps == 1 else 's'}"
    ends = {"stopped": f"stopped after {steps}", "finished": f"the script ended after {steps}"}
    end = ends.get(summary.how, f"the script {summary.how} after {steps}")
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) + f"; {end}"


def document(summary: Summary) -> dict[str, Any]:
    """Return the answers and the findings as plain values."""
    return {
        "schema": SCHEMA,
        "script": source.displayed(summary.script),
        "ended": summary.how,
        "steps": summary.steps,
        "checks": [
            {
                "rule": answer.rule,
                "asks": answer.asks,
                "outcome": answer.outcome.replace(" ", "-"),
                "reason": answer.reason or None,
            }
            for answer in answers(summary)
        ],
        "findings": [finding_document(finding) for finding in summary.findings],
        "internal_errors": list(summary.internal_errors),
    }
