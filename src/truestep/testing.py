"""For tests: what a rule says about events, what a block of training code does, and whether it is clean."""

from __future__ import annotations

from collections.abc import Iterable

from truestep.events import Event, RunEnded
from truestep.findings import Finding
from truestep.rules import Progress, Rule

__all__ = ["judge"]


def judge(rule: type[Rule], events: Iterable[Event], *, ended: str = "finished") -> list[Finding]:
    """Return what one rule finds in a list of events (no torch needed).

    Args:
        rule: the rule's class.
        events: the run, in order; a `RunEnded` is added at the end unless there is one.
        ended: how the run ended, see `RunEnded.how`.
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
