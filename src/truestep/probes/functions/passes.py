"""Loops around the evaluations of functions that are models: sums and metrics that each pass overwrites."""

from __future__ import annotations

from types import FrameType, FunctionType

from truestep.events import LoopRead, Site
from truestep.probes.context.scene import Scene
from truestep.probes.evaluation.last_pass import LastPass, last_pass, stores
from truestep.probes.evaluation.loops import loop_around

_MOST_LOOKS = 8
"""Passes of a loop in which its variables are read."""


class Passes:
    """Emits `LoopRead`: the loop around a call, and the variable that holds a metric of its last pass.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._last: dict[Site, LastPass] = {}
        """Line of a call to the variable that each pass of its loop overwrites, until it was read."""

    def returned(self, model: int, site: Site, frame: FrameType | None, own: FunctionType, calls: int) -> None:
        """Handle a call of a model without gradients.

        Args:
            model: its number.
            site: line of the call.
            frame: the frame of the program with this line.
            own: the function with the code of the program.
            calls: calls at this line, with this one.
        """
        if calls == 1:
            loop = loop_around(site)
            if loop is None:
                return
            self._scene.emit(LoopRead(model=model, site=site, **loop._asdict()))
            last = None if loop.name or loop.trains or stores(own) else last_pass(site)
            if last is not None:
                self._last[site] = last
            return
        found = self._last.get(site)
        if found is None or frame is None:
            return
        if found.is_metric(self._scene.torch, frame):
            self._scene.emit(LoopRead(model=model, name=found.name, use="read", place=found.place, site=site))
            del self._last[site]
        elif calls > _MOST_LOOKS:
            del self._last[site]
