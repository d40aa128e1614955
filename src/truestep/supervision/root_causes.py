"""Root causes: marks findings that follow from another one, and sorts findings by importance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from truestep.findings import Confidence, Finding, Severity
from truestep.rules import Rule

Rules = Mapping[str, type[Rule]]


def rooted(findings: Iterable[Finding], rules: Rules) -> list[Finding]:
    """Return findings in the order of a report, with the rule of the root cause in each consequence.

    A finding follows from another one if the other rule explains its rule, or leads to it and was not seen later.
    Suppressed findings and findings of low confidence are never causes.

    The order: errors first, then by confidence, then by the share of the affected steps, in tenths, then by time.
    """
    found = list(findings)
    causes: dict[str, int] = {}
    for finding in found:
        if not finding.suppressed and finding.confidence is not Confidence.LOW:
            causes[finding.rule] = min(_step(finding), causes.get(finding.rule, _step(finding)))
    roots = [replace(finding, explained_by=_root(finding, causes, rules)) for finding in found]
    return sorted(roots, key=_rank)


def _root(finding: Finding, causes: Mapping[str, int], rules: Rules) -> str:
    """Return the first rule in the chain of causes of a finding; empty if it has no cause."""
    chain, step = [finding.rule], _step(finding)
    while True:
        others = [rules[id] for id in causes if id not in chain and id in rules]
        cause = next((rule.id for rule in others if _causes(rule, causes[rule.id], chain[-1], step)), "")
        if not cause:
            return chain[-1] if len(chain) > 1 else ""
        chain.append(cause)
        step = causes[cause]


def _causes(rule: type[Rule], at: int, consequence: str, step: int) -> bool:
    return consequence in rule.explains or (consequence in rule.leads_to and at <= step)


def _step(finding: Finding) -> int:
    return finding.seen.first_step or 0


def _rank(finding: Finding) -> tuple[int, int, int, int]:
    seen = finding.seen
    share = min(seen.count / seen.total, 1.0) if seen.total and seen.unit == "steps" else 1.0
    severities, confidences = list(Severity), list(Confidence)
    return severities.index(finding.severity), confidences.index(finding.confidence), -round(share * 10), _step(finding)
