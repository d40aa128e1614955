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
        """Optimizer to its number of steps, and the version and one value of a parameter after the latest of them."""
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
        if len(self._latest) < _MOST or number:
            self._latest[places] = panel.number, parameters
        if held != parameters or not number:
            return None
        self._again.add(panel.number)
        after = self._after.pop(number, None)
        if after is None or after[0] != self._scene.ledger.attempts.get(number):
            return None
        now = self._now(panel, valued=number in self._again)
        self._again.discard(number)
        if now[1:] != after[1:]:
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
        self._after[panel.number] = self._now(panel, valued=panel.number in self._again)

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
    pairs = [
        (float(one), float(other))
        for before, after in zip(began, now, strict=False)
        for one, other in zip(before, after, strict=False)
    ]
    apart, size = sum(abs(one - other) for one, other in pairs), sum(abs(one) for one, _ in pairs)
    moved = all(before != after for before, after in zip(began, now, strict=False))
    return moved and len(pairs) >= _LEAST_VALUES and apart < _NEAR * size
