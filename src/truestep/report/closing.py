"""The end of a report: the line of counts, and notes on the limits of the run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from truestep import source
from truestep.findings import Confidence, Finding, Outcome, Summary
from truestep.report import coverage
from truestep.rules import catalogue

_MOST_REASONS = 6
"""Most reasons for "not observed" on the line of counts; the JSON report has all."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A finding to show, with all the ranks that have it."""

    finding: Finding
    ranks: tuple[int, ...] = ()
    explains: tuple[str, ...] = ()
    """Its consequences: for each the rule, the place and the first step."""


def failures(summary: Summary) -> list[Failure]:
    """Return the findings to show; the same finding of several ranks is merged into one."""
    grouped: dict[object, Failure] = {}
    for finding in summary.shown():
        key = (finding.rule, finding.severity, finding.primary.site, finding.message)
        ranks = () if finding.rank is None else (finding.rank,)
        known = grouped.get(key)
        if known is None or not ranks or not known.ranks:
            grouped[key if known is None else (key, len(grouped))] = Failure(finding, ranks)
        else:
            grouped[key] = Failure(known.finding, tuple(sorted({*known.ranks, *ranks})))
    waiting = consequences(summary)
    shown = list(grouped.values())
    return [replace(failure, explains=waiting.pop(failure.finding.rule, ())) for failure in shown]


def consequences(summary: Summary) -> dict[str, tuple[str, ...]]:
    """Return the consequences of the findings of each rule; they are listed under its first finding."""
    found: dict[str, dict[str, None]] = {}
    for finding in summary.findings:
        if finding.explained_by and not finding.suppressed and finding.confidence is not Confidence.LOW:
            site, first = finding.primary.site, finding.seen.first_step
            place = "" if site is None else f" at {source.posix(source.displayed(site.path))}:{site.line}"
            when = "" if first is None else f", first at step {first}"
            found.setdefault(finding.explained_by, {})[f"{finding.rule}{place}{when}"] = None
    return {rule: tuple(texts) for rule, texts in found.items()}


def counts(summary: Summary) -> dict[str, int]:
    """Return the counts of a report: failures, suppressed, clear and so on."""
    outcomes = [verdict.outcome for verdict in summary.verdicts]
    return {
        "failures": len(failures(summary)),
        "suppressed": sum(finding.suppressed for finding in summary.findings),
        "low_confidence": len(_unsure(summary)),
        "clear": outcomes.count(Outcome.CLEAR),
        "not_observed": outcomes.count(Outcome.NOT_OBSERVED),
        "internal_errors": len(summary.internal_errors),
    }


def headline(summary: Summary) -> str:
    """Return the line of counts.

    >>> headline(Summary("train.py", "finished", steps=313))
    'no failure found, 0 rules clear, 0 not observed'
    >>> headline(Summary("train.py", "finished", steps=3))
    'no failure found in 3 steps, 0 rules clear, 0 not observed'
    """
    count = counts(summary)
    parts = [coverage.verdict(summary, count["failures"])]
    if count["suppressed"]:
        parts.append(f"{count['suppressed']} suppressed")
    if count["low_confidence"]:
        parts.append(f"{count['low_confidence']} of low confidence not shown ({_unsure_rules(summary)})")
    if coverage.extent(summary) != "nothing" or count["failures"]:
        parts.append(f"{count['clear']} {_plural('rule', count['clear'])} clear")
        parts.append(f"{count['not_observed']} not observed{_reasons(summary)}")
    return ", ".join(parts)


def _unsure(summary: Summary) -> list[Finding]:
    """Return the findings of low confidence, which a report counts but does not show."""
    own = [f for f in summary.findings if not f.suppressed and not f.explained_by]
    return [finding for finding in own if finding.confidence is Confidence.LOW]


def _unsure_rules(summary: Summary) -> str:
    return ", ".join(dict.fromkeys(finding.rule for finding in _unsure(summary)))


def _reasons(summary: Summary) -> str:
    """Return the most common reasons for "not observed", in the order of the rules."""
    verdicts = [verdict for verdict in summary.verdicts if verdict.outcome is Outcome.NOT_OBSERVED]
    # A rule that lacks two things says so in one reason.
    lacking = Counter(part for verdict in verdicts for part in verdict.reason.split(", ") if part)
    if not lacking:
        return ""
    common = {reason for reason, _ in lacking.most_common(_MOST_REASONS)}
    named = ", ".join(reason for reason in lacking if reason in common)
    more = len(lacking) - len(common)
    others = f" and {more} other {_plural('reason', more)}" if more else ""
    return f" ({named}{others} in this run)"


_SHARED = "; those of other hosts need --record DIR, a folder that all hosts see"


def notes(summary: Summary) -> list[str]:
    """Return notes on how far the counts can be trusted: facts, lower case, no full stop."""
    found = coverage.notes(summary, len(failures(summary)))
    if summary.missing_ranks:
        missing = len(summary.missing_ranks)
        found.append(
            f"no record came from {missing} of {summary.ranks} ranks ({numbers(summary.missing_ranks)}); "
            f"their findings are not in this report{_SHARED if summary.ranks_elsewhere else ''}"
        )
    elif summary.ranks > 1:
        found.append(f"{summary.ranks} ranks were watched")
    found.extend(_internal(summary))
    found.extend(str(complaint) for complaint in complaints(summary))
    return found


def complaints(summary: Summary) -> list[source.Complaint]:
    """Return the mistakes in suppression comments of the script and of the files of the findings."""
    marks = (mark for finding in summary.findings for mark in (finding.primary, *finding.related))
    paths = dict.fromkeys([summary.script, *(mark.site.path for mark in marks if mark.site is not None)])
    known = {*catalogue(), *(verdict.rule for verdict in summary.verdicts)}
    found = [complaint for path in paths for complaint in source.read(path).complaints(known)]
    shown = [source.Complaint(source.displayed(c.path), c.line, c.message) for c in found]
    return list(dict.fromkeys(shown))


def numbers(values: tuple[int, ...]) -> str:
    """Return numbers as text; runs of three or more become a range.

    >>> numbers((0, 1, 2, 5)), numbers((1, 2))
    ('0-2, 5', '1, 2')
    """
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _internal(summary: Summary) -> list[str]:
    count = len(summary.internal_errors)
    if not count:
        return []
    last = summary.internal_errors[0].strip().splitlines()
    where = f"tracebacks in {source.displayed(summary.record)}" if summary.record else "tracebacks with --format json"
    what = f" ({last[-1].strip()})" if last else ""
    return [f"{count} internal {_plural('error', count)} in truestep{what}, the training went on; {where}"]


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
