"""Test helpers: run one rule on hand-built events, capture the events of a block, assert its findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from truestep.errors import FindingsRaised
from truestep.events import Event, RunEnded
from truestep.findings import Confidence, Finding
from truestep.rules import Progress, Rule, rule
from truestep.supervision import Session

__all__ = ["assert_clean", "assert_finds", "capture_events", "judge"]


@contextmanager
def capture_events() -> Iterator[list[Event]]:
    """Context manager: yield a list that collects every event of the training code inside, in order.

    Needs torch. Use it to find out the events to write by hand in a rule's test.
    """
    events: list[Event] = []
    with Session(also=events.append):
        yield events


@contextmanager
def assert_finds(*rules: str) -> Iterator[Session]:
    """Context manager: fail unless the code inside has exactly these failures (of medium or high confidence).

    Args:
        rules: ids, such as "missing-zero-grad".

    Raises:
        UnknownRule: an id is unknown.
        FindingsRaised: other failures were found, or one of these was not.
    """
    for id in rules:
        rule(id)
    with Session() as session:
        yield session
    found = session.findings
    if {finding.rule for finding in found} != set(rules):
        raise FindingsRaised(
            "the training code has other failures than expected",
            expected=f"expected {', '.join(sorted(rules)) or 'none'}; got {_listed(found)}",
            remedy="look at `session.findings` for lines and evidence",
        )


@contextmanager
def assert_clean() -> Iterator[Session]:
    """Context manager: fail if the training code inside has any failure of medium or high confidence.

    Raises:
        FindingsRaised: a failure was found.
    """
    with assert_finds() as session:
        yield session


def _listed(findings: Iterable[Finding]) -> str:
    shown = [f"{f.rule} at {f.primary.site}" for f in findings if f.confidence is not Confidence.LOW]
    return "; ".join(shown) or "none"


def judge(rule: type[Rule], events: Iterable[Event], *, ended: str = "finished") -> list[Finding]:
    """Return the findings of one rule for a list of events (needs no torch).

    Args:
        rule: class of the rule.
        events: events of a run, in order; a `RunEnded` is appended if the last event is not one.
        ended: `how` of the appended `RunEnded`.
    """
    judged, run = rule(), Progress()
    listed = list(events)
    if not listed or not isinstance(listed[-1], RunEnded):
        listed.append(RunEnded(how=ended))
    for event in listed:
        run.note(event)
        if isinstance(event, RunEnded):
            judged.ended(event, run)
        elif isinstance(event, judged.watches):
            judged.observe(event, run)
        run.advance(event)
    return judged.findings(run)
