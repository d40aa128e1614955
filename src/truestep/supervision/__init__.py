"""Watch a run: install the probes, feed the rules, keep the record; replay a record."""

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
    active: bool = False,
) -> Session:
    """Return a session to use with ``with``: what runs inside is watched.

    Args:
        select: only these rules; empty means all.
        ignore: not these rules.
        record: folder for the record of the run.
        budget: share of the time that close reading may cost before it is given up.
        active: whether the model and the data set may be called again, on copies, to check them.

    Raises:
        UnknownRule: one of the names is no rule.

    >>> session = watch(select=("missing-zero-grad",))
    >>> sorted(session.verdicts)
    ['missing-zero-grad']
    """
    folder = None if record is None else Path(record)
    options = Options(select=tuple(select), ignore=tuple(ignore), record=folder, budget=budget, active=active)
    return Session(options, script="watched block")
