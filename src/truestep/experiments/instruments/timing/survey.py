"""Survey a script before it is tuned: time of its steps by phase, and the device of its parameters."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.instruments.timing.clock import PHASES, PhaseClock
from truestep.experiments.instruments.timing.waiting import waiting
from truestep.experiments.running.inside.steps import device_of, on_steps
from truestep.supervision.session import Stop


class Survey(Instrument):
    """Times steps and their phases over a window that begins after some steps; the script stops at its end.

    On an accelerator each boundary between phases synchronizes: the times are those of steps without overlap.

    Args:
        folder: folder for its files.
        script: path or name of the script.
        warm_up: steps of all optimizers before the window.
        seconds: length of the window.
    """

    name = "survey"

    def __init__(self, folder: Path, script: str, warm_up: int = 5, seconds: float = 3.0) -> None:
        super().__init__(folder, script)
        self._warm_up = warm_up
        self._seconds = seconds
        self._clock = _Waiting()
        self._phases = dict.fromkeys(PHASES, 0.0)
        self._steps = 0
        self._begun = self._ended = 0.0
        self._device = "cpu"
        self._over = False

    def install(self, stack: ExitStack) -> None:
        import torch

        self._torch = torch
        self._clock.on_step(self._spent)
        self._clock.install(stack)
        on_steps(stack, self._stepped)

    def _spent(self, seconds: dict[str, float]) -> None:
        if self._steps >= self._warm_up:
            for phase in PHASES:
                self._phases[phase] += seconds[phase]

    def _stepped(self, optimizer: Any) -> None:
        self._steps += 1
        if self._steps < self._warm_up:
            return
        if self._steps == self._warm_up:
            self._device = device_of(optimizer)
            self._clock.wait = waiting(self._device)
            self._wait()
            self._begun = self._ended = time.perf_counter()
            return
        self._wait()
        self._ended = time.perf_counter()
        self._over = self._over or self._ended - self._begun > self._seconds
        if self._over and self._torch._C._current_graph_task_id() == -1:
            raise Stop

    def _wait(self) -> None:
        if self._clock.wait is not None:
            self._clock.wait()

    def results(self, how: str) -> dict[str, Any]:
        """Return the steps in all and in the window, its seconds, the share of each phase, and the device type.

        "whole" is True if the script ended before the window did.
        """
        known = sum(self._phases.values())
        return {
            "all_steps": self._steps,
            "steps": max(0, self._steps - self._warm_up),
            "seconds": self._ended - self._begun,
            "phases": {phase: spent / known if known else 0.0 for phase, spent in self._phases.items()},
            "device": self._device,
            "whole": not self._over,
        }


class _Waiting(PhaseClock):
    """A clock that synchronizes with the device at every boundary."""

    wait: Any = None

    def _tick(self) -> None:
        if self.wait is not None:
            self.wait()
        super()._tick()
