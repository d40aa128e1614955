"""The report as one JSON document, described by report.schema.json and docs/reference/report-json.md."""

from __future__ import annotations

import json
from typing import Any

from truestep import __version__, source
from truestep.events import Site
from truestep.findings import Finding, Mark, PostMortem, Summary
from truestep.report import closing, coverage, fixes

SCHEMA = "truestep.report/1"


def render(summary: Summary) -> str:
    """Return the report as a JSON document."""
    return json.dumps(document(summary), indent=2, ensure_ascii=False) + "\n"


def document(summary: Summary) -> dict[str, Any]:
    """Return the report as plain values."""
    return {
        "schema": SCHEMA,
        "truestep": __version__,
        "torch": summary.torch or None,
        "script": source.displayed(summary.script),
        "ended": summary.how,
        "steps": summary.steps,
        "ranks": summary.ranks,
        "missing_ranks": list(summary.missing_ranks),
        "record": summary.record or None,
        "counts": closing.counts(summary),
        "headline": closing.headline(summary),
        "notes": closing.notes(summary),
        "coverage": _coverage(summary),
        "post_mortem": None if summary.post_mortem is None else _post_mortem(summary.post_mortem),
        "findings": [finding_document(finding) for finding in summary.findings],
        "verdicts": [
            {"rule": verdict.rule, "outcome": verdict.outcome.value, "reason": verdict.reason or None}
            for verdict in summary.verdicts
        ],
        "ledger": [
            {"account": line.account, "text": line.text, "rules": list(line.rules), "facts": _displayed(line.facts)}
            for line in summary.ledger
        ],
        "internal_errors": list(summary.internal_errors),
    }


def _displayed(facts: Any) -> Any:
    """Return the facts of an account with the paths of their sites as the report shows them."""
    if isinstance(facts, dict):
        shown = {key: _displayed(value) for key, value in facts.items()}
        return shown | {"path": source.posix(source.displayed(facts["path"]))} if "path" in facts else shown
    return [_displayed(value) for value in facts] if isinstance(facts, list | tuple) else facts


def _coverage(summary: Summary) -> dict[str, Any]:
    return {
        "extent": coverage.extent(summary),
        "limits": [{"slug": limit.slug, "text": limit.text} for limit in coverage.limits(summary)],
        "error": summary.coverage.error or None,
        "processes": summary.coverage.processes,
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """Return a finding as plain values."""
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "primary": _mark(finding.primary),
        "related": [_mark(mark) for mark in finding.related],
        "seen": {
            "count": finding.seen.count,
            "total": finding.seen.total,
            "unit": finding.seen.unit,
            "first_step": finding.seen.first_step,
        },
        "cost": finding.cost or None,
        "help": finding.help or None,
        "fix": None if (fix := fixes.fix_of(finding)) is None else fixes.document(fix),
        "suppressed": finding.suppressed,
        "rank": finding.rank,
        "explained_by": finding.explained_by or None,
    }


def _post_mortem(died: PostMortem) -> dict[str, Any]:
    return {
        "slug": died.slug,
        "error": died.error,
        "message": died.message,
        "primary": _mark(died.primary),
        "related": [_mark(mark) for mark in died.related],
        "facts": [{"key": key, "text": text} for key, text in died.facts],
        "help": died.help or None,
    }


def _mark(mark: Mark) -> dict[str, Any]:
    return {"label": mark.label, "site": None if mark.site is None else _site(mark.site)}


def _site(site: Site) -> dict[str, Any]:
    span = source.span(site)
    return {
        "path": source.posix(span.path),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "function": site.function,
        "text": span.text,
    }
