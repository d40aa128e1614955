"""The control: a speed-up without any change. Its apparent gain is noise."""

from __future__ import annotations

from contextlib import ExitStack

from truestep.experiments.changes.parts.speedup import Speedup, Stage


class Nothing(Speedup):
    """No change."""

    name = "nothing"
    summary = "no change: its apparent gain is the noise of this machine"
    lines = ""
    stage = Stage.OPTIMIZER

    def install(self, stack: ExitStack) -> None:
        self.applied = 1
