"""The report as SARIF 2.1.0, the format of GitHub code scanning, Azure DevOps and editors.

Standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from truestep import __version__, source
from truestep.events import Site
from truestep.findings import Confidence, Finding, Mark, Outcome, PostMortem, Severity, Summary
from truestep.fixes import Proposal
from truestep.report import closing, coverage, fixes
from truestep.rules import Rule, catalogue
from truestep.rules._page import parse

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.SPEED: "note"}
_PRECISIONS = {Confidence.HIGH: "very-high", Confidence.MEDIUM: "medium", Confidence.LOW: "low"}


def render(summary: Summary) -> str:
    """Return the report as a SARIF log."""
    return json.dumps(log(summary), indent=2, ensure_ascii=False) + "\n"


def log(summary: Summary) -> dict[str, Any]:
    """Return the report as a SARIF log of plain values."""
    judged = {verdict.rule for verdict in summary.verdicts} | {finding.rule for finding in summary.findings}
    ids = sorted(judged)
    died = summary.post_mortem
    found = results(summary, ids)
    if died is not None:
        found.insert(0, _death(died, len(ids), summary.script))
    properties = {
        "headline": closing.headline(summary),
        "extent": coverage.extent(summary),
        "ended": summary.how,
        "steps": summary.steps,
        "torch": summary.torch,
        "ranks": summary.ranks,
    }
    more = () if died is None else (f"post-mortem-{died.slug}",)
    return envelope((*ids, *more), found, _invocation(summary), properties)


def envelope(
    ids: Sequence[str], results: list[dict[str, Any]], invocation: dict[str, Any], properties: dict[str, Any]
) -> dict[str, Any]:
    """Return a SARIF log with these results.

    Args:
        ids: the rules, in the order of the indices in the results.
        results: see `results`.
        invocation: whether the tool succeeded, with its notifications.
        properties: further facts.
    """
    known = catalogue()
    driver = {
        "name": "truestep",
        "semanticVersion": _semantic(__version__),
        "version": __version__,
        "shortDescription": {"text": "Finds silent failures in PyTorch training loops."},
        "rules": [_rule(id, known.get(id)) for id in ids],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": results,
        "properties": properties,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(id: str, rule: type[Rule] | None) -> dict[str, Any]:
    descriptor: dict[str, Any] = {"id": id, "name": "".join(word.capitalize() for word in id.split("-"))}
    if rule is None:
        return descriptor
    page = parse(rule.__doc__ or "")
    return descriptor | {
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": f"{page.text('What it does')} {page.text('Why it matters')}".strip()},
        "help": {"text": page.text("Fix") or page.title, "markdown": page.markdown()},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {
            "precision": _PRECISIONS[rule.confidence],
            "problem.severity": "recommendation" if rule.severity is Severity.SPEED else rule.severity.value,
            "tags": ["pytorch", "training"],
        },
    }


def results(summary: Summary, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the findings as SARIF results; each has the index of its rule in the ids."""
    found = []
    seen: dict[str, int] = {}
    waiting = closing.consequences(summary)
    for finding in summary.findings:
        if finding.explained_by:  # listed under its cause
            continue
        explains = () if finding.suppressed else waiting.pop(finding.rule, ())
        print_ = _fingerprint(finding)
        number = seen[print_] = seen.get(print_, 0) + 1
        found.append(_result(finding, ids.index(finding.rule), f"{print_}:{number}", summary.script, explains))
    return found


def _death(died: PostMortem, index: int, script: str) -> dict[str, Any]:
    lines = [f"{died.message}: {died.primary.label}" if died.primary.label else died.message]
    lines += [*_links(died), *(f"{key}: {text}" for key, text in (*died.facts, ("help", died.help)) if text)]
    id = f"post-mortem-{died.slug}"
    result: dict[str, Any] = {
        "ruleId": id,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": "\n".join(lines)},
        "locations": [_location(died.primary.site, script)],
        "partialFingerprints": {"truestepFinding/v1": f"{_print([id], died.primary.site)}:1"},
        "properties": {"error": died.error},
    }
    related = [_related(number, mark) for number, mark in enumerate(died.related, start=1) if mark.site is not None]
    return result | ({"relatedLocations": related} if related else {})


def _location(site: Site | None, script: str) -> dict[str, Any]:
    place = _physical(site) if site is not None else {"artifactLocation": _artifact(script)}
    location: dict[str, Any] = {"physicalLocation": place}
    if site is not None:
        location["logicalLocations"] = [{"fullyQualifiedName": site.function, "kind": "function"}]
    return location


def _result(finding: Finding, index: int, fingerprint: str, script: str, explains: tuple[str, ...]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding, explains)},
        "locations": [_location(finding.primary.site, script)],
        "partialFingerprints": {"truestepFinding/v1": fingerprint},
        "properties": _properties(finding),
    }
    related = [_related(number, mark) for number, mark in enumerate(finding.related, start=1) if mark.site is not None]
    if related:
        result["relatedLocations"] = related
    made = fixes.fix_of(finding)
    if made is not None and finding.primary.site is not None:
        result["fixes"] = [fix(made, finding.primary.site.path)]
    if finding.suppressed:
        comment = source.suppression(finding)
        suppression = {"kind": "inSource" if comment else "external", "status": "accepted"}
        if comment is not None and comment.reason:
            suppression["justification"] = comment.reason
        result["suppressions"] = [suppression]
    return result


def fix(made: Proposal, path: str) -> dict[str, Any]:
    """Return the fix of a file as replaced lines, each from the start of its line to the start of the line below."""
    replacements = [
        {
            "deletedRegion": {"startLine": line, "startColumn": 1, "endLine": line + count, "endColumn": 1},
            "insertedContent": {"text": "".join(new)},
        }
        for line, count, new in made.hunks()
    ]
    return {
        "description": {"text": made.title if made.safe else f"{made.title} (to be reviewed)"},
        "artifactChanges": [{"artifactLocation": _artifact(path), "replacements": replacements}],
    }


def _message(finding: Finding, explains: tuple[str, ...]) -> str:
    """Return the finding as lines of text; related places are links that viewers can follow."""
    lines = [f"{finding.message}: {finding.primary.label}" if finding.primary.label else finding.message]
    lines += _links(finding)
    lines.append(f"seen: {finding.seen}; confidence {finding.confidence.value}")
    notes = {"cost": finding.cost, "explains": "; ".join(explains), "help": finding.help}
    lines.extend(f"{key}: {text}" for key, text in notes.items() if text)
    return "\n".join(lines)


def _links(finding: Finding | PostMortem) -> list[str]:
    marks = enumerate(finding.related, start=1)
    return [f"[{_link(mark.label)}]({number})" if mark.site is not None else mark.label for number, mark in marks]


def _link(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _properties(finding: Finding) -> dict[str, Any]:
    seen = finding.seen
    found: dict[str, Any] = {
        "confidence": finding.confidence.value,
        "count": seen.count,
        "total": seen.total,
        "unit": seen.unit,
        "firstStep": seen.first_step,
        "cost": finding.cost,
        "help": finding.help,
        "rankOfProcess": finding.rank,
    }
    return {key: value for key, value in found.items() if value is not None and value != ""}


def _related(number: int, mark: Mark) -> dict[str, Any]:
    assert mark.site is not None
    return {"id": number, "message": {"text": mark.label}, "physicalLocation": _physical(mark.site)}


def _physical(site: Site) -> dict[str, Any]:
    span = source.span(site)
    region: dict[str, Any] = {"startLine": span.line}
    if span.column is not None:
        region["startColumn"] = span.column
    if span.end_line is not None:
        region["endLine"] = span.end_line
    if span.end_column is not None:
        region["endColumn"] = span.end_column
    if span.text is not None and span.end_line in {None, span.line}:
        file = source.read(site.path)
        whole = file.line(span.line) or ""
        begin = (span.column or 1) - 1
        region["snippet"] = {"text": whole[begin : span.end_column - 1 if span.end_column else None].strip()}
    return {"artifactLocation": _artifact(site.path), "region": region}


def _artifact(path: str) -> dict[str, Any]:
    shown = source.displayed(path)
    if os.path.isabs(shown):
        return {"uri": Path(shown).as_uri()}
    # Notebook cells have names such as "<ipython-input-1-0a>", which must be quoted in a URI.
    return {"uri": quote(source.posix(shown)), "uriBaseId": "%SRCROOT%"}


def _invocation(summary: Summary) -> dict[str, Any]:
    notifications = [
        {
            "level": "note",
            "message": {"text": f"not observed: {verdict.reason}" if verdict.reason else "not observed"},
            "associatedRule": {"id": verdict.rule},
        }
        for verdict in summary.verdicts
        if verdict.outcome is Outcome.NOT_OBSERVED
    ]
    said = dict.fromkeys([*(limit.text for limit in coverage.limits(summary)), *closing.notes(summary)])
    notifications.extend({"level": "warning", "message": {"text": text}} for text in said)
    notifications.extend({"level": "error", "message": {"text": error}} for error in summary.internal_errors)
    return {
        "executionSuccessful": summary.how not in ("crashed", "unfinished"),
        "exitCodeDescription": summary.how,
        "toolExecutionNotifications": notifications,
    }


def _fingerprint(finding: Finding) -> str:
    """Return an identifier of the finding that does not change when lines above it are added or removed."""
    return _print([finding.rule], finding.primary.site)


def _print(parts: list[str], site: Site | None) -> str:
    if site is not None:
        text = source.read(site.path).line(site.line) or ""
        parts += [source.posix(source.displayed(site.path)), site.function, " ".join(text.split())]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _semantic(version: str) -> str:
    """Return a Python version in the form of SARIF's semanticVersion: three numbers.

    >>> _semantic("0.1.0"), _semantic("1.2.0rc1")
    ('0.1.0', '1.2.0')
    """
    found = re.match(r"\d+(\.\d+){0,2}", version)
    numbers = found[0].split(".") if found else []
    return ".".join([*numbers, "0", "0", "0"][:3])
