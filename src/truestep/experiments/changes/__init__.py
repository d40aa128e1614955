"""What an experiment changes in a script, at the seams of torch: one change per file, each undone exactly."""

from __future__ import annotations

from truestep.experiments.changes._change import Change
from truestep.experiments.changes.first_batches import FirstBatches
from truestep.experiments.changes.no_dropout import NoDropout

CHANGES: dict[str, type[Change]] = {change.name: change for change in (FirstBatches, NoDropout)}
"""Every change by its name."""

__all__ = ["CHANGES", "Change"]
