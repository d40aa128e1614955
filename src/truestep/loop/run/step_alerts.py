"""Losses and gradient norms of steps, kept for the alerts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from truestep.loop.log.logs import Logs
    from truestep.loop.optim.updates import Updates
    from truestep.loop.position.progress import RunProgress


class StepAlerts:
    """Passes losses and norms to the alerts of a run.

    Args:
        updates: of the optimizers of the run, by name.
        progress: step and epoch of the values.
        logs: read the values later, many in one copy.
    """

    def __init__(self, updates: Mapping[str, Updates], progress: RunProgress, logs: Logs) -> None:
        self._updates, self._progress, self._logs = updates, progress, logs

    def watch_loss(self, loss: torch.Tensor, group: tuple[Updates, ...]) -> None:
        """Keep a loss for the alerts; losses of several optimizers have no alert for spikes: they oppose each other."""
        progress = self._progress
        if not self._logs.alerts.defaults or progress.position.is_resuming or loss.numel() != 1:
            return
        name = "the loss"
        kinds: tuple[str, ...] = ("not-finite",)
        if len(self._updates) > len(group):
            name = f"the loss of {_names(group)}"
        elif progress.over_loader:
            kinds = ("not-finite", "spike")
        self._watch(name, loss, kinds, group, copied=True)

    def watch_norm(self, group: tuple[Updates, ...], norm: torch.Tensor) -> None:
        """Keep a norm for the alerts; with a scaler infinite norms are normal, since it finds its scale by them."""
        if not self._logs.alerts.defaults or self._progress.position.is_resuming:
            return
        name = "grad_norm" if len(self._updates) == len(group) else f"grad_norm of {_names(group)}"
        kinds: tuple[str, ...] = ("norm-spike",) if group[0].scaler is not None else ("not-finite", "norm-spike")
        self._watch(name, norm, kinds, group)

    def _watch(
        self,
        name: str,
        value: torch.Tensor,
        kinds: tuple[str, ...],
        group: tuple[Updates, ...],
        *,
        copied: bool = False,
    ) -> None:
        for updates in group:
            if updates.lr_jumped:
                kinds = (*kinds, "jumped")
                break
        progress = self._progress
        step = progress.step_of(group[0].window)
        self._logs.watch(name, value, kinds, step=step, epoch=progress.position.epoch, copied=copied)


def _names(group: tuple[Updates, ...]) -> str:
    return " and ".join([updates.name for updates in group])
