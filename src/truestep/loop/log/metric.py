"""Metrics of torchmetrics as parts of a checkpoint; by default, their `state_dict` is empty."""

from __future__ import annotations

import sys
from typing import Any

import torch


class Metric:
    """A metric, or a collection of metrics, with its whole state.

    Args:
        metric: a metric or collection of torchmetrics.
    """

    def __init__(self, metric: Any) -> None:
        self._metric = metric
        metric.persistent(True)

    def state_dict(self) -> dict[str, Any]:
        """Return the state with the update counts, without which a restored metric warns that it has no updates."""
        return {"state": dict(self._metric.state_dict()), "updates": [one.update_count for one in self._all()]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self._metric.load_state_dict(state["state"])
        for one, updates in zip(self._all(), state["updates"], strict=True):
            one._update_count = updates
            one._computed = None

    def _all(self) -> list[Any]:
        kind = sys.modules["torchmetrics"].Metric
        return [module for module in self._metric.modules() if isinstance(module, kind)]


def metric_of(part: Any, device: torch.device) -> Metric | None:
    """Move a metric of torchmetrics to a device, and return its adapter for checkpoints; None for other objects."""
    torchmetrics = sys.modules.get("torchmetrics")
    if torchmetrics is None or not isinstance(part, (torchmetrics.Metric, torchmetrics.MetricCollection)):
        return None
    part.to(device)
    return Metric(part)
