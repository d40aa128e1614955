"""The report as workflow commands of GitHub Actions: annotations on the changed lines of a pull request.

Commands and escapes follow
https://docs.github.com/actions/reference/workflow-commands-for-github-actions and of ``@actions/core``.
"""

from __future__ import annotations

from truestep import source
from truestep.events import Site
from truestep.findings import Finding, PostMortem, Severity, Summary
from truestep.report import closing, coverage
from truestep.report.closing import Failure

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.SPEED: "notice"}


def render(summary: Summary) -> str:
    """Return a command per finding, or a warning that nothing was checked; then counts and notes as plain lines."""
    lines = [] if summary.post_mortem is None else [_death(summary.post_mortem)]
    lines += [command(failure) for failure in closing.failures(summary)]
    if not lines and coverage.extent(summary) in ("nothing", "little"):
        lines.append(f"::warning title=truestep::{_data(coverage.verdict(summary, 0))}")
    lines.append(closing.headline(summary))
    lines.extend(f"note: {note}" for note in closing.notes(summary))
    return "".join(f"{_one_line(line)}\n" for line in lines)


def command(failure: Failure) -> str:
    """Return the workflow command of one finding."""
    finding = failure.finding
    return _annotation(_COMMANDS[finding.severity], finding.primary.site, finding.rule, _message(failure))


def _death(died: PostMortem) -> str:
    lines = [died.message, died.primary.label, *_related(died)]
    lines += [f"{key}: {text}" for key, text in (*died.facts, ("help", died.help)) if text]
    return _annotation("error", died.primary.site, f"post-mortem {died.slug}", "\n".join(filter(None, lines)))


def _annotation(command: str, site: Site | None, title: str, message: str) -> str:
    properties: dict[str, object] = {}
    if site is not None:
        span = source.span(site)
        properties = {"file": source.posix(span.path), "line": span.line}
        if span.end_line is not None:
            properties["endLine"] = span.end_line
        # GitHub uses columns only in annotations of one line.
        if span.column is not None and span.end_line in {None, span.line}:
            properties["col"] = span.column
            if span.end_column is not None:
                properties["endColumn"] = span.end_column
    properties["title"] = f"truestep: {title}"
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{command} {listed}::{_data(message)}"


def _related(finding: Finding | PostMortem) -> list[str]:
    spans = [(mark.label, None if mark.site is None else source.span(mark.site)) for mark in finding.related]
    return [label if span is None else f"{label} ({source.posix(str(span))})" for label, span in spans]


def _message(failure: Failure) -> str:
    finding = failure.finding
    lines = [finding.message, finding.primary.label] if finding.primary.label else [finding.message]
    lines += _related(finding)
    lines.append(f"seen: {finding.seen}; confidence {finding.confidence.value}")
    notes = {"cost": finding.cost, "explains": "; ".join(failure.explains), "help": finding.help}
    lines.extend(f"{key}: {text}" for key, text in notes.items() if text)
    lines.append(f"more: truestep explain {finding.rule}")
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
