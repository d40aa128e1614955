"""Variables with trained tensors, at backward passes: kept in a branch for the best figure, or called an average."""

from __future__ import annotations

from collections.abc import Iterable
from types import FrameType
from typing import Any

from truestep.probes.context.scene import Scene
from truestep.probes.variables.kept_tensors import KeptTensors
from truestep.probes.variables.memory import Leaves
from truestep.probes.variables.own_averages import OwnAverages

_FIRST = (0, 1, 2, 3, 10, 20, 50, 51, 100, 200, 201, 500)
_EVERY = 1009
_MOST_REQUESTS = 16
"""Looks at the pass after a look at which a variable was first seen with trained tensors."""


class TrainedVariables:
    """Looks at variables in sampled steps, and in some of the passes of ``autograd.grad``, which close no step.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._leaves = Leaves(scene)
        self._kept = KeptTensors(scene, self._leaves)
        self._averages = OwnAverages(scene, self._leaves)
        self._passes = -1
        self._next = 0
        """A further pass of ``autograd.grad`` to look at."""
        self._step = -1
        self._requests = 0

    def look(self, frame: FrameType | None) -> None:
        """Look at the variables at a backward pass of a sampled step: at the first one of it."""
        step = self._scene.sampling.step
        if step != self._step:
            self._step = step
            if self._look(frame):
                self._scene.changed()

    def taken(self, inputs: Iterable[Any], frame: FrameType | None) -> None:
        """Look at the variables at some passes of ``autograd.grad``, outside of transformations of ``torch.func``."""
        if self._scene.torch._C._functorch.peek_interpreter_stack() is not None:
            return
        self._passes += 1
        if self._passes in _FIRST or not self._passes % _EVERY or self._passes == self._next:
            self._leaves.met(inputs)
            if self._look(frame):
                self._next = self._passes + 1

    def _look(self, frame: FrameType | None) -> bool:
        """Return True if the next pass must be seen too."""
        frames = self._scene.sites.users(frame)
        self._averages.look(frames)
        again = self._kept.look(frames) and self._requests < _MOST_REQUESTS
        self._requests += again
        return again
