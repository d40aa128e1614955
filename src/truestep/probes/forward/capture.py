"""CUDA graphs: while one is captured nothing is read. Seams: the two methods of `CUDAGraph` that begin and end it.

A read of a value would break the capture. Captured work runs later, at each replay, without passing any seam: after a
graph with a part of the training (it writes to gradients or parameters), nothing can be observed. A graph of a forward
pass, as of `torch.cuda.make_graphed_callables` and torch.compile, changes nothing.
"""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import Any

from truestep.probes.context.probe import Probe, sees
from truestep.probes.gradients.gradient_states import Held, version
from truestep.seams.patch import patch

_REASON = "a CUDA graph replays the training step"


class CaptureProbe(Probe):
    """Suspends observation during a capture. It emits no event."""

    def install(self, stack: ExitStack) -> None:
        from torch.cuda.graphs import CUDAGraph

        scene = self.scene
        self._capturing = 0
        self._before: list[_Versions] = []

        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> Any:
            if scene.active or self._capturing:
                self.begin()
            try:
                return original_begin(graph, *args, **kwargs)
            except BaseException:  # a capture that did not begin has no end
                if self._capturing:
                    self.end()
                raise

        def capture_end(graph: Any) -> Any:
            try:
                return original_end(graph)
            finally:
                if self._capturing:
                    self.end()

        original_begin = patch(stack, CUDAGraph, "capture_begin", capture_begin)
        original_end = patch(stack, CUDAGraph, "capture_end", capture_end)

    def begin(self) -> None:
        """Suspend observation until the end; record the versions of parameters and gradients."""
        scene = self.scene
        self._capturing += 1
        if self._capturing > 1:
            return
        scene.coast.end()
        before = self._versions()
        if before is None:
            scene.lose_sight(_REASON)
        else:
            self._before = before
        scene.active = False

    def end(self) -> None:
        """Observe again, unless the graph holds a part of the training."""
        scene = self.scene
        self._capturing -= 1
        if self._capturing or scene.blind:
            return
        if self._is_unchanged():
            scene.active = True
        else:
            scene.lose_sight(_REASON)

    @sees
    def _versions(self) -> list[_Versions]:
        return [_Versions(held) for held in list(self.scene.ledger.by_id.values())]

    @sees
    def _is_unchanged(self) -> bool:
        before, self._before = self._before, []
        return not any(known.differ() for known in before)


class _Versions:
    """The versions of a parameter and of its gradient, and the identity of the gradient."""

    __slots__ = ("_grad", "_held", "_numbers")

    def __init__(self, held: Held) -> None:
        self._held = held
        grad, self._numbers = self._now()
        self._grad = None if grad is None else weakref.ref(grad)

    def differ(self) -> bool:
        """Return True if either was written to since."""
        grad, numbers = self._now()
        known = None if self._grad is None else self._grad()
        return grad is not known or numbers != self._numbers

    def _now(self) -> tuple[Any, tuple[int, int]]:
        parameter = self._held.ref()
        if parameter is None:
            return None, (-1, -1)
        grad = parameter.grad
        return grad, (version(parameter), -1 if grad is None else version(grad))
