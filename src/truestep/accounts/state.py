"""The account of state: files saved and loaded, and state dicts taken and loaded."""

from __future__ import annotations

from typing import ClassVar

from truestep import events as ev
from truestep.accounts._account import Account, Entry, line_of, place
from truestep.accounts.run_objects import Objects
from truestep.events import Event, Site

_Key = tuple[str, Site | None]
""""saved" or "read" of files, "taken" or "loaded" of state dicts, with the line."""


class State(Account[_Key]):
    """Counts saves and loads by line."""

    name = "state"
    _words: ClassVar[dict[str, str]] = {
        "saved": "saved",
        "read": "read from file",
        "loaded": "weights loaded",
        "taken": "state dicts taken",
    }

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._stepped = False
        self.file: ev.CheckpointLoaded | None = None
        """The latest file with states of optimizers or schedules that was loaded."""
        self.weights: dict[int, Site | None] = {}
        """Parameters that were loaded since then, with the line of the load."""
        self.moments: dict[int, ev.OptimizerLoaded] = {}
        """Optimizers that loaded their moments since then."""
        self.schedules: set[int] = set()
        """Schedules that were put at another position."""

    def note(self, event: Event) -> None:
        """Enter an event."""
        match event:
            case ev.CheckpointSaved():
                self.tally.add(("saved", event.site))
            case ev.CheckpointLoaded():
                self.tally.add(("read", event.site))
                if event.optimizers or event.schedules:
                    self.file, self.weights, self.moments = event, {}, {}
                    self.schedules.clear()
            case ev.OptimizerLoaded():
                self.moments[event.optimizer] = event
            case ev.ScheduleMoved():
                self.schedules.add(event.scheduler)
            case ev.StateTaken():
                self.tally.add(("taken", event.site))
            case ev.StateLoaded():
                self.tally.add(("loaded", event.site))
                self.weights |= dict.fromkeys(event.parameters, event.site)
            case ev.OptimizerStepped() | ev.HandStepped():
                self._stepped = True

    def left(self) -> tuple[int, int]:
        """Return how many states of optimizers and of schedules in the latest file were not loaded."""
        file = self.file
        if file is None:
            return 0, 0
        return max(0, file.optimizers - len(self.moments)), max(0, file.schedules - len(self.schedules))

    def sites(self, what: str) -> dict[Site | None, int]:
        """Return the number of times at each line."""
        return {key[1]: self.tally[key] for key in self.tally if key[0] == what}

    def entry(self) -> Entry | None:
        """Return the saves and loads; a run that trained has a line also without them."""
        parts = []
        for what, words in self._words.items():
            sites = self.sites(what)
            if not sites:
                continue
            count, where = sum(sites.values()), f" at {len(sites)} lines" if len(sites) > 1 else ""
            (site,) = sites if len(sites) == 1 else (None,)
            parts.append(f"{words} {_times(count)}" + (f" ({place(site)})" if site else where))
        left = [word for word, count in zip(("optimizer", "schedule"), self.left(), strict=True) if count]
        parts += [f"state of the {' and of the '.join(left)} in a file not loaded"] if left else []
        saved, loaded = self.sites("saved"), self.sites("read") or self.sites("loaded")
        if parts and not saved and not loaded:
            parts.append("nothing saved or loaded")
        if not parts:
            return Entry("nothing saved or loaded", {"lines": []}) if self._stepped else None
        facts = [{"what": key[0], "site": line_of(key[1]), "count": self.tally[key]} for key in self.tally]
        return Entry(", ".join(parts), {"lines": facts})


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")
