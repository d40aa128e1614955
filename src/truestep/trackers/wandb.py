"""Weights & Biases, offline unless WANDB_MODE is set: upload a run later with `wandb sync`.

A run cannot be rewound offline, and ignores repeated steps. So each resume creates a new run of the same group, with
the history from `metrics.jsonl`: the newest one is complete, without repeated steps.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from truestep.trackers.line import LogLine
from truestep.trackers.tracking import Ending, Start


class WeightsAndBiases:
    """Writes lines as rows of the history.

    Args:
        start: the folder, settings and history of the run.
    """

    def __init__(self, start: Start) -> None:
        wandb: Any = importlib.import_module("wandb")
        name = start.folder.resolve().name
        config = {key: value if isinstance(value, int | float) else str(value) for key, value in start.settings.items()}
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", Path.cwd().name),
            name=name,
            group=os.environ.get("WANDB_RUN_GROUP", name),
            dir=str(start.folder),
            config={**config, "resumed_from_step": start.step},
            mode=os.environ.get("WANDB_MODE", "offline"),
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off", disable_git=True, save_code=False),
        )
        self.write(start.history())

    def write(self, lines: Iterable[LogLine]) -> None:
        """Write lines; lines of one step form one row."""
        for line in lines:
            self._run.log({"epoch": line.epoch, **line.values}, step=line.step)

    def close(self, ending: Ending) -> None:
        """End the run of Weights & Biases."""
        self._run.finish(exit_code=0 if ending == "finished" else 1)


def begin(start: Start) -> WeightsAndBiases:
    """Begin a run of Weights & Biases."""
    return WeightsAndBiases(start)
