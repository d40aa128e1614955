"""Base class of rules on losses and inputs that are read at sampled steps."""

from __future__ import annotations

from typing import Any

from truestep.events import Site
from truestep.rules._rule import Draft, Progress, Rule

_LEAST = 3
"""Least number of readings of a line: one or two can be a coincidence."""


class ReadingRule(Rule):
    """A failure of a line that every reading of it shows."""

    def __init__(self) -> None:
        super().__init__()
        self._steps: dict[Site | None, list[int]] = {}
        """Line to the steps at which a reading showed the failure."""

    def suspected(self) -> bool:
        return super().suspected() or bool(self._steps)

    def shown(self, site: Site | None, run: Progress, *, right: bool = False) -> bool:
        """Count a reading of a line; return True if there are enough of them for a finding.

        Args:
            site: the line.
            right: True if this reading does not show the failure; the count then starts again from zero.
        """
        if right:
            self._steps.pop(site, None)
            self.withdraw((site,))
            return False
        steps = self._steps.setdefault(site, [])
        steps.append(run.step)
        return len(steps) >= _LEAST

    def report_line(self, site: Site | None, at: Site | None, message: str, *, run: Progress, **texts: Any) -> Draft:
        """Report a failure of a line with the number of its readings.

        Args:
            site: the line that was read.
            at: the faulty line.
            message: the failure, as in `report`.
            texts: other arguments of `report`.
        """
        draft = self.report(at, message, run=run, key=(site,), **texts)
        draft.count, draft.first_step = len(self._steps[site]), self._steps[site][0]
        return draft
