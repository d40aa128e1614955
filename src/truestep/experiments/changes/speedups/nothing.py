"""The control: a speed-up that changes nothing. Its apparent gain is noise."""

from __future__ import annotations

from contextlib import ExitStack

from truestep.experiments.changes.speedups.speedup import Tuning


class Nothing(Tuning):
    """No change at all."""

    name = "nothing"
    summary = "no change: what it seems to give is the noise of this machine"
    lines = ""

    def install(self, stack: ExitStack) -> None:
        self.applied = 1
