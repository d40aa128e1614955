"""The log of a run: lines, alerts, early stopping, speed and the progress line.

No tensor is read during a step: values are kept, and read in one copy when the lines of the log are written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import torch

from truestep.errors import BadSettings
from truestep.loop.log.alerts import Alerts
from truestep.loop.log.banner import introduction
from truestep.loop.log.flops import flops_per_sample, peak_flops
from truestep.loop.log.log_copies import LogCopies
from truestep.loop.log.logs import Logs
from truestep.loop.log.progress_line import ProgressLine
from truestep.loop.log.throughput import Measurement, Throughput
from truestep.loop.optim.precision import Precision
from truestep.loop.position.passes import LoopPass
from truestep.loop.position.progress import RunProgress
from truestep.loop.process.terminal import say
from truestep.loop.ranks.strategy import Strategy
from truestep.loop.run.registry import Parts
from truestep.loop.settings.settings import Settings
from truestep.trackers.tracking import Tracking


def open_logs(folder: Path | None, settings: Settings, measure: Callable[[], dict[str, float]]) -> Logs:
    """Open the log of a run.

    Args:
        folder: of the run; None to write no file.
        settings: of the run.
        measure: returns speed and memory by name.

    Raises:
        BadSettings: an unknown tracker, or trackers of a run without folder.
        PackageMissing: the package of a tracker is not installed.
    """
    tracking = Tracking(settings.trackers, tell=say)
    every, alerts = settings.log_every_n_steps, settings.alerts
    if folder is None:
        if tracking.waits:
            raise BadSettings(
                "trackers were given, but the run has no folder",
                expected="expected out=, which trackers are filled from when a run resumes",
                remedy='pass out="runs/name"',
            )
        return Logs(None, every=every, alerts=Alerts(None, show=say, defaults=alerts))
    return Logs(
        folder / "metrics.jsonl",
        every=every,
        alerts=Alerts(folder / "alerts.jsonl", show=say, defaults=alerts),
        copies=LogCopies(folder, asdict(settings), tracking, measure=measure, tell=say),
    )


class RunLog:
    """The log of a run: its lines, alerts, speed and progress line.

    Args:
        folder: of the run; None to write no file.
        settings: of the run.
        precision: of the run.
        parts: of the run.
        progress: of the run.
        strategy: rank 0 decides whether a value has stopped improving.

    Attributes:
        logs: lines and alerts.
        pace: measures the speed of the training loops.
        line: the progress line.
    """

    def __init__(
        self,
        folder: Path | None,
        settings: Settings,
        precision: Precision,
        parts: Parts,
        progress: RunProgress,
        strategy: Strategy,
    ) -> None:
        self._strategy = strategy
        self.logs = open_logs(folder, settings, self._measured)
        self.pace = Throughput(precision.device, peak_flops(precision.device, precision.name))
        self.line = ProgressLine(shown=settings.progress, pace=self.pace, last=lambda: self.logs.last)
        self._precision, self._parts, self._progress = precision, parts, progress
        self._last_measured: Measurement | None = None

    @property
    def skipped_steps(self) -> int:
        """Number of updates that fp16 skipped because a gradient overflowed."""
        return sum(updates.skipped for updates in self._parts.updates.values())

    def log(self, values: Mapping[str, Any]) -> None:
        """Write values with step, epoch, learning rates and norms; see `Run.log`."""
        progress = self._progress
        if progress.is_resuming:
            return
        added: dict[str, Any] = {}
        if progress.position.active:
            several = len(self._parts.updates) > 1
            for name, updates in self._parts.updates.items():
                end = f"/{name}" if several else ""
                if updates.lr is not None:
                    added["lr" + end] = updates.lr
                if updates.grad_norm is not None:
                    added["grad_norm" + end] = updates.grad_norm
        if skipped := self.skipped_steps:
            added["skipped_steps"] = skipped
        self.logs.log(values, step=progress.global_step, epoch=progress.epoch, own=added)

    def stalled(self, name: str, *, patience: int, min_delta: float, mode: Literal["min", "max"]) -> bool:
        """Return True if a logged value has stopped improving; see `Run.stalled`."""
        logs = self.logs
        if logs.waits(name):
            logs.flush()
        last, epoch = logs.last.get(name), self._progress.epoch
        stalled = logs.early_stopping.stalled(
            name, patience=patience, min_delta=min_delta, mode=mode, last=last, epoch=epoch
        )
        return self._strategy.of_first(stalled)

    def count_flops(self, model: torch.nn.Module, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> float:
        """Count the operations of a training step for one sample, and report their share of the peak from now on."""
        self.pace.flops_per_sample = flops_per_sample(model, inputs, options)
        return self.pace.flops_per_sample

    def introduce(self, batch: Any) -> None:
        """Write the line about model and data once, before the first body."""
        if self.line.shown:
            self.line.introduce(introduction(self._parts.models, batch, self._precision.name))

    def count_batch(self, samples: int, current: LoopPass, length: int | None) -> None:
        """Count the batch of a body that ended, and draw the progress line if it is due.

        Args:
            samples: in the batch.
            current: the pass under way.
            length: number of its batches; None if unknown.
        """
        pace = self.pace
        pace.batches += 1
        pace.samples += samples
        if perf_counter() >= self.line.due:
            self.line.show(self._progress.completion(current, length))

    def end_epoch(self) -> None:
        """Write the lines of an epoch, then clear its values."""
        self.logs.flush()
        self.line.end_epoch(self._progress.completion())
        self.logs.end_epoch()

    def _measured(self) -> dict[str, float]:
        """Return speed and memory since the previous call; empty for the first one."""
        measured = self.pace.measure(self._progress.global_step)
        before, self._last_measured = self._last_measured, measured
        return {} if before is None else measured.since(before)
