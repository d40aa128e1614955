"""TensorBoard: event files in the run's folder; view them with `tensorboard --logdir runs`.

A resumed run purges everything written after its checkpoint, and writes the lines of the checkpoint's step again, since
a purge includes that step.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from truestep.trackers.line import LogLine
from truestep.trackers.tracking import Ending, Start


class TensorBoard:
    """Writes numbers as scalars, and strings as texts.

    Args:
        start: the folder, settings and history of the run.
    """

    def __init__(self, start: Start) -> None:
        module: Any = importlib.import_module("torch.utils.tensorboard")
        folder = start.folder / "tensorboard"
        before = sorted(folder.glob("events.out.tfevents.*")) if folder.exists() else []
        _wait_for_later_name(before)
        self._writer = module.SummaryWriter(str(folder), purge_step=start.step if before else None)
        if not before or not start.step:
            rows = "".join(f"    {name} = {value!r}\n" for name, value in start.settings.items())
            self._writer.add_text("settings", rows, 0)
        self.write(line for line in start.history() if not before or line.step >= start.step)

    def write(self, lines: Iterable[LogLine]) -> None:
        """Write lines, and flush them to the disk."""
        for line in lines:
            for name, number in line.numbers().items():
                self._writer.add_scalar(name, number, line.step)
            for name, text in line.texts().items():
                self._writer.add_text(name, text, line.step)
        self._writer.flush()

    def close(self, ending: Ending) -> None:
        """Close the event file."""
        self._writer.close()


def begin(start: Start) -> TensorBoard:
    """Begin an event file."""
    return TensorBoard(start)


def _wait_for_later_name(before: list[Path]) -> None:
    """Wait until a new file gets a later name than existing ones: TensorBoard reads files in the order of names.

    Names begin with the time in whole seconds, so a run that was just killed can have a file of the current second.
    """
    newest = max((int(part) for path in before if (part := path.name.split(".")[3]).isdigit()), default=0)
    until = time.monotonic() + 2
    while int(time.time()) <= newest and time.monotonic() < until:
        time.sleep(0.02)
