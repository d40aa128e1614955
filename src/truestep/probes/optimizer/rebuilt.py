"""Recognize optimizers that the same lines build again over the same parameters, with their values kept."""

from __future__ import annotations

from truestep.events import Site
from truestep.probes.context.scene import Scene
from truestep.probes.gradients.gradient_states import Panel, one_value, version

_MOST = 256
"""Places that build optimizers, of those that are remembered."""

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

    def replaced(self, panel: Panel, site: Site | None) -> int | None:
        """Return the optimizer that a new one replaces; None if its parameters were written to since its last step."""
        places = self._scene.sites.chain(2)
        if site is None or not places:
            return None
        parameters = tuple(held.number for held in panel.everything)
        number, held = self._latest.get(places, (0, ()))
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
        return number if now[1:] == after[1:] else None

    def stepped(self, panel: Panel) -> None:
        """Record a step."""
        self._after[panel.number] = self._now(panel, valued=panel.number in self._again)

    def _now(self, panel: Panel, *, valued: bool) -> tuple[int, int, float | None]:
        parameter = panel.everything[0].ref() if panel.everything else None
        steps = self._scene.ledger.attempts.get(panel.number, 0)
        if parameter is None:
            return steps, -1, None
        return steps, version(parameter), one_value(parameter) if valued else None
