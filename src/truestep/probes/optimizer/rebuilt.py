"""Recognize optimizers that the same lines build again over the same parameters, and those of folds that go on."""

from __future__ import annotations

from truestep.events import FoldContinued, Site
from truestep.probes.context.scene import Scene
from truestep.probes.gradients.gradient_states import Panel, one_value, version
from truestep.probes.optimizer.pass_loops import is_in_folds
from truestep.probes.optimizer.sampled_measures import fingerprint

_MOST = 256
"""Places that build optimizers, of those that are remembered."""
_MOST_WEIGHTS = 16
_LEAST_VALUES = 16
_CLOSE = 0.5
"""Largest such difference between one of the latest steps and the next optimizer."""
_NEAR = 0.8
"""Largest difference of trained weights from their first values, relative to these; that of new random ones is 1.3."""

_Places = tuple[Site, ...]


class Rebuilt:
    """Remembers the latest optimizer of each place, and a parameter as it was after its latest step."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._latest: dict[_Places, tuple[int, tuple[int, ...]]] = {}
        """Stack of the construction to the number of the optimizer and those of its parameters."""
        self._after: dict[int, tuple[int, int, float | None]] = {}
        """Optimizer to its number of steps, and the version and one value of a parameter after one of the latest."""
        self._writes: dict[int, int] = {}
        """Optimizer to the number of writes of a step to a parameter, by two of its steps."""
        self._seen: dict[int, list[list[str]]] = {}
        """Optimizer to some values of its weights then, for one that replaced another one, or is of a fold."""
        self._fold = 0
        """The latest optimizer that a loop over folds has built."""
        self._again: set[int] = set()
        """Optimizers that replaced another one; the values of those built once are not read."""
        self._began: dict[_Places, tuple[tuple[int, ...], list[list[str]]]] = {}
        """Stack of a construction in a loop over folds to the parameters, and their values before the first step."""
        self._anew: set[int] = set()
        """Parameters that an optimizer in such a loop got with other values than a fold before had left."""
        self._kept: dict[int, int] = {}
        """Optimizer in such a loop to the version of a parameter that the fold before has trained last."""
        self.waiting: dict[int, _Places] = {}
        """Optimizers built in such a loop that have not stepped, with the stack of their construction."""

    def replaced(self, panel: Panel, site: Site | None) -> int | None:
        """Return the optimizer that a new one replaces; None if its parameters were written to since its last step."""
        places = self._scene.sites.chain(2)
        if site is None or not places:
            return None
        parameters = tuple(held.number for held in panel.everything)
        number, held = self._latest.get(places, (0, ()))
        if is_in_folds(places):
            self.waiting[panel.number] = places
            self._fold = panel.number
        if len(self._latest) < _MOST or number:
            self._latest[places] = panel.number, parameters
        if held != parameters or not number:
            return None
        self._again.add(panel.number)
        after, writes = self._after.pop(number, None), self._writes.pop(number, 0)
        if after is None:
            return None
        now = self._now(panel, valued=number in self._again)
        self._again.discard(number)
        unseen, seen = self._scene.ledger.attempts.get(number, 0) - after[0], self._seen.pop(number, [])
        if now[1] != after[1] + unseen * writes or (unseen and not (writes and seen)):
            return None
        if seen and not _are_near(seen, _values(panel), _CLOSE):  # values can be written without a count, by `.data`
            self._anew.update(parameters)
            return None
        if not unseen and now[2] != after[2]:
            return None
        if panel.number in self.waiting and _first_trains(panel):
            self._kept[panel.number] = now[1]
        return number

    def begins(self, panel: Panel, site: Site | None) -> None:
        """Handle the first step of an optimizer that a loop over folds has built: are its weights those of a fold?"""
        places, now = self.waiting.pop(panel.number), _values(panel)
        parameters = tuple(held.number for held in panel.everything)
        known, began = self._began.get(places, ((), []))
        kept = self._kept.pop(panel.number, None) == self._now(panel, valued=False)[1]
        if known != parameters:
            self._began[places] = parameters, now
        elif not (kept or _are_trained(began, now)):
            self._anew.update(parameters)
        elif self._anew.isdisjoint(parameters):  # else a second stage of each fold
            self._scene.tell(FoldContinued, optimizer=panel.number, site=site)

    def stepped(self, panel: Panel) -> None:
        """Record a step."""
        before, now = self._after.get(panel.number), self._now(panel, valued=panel.number in self._again)
        if before is not None and now[0] > before[0]:
            self._writes[panel.number], rest = divmod(now[1] - before[1], now[0] - before[0])
            if rest:  # something else has written, too
                self._writes[panel.number] = 0
        self._after[panel.number] = now
        followed = panel.number in self._again or panel.number == self._fold
        if followed and all(one.is_cpu for held in panel.everything[:1] if (one := held.ref()) is not None):
            values = _values(panel)
            if sum(map(len, values)) >= _LEAST_VALUES:
                self._seen[panel.number] = values

    def _now(self, panel: Panel, *, valued: bool) -> tuple[int, int, float | None]:
        parameter = panel.everything[0].ref() if panel.everything else None
        steps = self._scene.ledger.attempts.get(panel.number, 0)
        if parameter is None:
            return steps, -1, None
        return steps, version(parameter), one_value(parameter) if valued else None


def _first_trains(panel: Panel) -> bool:
    parameter = panel.everything[0].ref() if panel.everything else None
    return parameter is not None and bool(parameter.requires_grad)


def _values(panel: Panel) -> list[list[str]]:
    """Return some values of the weights of an optimizer, without frozen ones."""
    known = [weight for held in panel.everything if (weight := held.ref()) is not None]
    weights = [weight for weight in known if weight.dim() > 1 and weight.requires_grad]
    return [fingerprint(weight) for weight in weights[:_MOST_WEIGHTS]]


def _are_trained(began: list[list[str]], now: list[list[str]]) -> bool:
    """Return True if all weights have moved from their first values and are near them: none was initialised again."""
    return all(before != after for before, after in zip(began, now, strict=False)) and _are_near(began, now, _NEAR)


def _are_near(before: list[list[str]], after: list[list[str]], limit: float) -> bool:
    """Return True if enough values are known, and their difference is below a part of their size."""
    pairs = [
        (float(one), float(other))
        for old, new in zip(before, after, strict=False)
        for one, other in zip(old, new, strict=False)
    ]
    apart, size = sum(abs(one - other) for one, other in pairs), sum(abs(one) for one, _ in pairs)
    return len(pairs) >= _LEAST_VALUES and apart < limit * size
