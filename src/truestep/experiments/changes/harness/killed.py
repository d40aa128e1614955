"""Kill the process as `kill -9` does, at a chosen step or while it writes a file."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.running.inside.state_writes import watch_writes


class Killed(Change):
    """The process sends SIGKILL to itself: no handler runs and nothing is flushed. All processes of the run die.

    Args:
        step: number of steps of all optimizers together before the kill; None for a kill during a write.
        moment: "step": right after the step; "backward": in the next backward pass, when code after the step has run.
        write: index of the write to interrupt, from 0 (see `truestep.experiments.running.inside.state_writes`).
    """

    name = "killed"

    def __init__(self, step: int | None = None, moment: str = "step", write: int | None = None) -> None:
        super().__init__()
        self.step, self.moment, self.write = step, moment, write
        self._steps = self._writes = 0

    def install(self, stack: ExitStack) -> None:
        def steps(*_: Any) -> None:
            if not stepped_is_last:  # registered last, so that all other hooks see the step
                stepped_is_last.append(True)
                seams.step.watch(stack, after=stepped)

        def stepped(*_: Any) -> None:
            self._steps += 1
            if self._steps == self.step and self.moment == "step":
                self._die()

        def run_engine(*args: Any, **kwargs: Any) -> Any:
            if self.moment == "backward" and self.step is not None and self._steps >= self.step:
                self._die()
            return backward(*args, **kwargs)

        def written(kind: str, path: str, tear: Any) -> None:
            number, self._writes = self._writes, self._writes + 1
            if number == self.write:
                tear()
                self._die()

        stepped_is_last: list[Any] = []
        seams.step.watch(stack, before=steps)
        backward = seams.backward.wrap(stack, run_engine)
        watch_writes(stack, written)

    def _die(self) -> None:
        if "RANK" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
