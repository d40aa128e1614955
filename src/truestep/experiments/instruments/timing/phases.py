"""Measure every step by phase: data, forward, backward, optimizer, evaluation, other."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.instruments.timing.clock import ALONE, PHASES, PhaseClock

_MOST = 20_000
"""Largest number of steps to keep."""


class Phases(Instrument):
    """Seconds of every step of the first optimizer by phase, on the clock of the CPU.

    The result holds the names of the phases, a row of seconds per step in their order, the number of batches of each
    step, and the largest number of workers of a loader. It reads no value and never synchronizes: on an accelerator a
    phase lasts as long as launching its work takes, and waiting counts for the phase that reads a value.
    """

    name = "phases"
    alone = ALONE

    def __init__(self, folder: Path, script: str) -> None:
        super().__init__(folder, script)
        self.clock = PhaseClock()
        self._steps: list[list[float]] = []
        self._batches: list[int] = []

    def install(self, stack: ExitStack) -> None:
        self.clock.on_step(self._stepped)
        self.clock.install(stack)

    def results(self, how: str) -> dict[str, Any]:
        return {
            "phases": list(PHASES),
            "steps": self._steps,
            "batches": self._batches,
            "workers": max(self.clock.loaders.values(), default=0),
        }

    def _stepped(self, spent: dict[str, float]) -> None:
        if len(self._steps) < _MOST:
            self._steps.append([round(spent[phase], 7) for phase in PHASES])
            self._batches.append(int(spent["batches"]))
