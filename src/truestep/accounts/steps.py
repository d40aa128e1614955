"""The account of steps: updates of the parameters, by optimizers and by hand."""

from __future__ import annotations

from truestep import events as ev
from truestep.accounts._account import Account, Entry, line_of, place
from truestep.accounts.run_objects import Objects
from truestep.events import Event, Site

_Key = tuple[int, Site | None, bool]
"""Optimizer, 0 for an update by hand; line; True if the step had gradients."""


class Steps(Account[_Key]):
    """Counts the steps of each optimizer by line."""

    name = "steps"

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self._with: set[int] = set()
        """Optimizers with a step that had gradients."""

    def note(self, event: Event) -> None:
        """Enter an event."""
        if isinstance(event, ev.OptimizerStepped):
            used = bool(event.fresh or event.mixed or event.by_hand or event.closure or event.reused)
            if used:
                self._with.add(event.optimizer)
            self.tally.add((event.optimizer, event.site, used or self._may_have(event)))
        elif isinstance(event, ev.HandStepped):
            self.tally.add((0, event.site, True))

    def _may_have(self, event: ev.OptimizerStepped) -> bool:
        """Return True if only some parameters were examined, of an optimizer that had gradients before."""
        built = self.objects.optimizers.get(event.optimizer)
        partly = built is not None and event.observed < len(built.parameters) and not event.cleared
        return partly and event.optimizer in self._with

    def entry(self) -> Entry | None:
        """Return the number of steps of each optimizer."""
        counts: dict[tuple[str, Site | None], tuple[int, int]] = {}
        for number, site, used in self.tally:
            built = self.objects.optimizers.get(number)
            kind = built.kind if built is not None else "an optimizer" if number else "hand"
            count, empty = counts.get((kind, site), (0, 0))
            steps = self.tally[number, site, used]
            counts[kind, site] = count + steps, empty + (0 if used else steps)
        if not counts:
            return None
        facts = [
            {"kind": kind, "site": line_of(site), "steps": steps, "without_gradients": empty}
            for (kind, site), (steps, empty) in counts.items()
        ]
        empty = sum(empty for _, empty in counts.values())
        first, *others = sorted(counts.items(), key=lambda one: -one[1][0])
        parts = [_text(*first), *([_text(*others[0])] if len(others) == 1 else [])]
        if len(others) > 1:
            parts.append(f"{sum(steps for _, (steps, _) in others):,} at {len(others)} other lines")
        parts += [f"{empty:,} without gradients"] if empty else []
        return Entry(", ".join(parts), {"lines": facts})


def _text(key: tuple[str, Site | None], counts: tuple[int, int]) -> str:
    kind, site = key
    by = "by hand" if kind == "hand" else f"of {kind}"
    return f"{counts[0]:,} {by}" + (f" ({place(site)})" if site else "")
