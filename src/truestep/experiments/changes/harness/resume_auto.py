"""Let a run of the toolkit resume from the checkpoints in its folder, unless the script sets `resume`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.seams.patch import patch


class ResumeAuto(Change):
    """`truestep.Run` gets `resume="auto"` if a script gives a folder and no `resume`."""

    name = "resume-auto"

    def install(self, stack: ExitStack) -> None:
        from truestep.loop.run.run import Run

        def __init__(run: Any, settings: Any = None, **changes: Any) -> None:
            resume, out = (changes.get(name, getattr(settings, name, None)) for name in ("resume", "out"))
            if resume is None and out is not None:
                changes["resume"] = "auto"
                self.applied += 1
            begin(run, settings, **changes)

        begin = patch(stack, Run, "__init__", __init__)
