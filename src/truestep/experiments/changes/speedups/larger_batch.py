"""Larger batches."""

from __future__ import annotations

from typing import Any

from truestep.experiments.changes.parts.loader_arguments import LoaderArguments
from truestep.experiments.changes.parts.speedup import Stage


class LargerBatch(LoaderArguments):
    """Batches of twice the size: another training, with another best learning rate."""

    name = "larger-batch"
    summary = "twice the batch_size of DataLoader: another training, compared by samples per second"
    lines = "# another training: its learning rate is another one\nDataLoader(..., batch_size=2 * batch_size)"
    phases = ("forward", "backward", "other")
    stage = Stage.BATCHES
    on_request = True
    tolerance = float("inf")
    factor = 2.0

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        size = given.get("batch_size", 1)
        return {"batch_size": 2 * size} if isinstance(size, int) and given.get("batch_sampler") is None else {}
