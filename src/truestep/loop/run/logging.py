"""What a run writes down, and what it notices in it: `run.log`, `run.stalled`, `run.alert`.

Nothing here reads a tensor in a step: values are kept, and read in one copy when the lines of the log are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch

from truestep.errors import BadSettings
from truestep.loop.log.alerts import Alert, Alerts
from truestep.loop.log.banner import introduction
from truestep.loop.log.flops import flops_per_sample
from truestep.loop.log.log_copies import Outlets
from truestep.loop.log.logs import Logs
from truestep.loop.log.progress_line import ProgressLine
from truestep.loop.log.throughput import Look, Pace
from truestep.loop.optim.precision import Precision
from truestep.loop.optim.updates import Updates
from truestep.loop.process.terminal import say
from truestep.loop.run.loops import Loops
from truestep.loop.run.registry import Parts
from truestep.loop.settings.settings import Settings
from truestep.trackers.tracking import Tracking


def open_logs(folder: Path | None, settings: Settings, measure: Callable[[], dict[str, float]]) -> Logs:
    """Return where a run writes what happens.

    Args:
        folder: of the run; None to write nothing.
        settings: of the run.
        measure: returns what there is to say about speed and memory.

    Raises:
        BadSettings: a tracker that there is not, or trackers of a run without folder.
        PackageMissing: what a tracker needs is not installed.
    """
    tracking = Tracking(settings.trackers, tell=say)
    every, alerts = settings.log_every_n_steps, settings.alerts
    if folder is None:
        if tracking.waits:
            raise BadSettings(
                "trackers were given, but the run has no folder",
                expected="out=, which trackers are filled from when a run resumes",
                remedy='pass out="runs/name"',
            )
        return Logs(None, every=every, alerts=Alerts(None, show=say, defaults=alerts))
    return Logs(
        folder / "metrics.jsonl",
        every=every,
        alerts=Alerts(folder / "alerts.jsonl", show=say, defaults=alerts),
        outlets=Outlets(folder, asdict(settings), tracking, measure=measure, tell=say),
    )


class Recording:
    """The lines of a loop that record what happens.

    Attributes:
        skipped_steps: updates that were skipped because a gradient overflowed in fp16.
    """

    precision: Precision
    _parts: Parts
    _loops: Loops
    _logs: Logs
    _pace: Pace
    _progress: ProgressLine
    _looked: Look | None = None

    @property
    def skipped_steps(self) -> int:
        """Updates that were skipped because a gradient overflowed in fp16."""
        return sum(updates.skipped for updates in self._parts.updates.values())

    def log(self, values: Mapping[str, Any]) -> None:
        """Write values down with step and epoch. Tensors are read later, many in one copy.

        Lines of a training loop also say the learning rate of the last update, and the norm of the gradients before
        they were clipped, where they are: `lr` and `grad_norm`, or with several optimizers `lr/<name>` and
        `grad_norm/<name>`. In fp16, lines say how many steps were skipped so far, from the first one on. A value that
        is given under one of these names stays as it is given.

        Args:
            values: numbers, strings, tensors of one element, means (`run.mean()`) or metrics, by name.

        Raises:
            BadLogValue: a value that is none of these.
        """
        walks = self._loops.walks
        if walks.is_resuming:
            return
        added: dict[str, Any] = {}
        if walks.active:
            several = len(self._parts.updates) > 1
            for name, updates in self._parts.updates.items():
                end = f"/{name}" if several else ""
                if updates.lr is not None:
                    added["lr" + end] = updates.lr
                if updates.grad_norm is not None:
                    added["grad_norm" + end] = updates.grad_norm
        if skipped := self.skipped_steps:
            added["skipped_steps"] = skipped
        self._logs.log(values, step=self._loops.global_step, epoch=walks.epoch, own=added)

    def stalled(self, name: str, *, patience: int, min_delta: float = 0.0, mode: Literal["min", "max"] = "min") -> bool:
        """Whether a logged value has stopped to improve: early stopping.

            run.log({"val_loss": val_loss})
            if run.stalled("val_loss", patience=5):
                break

        The count is part of the checkpoints. It goes up when a value is logged, not when this is called: to ask twice
        changes nothing. Values from the first call on count, and the one that was logged before it. NaN is no
        improvement.

        Args:
            name: of the value, as `run.log()` gets it.
            patience: values in a row of which none is better than the best one before them.
            min_delta: by how much a value has to be better.
            mode: "min" where smaller is better, "max" where larger is.

        Raises:
            BadSettings: an argument that means nothing.
            MetricMissing: more than `patience` epochs have asked, and nothing was ever logged under that name.
        """
        logs = self._logs
        if logs.waits(name):
            logs.flush()
        epoch = self._loops.walks.epoch
        return logs.stalls.stalled(
            name, patience=patience, min_delta=min_delta, mode=mode, last=logs.last.get(name), epoch=epoch
        )

    @property
    def alerts(self) -> list[Alert]:
        """What went wrong so far, in order. Values are read with the lines of the log, so that an alert comes a little
        late.

        How to: [log](../how-to/logging.md).
        """
        return list(self._logs.alerts.found)

    def alert(
        self,
        name: str,
        *,
        rising: int | None = None,
        falling: int | None = None,
        spike: bool = False,
        above: float | None = None,
        below: float | None = None,
    ) -> None:
        """Watch a logged value for NaN and infinity, and for what else is asked for. A second call replaces the first.

        Args:
            name: of the value, as `run.log()` gets it.
            rising: how many times in a row it rises, by more than it scatters: `rising=5` for a loss that diverges.
            falling: the same for a value that gets worse by falling.
            spike: whether it jumps far above what was usual over the last 200 values, and stays there.
            above: a bound that it passes.
            below: a bound that it falls under.

        Raises:
            BadSettings: an argument that means nothing.
        """
        self._logs.alerts.ask(name, rising=rising, falling=falling, spike=spike, above=above, below=below)

    def on_alert(self, callback: Callable[[Alert], object]) -> None:
        """Call a function with every alert, as it is found. What it raises ends the training.

        Args:
            callback: is given the alert.
        """
        self._logs.alerts.callbacks.append(callback)

    def count_flops(self, model: torch.nn.Module, *inputs: Any, **options: Any) -> float:
        """Count the operations of a training step, so that the share of the device's speed that is used (MFU) is told.

        The forward pass is counted by `torch.utils.flop_counter` on the meta device, where nothing is computed and no
        weight, buffer, mode or random number changes; the backward pass takes twice as much (Kaplan et al., 2020,
        https://arxiv.org/abs/2001.08361, section 2.1). Only products of matrices, convolutions and attention count. MFU
        is told where the peak of the device is known (`truestep.loop.log.flops`); it is that of Chowdhery et al., 2022,
        https://arxiv.org/abs/2204.02311, appendix B.

        Args:
            model: called with the rest.
            *inputs: of one batch: tensors whose first dimension is samples.
            **options: arguments by name.

        Returns:
            Floating-point operations of forward and backward pass for one sample.

        Raises:
            BadPart: the model cannot be called on the meta device.

        Example:
            >>> from truestep import Run
            >>> run = Run(device="cpu", watch=False)
            >>> run.count_flops(torch.nn.Linear(100, 10), torch.ones(8, 100))  # 3 passes, 2 operations, 1000 weights
            6000.0
        """
        self._pace.flops_per_sample = flops_per_sample(model, inputs, options)
        return self._pace.flops_per_sample

    def _introduce(self, batch: Any) -> None:
        """Say once what is trained."""
        if self._progress.shown:
            self._progress.introduce(introduction(self._parts.models, batch, self.precision.name))

    def _measured(self) -> dict[str, float]:
        """Return speed and memory since the last time."""
        look = self._pace.look(self._loops.global_step)
        before, self._looked = self._looked, look
        return {} if before is None else look.since(before)

    # --- what the run watches by itself ---

    def _watch_loss(self, loss: torch.Tensor, group: tuple[Updates, ...]) -> None:
        """Keep a loss for the alerts. Losses of several optimizers pull against each other: they have no spikes."""
        loops = self._loops
        if not self._logs.alerts.defaults or loops.walks.is_resuming or loss.numel() != 1:
            return
        name = "the loss"
        kinds: tuple[str, ...] = ("not-finite",)
        if len(self._parts.updates) > len(group):
            name = f"the loss of {_names(group)}"
        elif loops.over_loader:
            kinds = ("not-finite", "spike")
        if any(updates.lr_jumped for updates in group):
            kinds = (*kinds, "jumped")
        self._logs.watch(name, loss, kinds, step=loops.step_of(group[0]), epoch=loops.walks.epoch, copied=True)

    def _watch_norm(self, group: tuple[Updates, ...], norm: torch.Tensor) -> None:
        """Keep a norm for the alerts. With a scaler, infinite ones are its way to find the scale."""
        loops = self._loops
        if not self._logs.alerts.defaults or loops.walks.is_resuming:
            return
        name = "grad_norm" if len(self._parts.updates) == len(group) else f"grad_norm of {_names(group)}"
        kinds: tuple[str, ...] = ("norm-spike",) if group[0].scaler is not None else ("not-finite", "norm-spike")
        if any(updates.lr_jumped for updates in group):
            kinds = (*kinds, "jumped")
        self._logs.watch(name, norm, kinds, step=loops.step_of(group[0]), epoch=loops.walks.epoch)


def _names(group: tuple[Updates, ...]) -> str:
    return " and ".join([updates.name for updates in group])
