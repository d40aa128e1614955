"""Several runs beside each other: their findings and their ledgers in one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from truestep.report.page.run_page import RunPage


@dataclass(frozen=True, slots=True)
class Row:
    """A rule or an account, with one cell per run."""

    head: str
    cells: tuple[str, ...]
    differs: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """Several runs."""

    facts: tuple[Row, ...]
    findings: tuple[Row, ...]
    ledger: tuple[Row, ...]


def compared(runs: Sequence[RunPage]) -> Comparison:
    """Return the rows that compare runs."""
    facts = [
        _row("script", [run.script for run in runs]),
        _row("end", [run.end for run in runs]),
        _row("steps", [f"{run.steps:,}" for run in runs]),
        _row("torch", [run.torch or "-" for run in runs]),
        _row("failures", [f"{run.counts['failures']:,}" for run in runs]),
        _row("rules clear", [f"{run.counts['clear']:,}" for run in runs]),
        _row("not observed", [f"{run.counts['not_observed']:,}" for run in runs]),
    ]
    rules = dict.fromkeys(card.rule for run in runs for card in run.cards)
    findings = [_row(rule, [_found(run, rule) for run in runs]) for rule in rules]
    accounts = dict.fromkeys(row.account for run in runs for row in run.ledger)
    texts = [{row.account: row.text for row in run.ledger} for run in runs]
    ledger = [_row(account, [known.get(account, "-") for known in texts]) for account in accounts]
    return Comparison(tuple(facts), tuple(findings), tuple(ledger))


def names(records: Sequence[str]) -> list[str]:
    """Return short names of runs that differ: the ends of their folders, or numbers.

    >>> names(["runs/a", "runs/b"]), names(["a/record", "b/record"]), names(["", ""])
    (['a', 'b'], ['a/record', 'b/record'], ['run 1', 'run 2'])
    """
    parts = [PurePath(record).parts for record in records]
    for length in range(1, 4):
        short = ["/".join(part[-length:]) for part in parts]
        if len(set(short)) == len(short) and all(short):
            return short
    return [f"run {position}" for position in range(1, len(records) + 1)]


def _row(head: str, cells: Sequence[str]) -> Row:
    return Row(head, tuple(cells), len(set(cells)) > 1)


def _found(run: RunPage, rule: str) -> str:
    cards = [card for card in run.cards if card.rule == rule]
    if cards:
        more = f" and {len(cards) - 1} more" if len(cards) > 1 else ""
        seen = next((text for key, text in cards[0].facts if key == "seen"), "")
        return f"{cards[0].place}{more}, seen {seen}" if cards[0].place else f"seen {seen}"
    outcomes = [verdict for verdict in run.verdicts if verdict.rule == rule]
    if not outcomes:
        return "not checked"
    reason = f": {outcomes[0].reason}" if outcomes[0].reason else ""
    return f"{outcomes[0].outcome}{reason}"
