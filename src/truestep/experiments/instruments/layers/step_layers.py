"""Inspect one step of a script: layers, gradients, terms of the losses, memory."""

from __future__ import annotations

import os
import weakref
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

from truestep import seams
from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.instruments.layers.module_calls import ALONE, ModuleCalls
from truestep.experiments.running.inside.steps import on_steps, optimizers_alive
from truestep.probes.context.sites import Sites
from truestep.supervision.session import Stop

_DEFAULT = 2
"""The step that is inspected unless another one is asked for: the first one has no optimizer state before it."""


class StepLayers(Instrument):
    """Inspects one step of the first optimizer; then the script is stopped.

    Steps of other optimizers after it belong to the same step, as in a GAN: as many as in each step before. In a script
    without optimizers, a step is a backward pass. The models are those that the script calls in the step.

    Args:
        folder: folder for its files.
        script: path or name of the script.
        step: number of the step, from 1; None takes the second one, or the first one of a script with one step.
    """

    name = "layers"
    alone = ALONE

    def __init__(self, folder: Path, script: str, step: int | None = None) -> None:
        super().__init__(folder, script)
        self._wanted = _DEFAULT if step is None else step
        self._exact = step is not None
        self._steps = self._passes = 0
        self._first: Any = lambda: None
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._others = 0
        """Steps of other optimizers since the last step of the first one."""
        self._cycle: int | None = None
        """Least number of them in a step; None if it is not known yet."""
        self._windows: list[Any] = []
        self._done: Any = None
        self._between = True
        """True from a step of an optimizer to the next call or backward pass."""

    def install(self, stack: ExitStack) -> None:
        import torch

        self._sites = Sites(os.path.dirname(torch.__file__))
        self._calls = ModuleCalls(self._sites, self._met, self._made, self._failed)
        self._woven = self._calls.install(stack)
        seams.backward.watch(stack, before=self._passing, after=self._passed)
        on_steps(stack, self._stepped)

    def _go_on(self) -> None:
        """Begin a window after a step; not while torch runs the hooks of the step, which cannot be removed there."""
        from truestep.experiments.instruments.layers.window import Window

        if not self._between:
            return
        self._between = False
        for window in self._windows:
            if window.left or (window.ended and self._cycle == self._others):
                window.close()
        self._windows = [window for window in self._windows if not window.left]
        number = self._steps + 1
        if number == self._wanted or (number == 1 and not self._exact):
            self._windows.append(Window(number, self._sites, self._calls))
        self._calls.on = bool(self._open())

    def _open(self) -> list[Any]:
        return [window for window in self._windows if not window.closed]

    def _close(self) -> None:
        self._calls.on = False
        for window in self._open():
            window.close()

    # --- called by the seams ---

    def _failed(self, error: Exception) -> None:
        for window in self._windows:
            window.trouble.append(f"{type(error).__name__}: {error}".splitlines()[0])

    def _met(self, module: Any, frame: FrameType) -> None:
        self._go_on()
        for window in self._open():
            window.met(module, frame)

    def _made(self, module: Any, result: Any, frame: FrameType) -> None:
        for window in self._open():
            window.made(module, result, frame)

    def _passing(self, this: seams.backward.Pass) -> None:
        self._passes += 1
        try:
            self._go_on()
            for window in self._open():
                window.passing(this, self._sites.frame(2))
        except Exception as error:
            self._failed(error)

    def _passed(self, this: seams.backward.Pass) -> None:
        if not this.retain_graph:
            self._calls.clear()

    def _stepped(self, optimizer: Any) -> None:
        self._between = self._calls.on = True
        self._calls.clear()
        if optimizer is not None:
            self._optimizers.add(optimizer)
            if self._first() is None:
                self._first = weakref.ref(optimizer)
        own = optimizer is None or optimizer is self._first()
        if own:
            self._steps += 1
            if self._steps > 1:
                self._cycle = self._others if self._cycle is None else min(self._cycle, self._others)
            elif len(optimizers_alive()) <= 1:
                self._cycle = 0
            self._others = 0
        else:
            self._others += 1
        try:
            self._record(optimizer, own)
        except Exception as error:
            self._failed(error)
        if self._steps > self._wanted:
            self._done = self._done or next((w for w in self._windows if w.number == self._wanted), None)
        if self._done is not None or self._steps > self._wanted:
            self._close()
            raise Stop

    def _record(self, optimizer: Any, own: bool) -> None:
        for window in self._windows:
            if own and window.number < self._steps:
                window.left = self._done is not window  # a later step is there
            elif window.closed:
                pass
            elif own or window.ended:
                window.stepped(optimizer, self._optimizers, self._sites.frame(3))
                complete = self._others >= (1 if self._cycle is None else self._cycle)
                if window.number == self._wanted and complete:
                    self._done = window
            else:
                window.left = True  # the other optimizer belongs to the step before

    def results(self, how: str) -> dict[str, Any]:
        last = self._done or next((window for window in self._windows if window.ended), None)
        if how == "crashed" and last is None and self._windows:
            last = self._windows[-1]  # its layers up to the error
        self._close()
        return {
            "steps": self._steps,
            "passes": self._passes,
            "woven": self._woven,
            "inspected": None if last is None else last.facts(),
        }
