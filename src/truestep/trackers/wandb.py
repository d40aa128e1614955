"""Weights & Biases, offline unless WANDB_MODE says otherwise: `wandb sync` sends a run when it suits.

A run there cannot be set back offline, and drops steps that come again. So every start of a resumed run is a new run of
the same group, whose history is written again from `metrics.jsonl`: the newest one is whole, without doubled steps.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from truestep.trackers.line import Line
from truestep.trackers.tracking import Ending, Start


class WeightsAndBiases:
    """Writes lines as rows of the history.

    Args:
        start: where, and what there is already.
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

    def write(self, lines: Iterable[Line]) -> None:
        """Write lines; those of one step are one row."""
        for line in lines:
            self._run.log({"epoch": line.epoch, **line.values}, step=line.step)

    def close(self, ending: Ending) -> None:
        """End the run there."""
        self._run.finish(exit_code=0 if ending == "finished" else 1)


def begin(start: Start) -> WeightsAndBiases:
    """Begin a run there."""
    return WeightsAndBiases(start)
