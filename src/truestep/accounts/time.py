"""The account of time: the wait for data."""

from __future__ import annotations

from truestep import events as ev
from truestep.accounts._account import Account, Entry, line_of, place
from truestep.accounts.run_objects import Objects
from truestep.events import Event


class Time(Account[str]):
    """Keeps the times of the loaders that the run waited for; a short wait has no event, so that runs compare."""

    name = "time"

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._timed: list[ev.LoaderTimed] = []

    def note(self, event: Event) -> None:
        """Enter an event."""
        if isinstance(event, ev.LoaderTimed):
            self._timed.append(event)

    def entry(self) -> Entry | None:
        """Return the longest wait, of those of at least a second."""
        if not self._timed:
            return None
        longest = max(self._timed, key=lambda timed: timed.waited_s)
        met = self.objects.loaders.get(longest.loader)
        where = f" ({place(met.site)})" if met is not None and met.site else ""
        share = f", {longest.waited_s / longest.span_s:.0%}" if longest.span_s else ""
        text = f"{longest.waited_s:.1f} of {longest.span_s:.1f} s waiting for data{share}{where}"
        facts = [
            {
                "loader": self.objects.loader_name(timed.loader),
                "site": line_of(met.site) if (met := self.objects.loaders.get(timed.loader)) is not None else None,
                "batches": timed.drawn,
                "waited_s": timed.waited_s,
                "restarting_workers_s": timed.starting_s,
                "span_s": timed.span_s,
            }
            for timed in self._timed
        ]
        return Entry(text, {"loaders": facts})
