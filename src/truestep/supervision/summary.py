"""The summary of one run, for the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from truestep.events import RunStarted
from truestep.findings import Finding, LedgerLine, PostMortem, Summary, shown
from truestep.source import suppressed
from truestep.supervision.belongs import placed
from truestep.supervision.judge import Judge
from truestep.supervision.root_causes import rooted
from truestep.supervision.uncalled import pointed


def summarise(
    judge: Judge,
    started: RunStarted,
    how: str,
    *,
    errors: list[str],
    record: str = "",
    given_up: str = "",
    blind: str = "",
    post_mortem: PostMortem | None = None,
    error: str = "",
) -> Summary:
    """Return the summary of a judged run, with suppressed findings marked.

    Args:
        judge: the rules, after the end of the run.
        started: the start of the run.
        how: the kind of end.
        errors: internal errors of probes.
        record: folder of the record, or empty.
        given_up: reason why costly reads were given up, or empty.
        blind: reason why supervision ended before the run, or empty.
        post_mortem: diagnosis of the error that ended the run, or None.
        error: type and first line of the exception that ended the run, or empty.
    """
    findings = tuple(marked_findings(judge))
    return Summary(
        script=started.script,
        how=how,
        steps=judge.progress.step,
        findings=findings,
        verdicts=tuple(judge.verdicts(given_up=given_up, blind=blind)),
        internal_errors=(*errors, *judge.errors),
        torch=started.torch,
        ranks=started.world_size,
        record=record,
        post_mortem=post_mortem,
        coverage=judge.extent.coverage(judge.progress, error),
        ledger=tuple(ledger(judge, shown(findings))),
        rank_facts=judge.rank_facts(),
    )


def ledger(judge: Judge, findings: Iterable[Finding]) -> Iterator[LedgerLine]:
    """Yield the accounts of a run, marked with the findings that belong to them."""
    found: dict[str, dict[str, None]] = {}
    accounts = {rule.id: rule.account for rule in judge.rules}
    for finding in findings:
        found.setdefault(accounts[finding.rule], {})[finding.rule] = None
    for account, entry in judge.entries():
        yield LedgerLine(account, entry.text, entry.facts, tuple(found.get(account, ())))


def marked_findings(judge: Judge) -> list[Finding]:
    """Return the findings so far, with suppressed ones and consequences of others marked."""
    found = (replace(placed(pointed(finding)), suppressed=suppressed(finding)) for finding in judge.findings())
    return rooted(found, {rule.id: type(rule) for rule in judge.rules})
