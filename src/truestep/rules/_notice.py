"""Base class of rules that only read the syntax: their evidence is the documentation of torch, not a proof."""

from __future__ import annotations

from truestep.events import Event
from truestep.rules._rule import Progress, Rule


class Notice(Rule):
    """A statement that the documentation of torch advises against.

    It has no events and no verdict in a run: `truestep lint` alone reports it. The page names the source.
    """

    in_runs = False
    watches = ()
    needs = ()

    def observe(self, event: Event, run: Progress) -> None:
        """Do nothing: a run shows no such failure."""
