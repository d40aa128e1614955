"""Weights of functions that a branch for a new best figure keeps: they are plain tensors, without a `state_dict`."""

from __future__ import annotations

import ast
import inspect
from types import FrameType

from truestep.events import WeightsKept
from truestep.probes.context.guards import Guard, guards
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import plain_number
from truestep.probes.variables.memory import held_at


class Choices:
    """Emits `WeightsKept` for a best figure that is another one after an evaluation.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._best: dict[Guard, tuple[int, float]] = {}
        """Branch to the frame that runs it, and its best figure."""
        self.waiting = False
        """True after a call of an evaluation, until the next one of the training."""

    def trained(self, frame: FrameType | None) -> None:
        """Handle a call of the training.

        Args:
            frame: the innermost frame of the program.
        """
        if not self.waiting:
            return
        self.waiting = False
        self._scene.sampling.follow()
        for user in self._scene.sites.users(frame):
            self._look(user)

    def _look(self, frame: FrameType) -> None:
        code = frame.f_code
        within = code.co_flags & inspect.CO_OPTIMIZED
        lines = [line for _, _, line in code.co_lines() if line]
        known = [guard for first, last, guard in guards(code.co_filename) if guard.keeps and not guard.owner]
        open_ones = [one for one in known if lines and min(lines) <= one.site.line <= max(lines)]
        names = {} if not open_ones else {**frame.f_globals, **variables(frame)} if within else frame.f_globals
        torch = self._scene.torch
        for guard in open_ones:
            best = plain_number(torch, held_at(ast.parse(guard.best, mode="eval").body, names))
            value = plain_number(torch, names.get(guard.name))
            if best is None or value is None:
                continue
            before, self._best[guard] = self._best.get(guard), (id(frame), best)
            if before is not None and before[0] == id(frame) and before[1] != best:
                self._scene.tell(
                    WeightsKept,
                    name=guard.name,
                    loss=guard.loss,
                    share=guard.share,
                    greater=guard.greater,
                    value=value,
                    best=guard.best,
                    site=guard.site,
                    taken=guard.site,
                )
