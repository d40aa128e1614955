"""Results of `truestep lint` as text, JSON, SARIF and annotations of GitHub, by the renderers of reports."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from typing import Any

from truestep import __version__, source
from truestep.config import Format
from truestep.findings import Confidence, Finding, Summary
from truestep.lint.notebook_fixes import fix_of
from truestep.lint.results import Problem, Results
from truestep.report import github, sarif, terminal
from truestep.report import json as report_json
from truestep.report.closing import Failure

SCHEMA = "truestep.lint/1"
_CELL = re.compile(r"^(.*\.ipynb):cell (\d+)$")


def render(results: Results, format: Format, least: Confidence, *, width: int = 100, colour: bool = False) -> str:
    """Return the results as text that ends with a newline.

    Args:
        results: findings and problems.
        format: as for the report of a run.
        least: findings of less confidence are counted, not shown.
        width: columns of the terminal, for "text".
        colour: True to add ANSI colours to "text".
    """
    match format:
        case "text":
            return _text(results, least, width, colour)
        case "json":
            return json.dumps(document(results, least), indent=2, ensure_ascii=False) + "\n"
        case "sarif":
            return json.dumps(_sarif(results, least), indent=2, ensure_ascii=False) + "\n"
        case "github":
            return _github(results, least)


def statistics(results: Results, least: Confidence) -> str:
    """Return the number of findings of each rule, most first."""
    shown = results.shown(least)
    counts = Counter(one.rule for one in shown)
    files = {rule: len({_file(one) for one in shown if one.rule == rule}) for rule in counts}
    wide = max((len(str(count)) for count in counts.values()), default=1)
    name = max(map(len, counts), default=0)
    rows = [
        f"{count:>{wide}}  {rule:{name}}  in {files[rule]} {_plural('file', files[rule])}"
        for rule, count in counts.most_common()
    ]
    return "".join(f"{row}\n" for row in (*rows, closing(results, least)))


def closing(results: Results, least: Confidence) -> str:
    """Return the line of counts.

    >>> closing(Results(files=3), Confidence.MEDIUM)
    'no failure found in 3 files'
    """
    shown = results.shown(least)
    inside = f"in {results.files} {_plural('file', results.files)}"
    number = len(shown)
    parts = [f"{number} {_plural('failure', number)} found {inside}" if number else f"no failure found {inside}"]
    unsure = len(results.shown(Confidence.LOW)) - number
    suppressed = sum(one.suppressed for one in results.findings)
    unchecked = len({one.path for one in results.problems if one.fails})
    for count, text in (
        (suppressed, "suppressed"),
        (results.in_baseline, "in the baseline"),
        (len(results.cleared), "harmless in the recorded run"),
        (unsure, "of less confidence not shown"),
        (unchecked, f"{_plural('file', unchecked)} not checked"),
    ):
        if count:
            parts.append(f"{count} {text}")
    return ", ".join(parts)


def _text(results: Results, least: Confidence, width: int, colour: bool) -> str:
    out = io.StringIO()
    console = terminal.console_for(out, width=width, colour=colour)
    failures = [Failure(one) for one in results.shown(least)]
    terminal.print_failures(console, failures, width)
    if failures:
        console.print()
    notes = [str(_displayed(one)) for one in results.problems]
    notes += [f"internal error of the rule {text.splitlines()[0]}: {_last(text)}" for text in results.internal_errors]
    terminal.print_closing(console, closing(results, least), notes, width, failed=bool(failures))
    return out.getvalue()


def document(results: Results, least: Confidence) -> dict[str, Any]:
    """Return the results as plain values."""
    shown = results.shown(least)
    return {
        "schema": SCHEMA,
        "truestep": __version__,
        "files": results.files,
        "counts": {
            "failures": len(shown),
            "suppressed": sum(one.suppressed for one in results.findings),
            "less_confidence": len(results.shown(Confidence.LOW)) - len(shown),
            "in_baseline": results.in_baseline,
            "harmless_in_run": len(results.cleared),
            "not_checked": len({one.path for one in results.problems if one.fails}),
        },
        "headline": closing(results, least),
        "findings": [_finding(one) for one in results.findings if one in shown or one.suppressed],
        "problems": [
            {"path": one.path, "line": one.line or None, "message": one.message}
            for one in map(_displayed, results.problems)
        ],
        "internal_errors": list(results.internal_errors),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    found = report_json.finding_document(finding)
    fix = fix_of(finding)
    return found if fix is None else found | {"fix": fix.document()}


def _sarif(results: Results, least: Confidence) -> dict[str, Any]:
    shown = tuple(one for one in results.findings if one.suppressed or one in results.shown(least))
    summary = Summary("", "linted", 0, findings=shown)
    ids = sorted({one.rule for one in shown})
    found = sarif.results(summary, ids)
    for one, finding in zip(found, shown, strict=True):
        fix = fix_of(finding)
        if fix is not None:  # the lines are those of the JSON: an editor of the file makes the fix
            one["fixes"] = [sarif.fix(fix.json, fix.path)]
        for place in (*one["locations"], *one.get("relatedLocations", ())):
            cell = _to_notebook(place["physicalLocation"])
            if cell:
                told = one if place in one["locations"] else place
                told["message"]["text"] += f" ({cell})"
    notifications = [
        {"level": "error" if one.fails else "warning", "message": {"text": str(one)}}
        for one in map(_displayed, results.problems)
    ]
    notifications += [{"level": "error", "message": {"text": text}} for text in results.internal_errors]
    return sarif.envelope(
        ids,
        found,
        {
            "executionSuccessful": not results.internal_errors,
            "toolExecutionNotifications": notifications,
        },
        {"headline": closing(results, least), "files": results.files},
    )


def _to_notebook(place: dict[str, Any]) -> str:
    """Name the notebook in place of its cell, and return the cell with the line; "" for other files."""
    artifact = place["artifactLocation"]
    match = re.match(r"^(.*\.ipynb)%3Acell%20(\d+)$", artifact["uri"])
    if match is None:
        return ""
    region = place["region"]
    artifact["uri"] = match[1]
    place["region"] = {"startLine": 1} | ({"snippet": region["snippet"]} if "snippet" in region else {})
    return f"cell {match[2]}, line {region['startLine']}"


def _github(results: Results, least: Confidence) -> str:
    lines = []
    for one in results.shown(least):
        line = github.command(Failure(one))
        lines.append(
            re.sub(
                r"file=(.*?\.ipynb)%3Acell (\d+),line=(\d+)(?:,endLine=\d+)?(?:,col=\d+)?(?:,endColumn=\d+)?"
                r"(,title=[^:]*)::",
                r"file=\1\4::cell \2, line \3: ",
                line,
            )
        )
    for problem in map(_displayed, results.problems):
        place = f"file={problem.path}" + (f",line={problem.line}" if problem.line else "")
        lines.append(f"::{'error' if problem.fails else 'warning'} {place},title=truestep::{problem.message}")
    lines.append(closing(results, least))
    return "".join(f"{line}\n" for line in lines)


def _displayed(problem: Problem) -> Problem:
    return Problem(source.posix(source.displayed(problem.path)), problem.message, problem.line, problem.fails)


def _file(finding: Finding) -> str:
    path = "" if finding.primary.site is None else finding.primary.site.path
    match = _CELL.match(path)
    return match[1] if match else path


def _last(text: str) -> str:
    return text.strip().splitlines()[-1].strip()


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


__all__ = ["SCHEMA", "closing", "document", "render", "statistics"]
