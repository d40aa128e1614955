"""Supervision of a run: installs the probes, passes events to the rules, writes the record, and replays a record.

session       `Session`: one supervised run, from the probes to the summary
stream        division of events into chunks, one per step; repeated chunks are only counted
judge         the rules of a run: passes events to them, and collects findings
extent        coverage: how much of a training was observed
summary       `Summary` of a judged run
root_causes   order of findings, and findings that follow from another one
uncalled      findings that point at a method named without parentheses
belongs       findings that point at the line where the remedy belongs
record        the record of a run, and its replay
first_evaluation  end of `truestep check`, after the first evaluation
children      processes that the program starts, each with a session
exchange      conversion of a summary to plain data and back
ranks         one summary for the ranks of a distributed run

`launching/` runs a program in this process as python does.
"""

from __future__ import annotations

from pathlib import Path

from truestep.config import Options
from truestep.supervision.session import Session, Stop

__all__ = ["Session", "Stop", "watch"]


def watch(
    *,
    select: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    record: str | Path | None = None,
    budget: float = 0.01,
    active: bool = True,
) -> Session:
    """Return a session, which supervises the code in its ``with`` block.

    Args:
        select: ids of the rules to use; empty for all.
        ignore: ids of rules to leave out.
        record: folder for the record of the run.
        budget: largest share of the time for detailed observation, which is given up above it.
        active: allow active checks, which call small copies of the model and the data set.

    Raises:
        UnknownRule: an id is not that of a rule.

    >>> session = watch(select=("missing-zero-grad",))
    >>> sorted(session.verdicts)
    ['missing-zero-grad']
    """
    folder = None if record is None else Path(record)
    options = Options(select=tuple(select), ignore=tuple(ignore), record=folder, budget=budget, active=active)
    return Session(options, script="watched block")
