"""Coverage of a run: how much of a training was observed. Computed from events, so a replay gives the same."""

from __future__ import annotations

import math
from statistics import fmean

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Chance, Coverage
from truestep.rules import Progress

_OVER_CLASSES = ("cross_entropy", "nll_loss")
_LEAST_READS = 8
_LEAST_STEP = 100
_AT_CHANCE = (0.97, 1.15)
_LOWEST = 0.9
"""Multiples of ln C: range of the mean of the later half; and lower limit of all values, also of a small batch."""
_LATE = 0.8
"""Fraction of the run after which the last value must be read, since a plateau can end between two reads."""


class Extent:
    """Collects the data of `Coverage`."""

    def __init__(self) -> None:
        self._processes = 0
        self._fed = False
        self._started: Site | None = None
        self._classes: set[int] = set()
        self._reads: list[tuple[int, float]] = []

    def note(self, event: Event, step: int) -> None:
        """Process an event of a step."""
        match event:
            case ev.LossComputed(grad=True):
                over_classes = event.kind in _OVER_CLASSES and event.reduction == "mean"
                self._classes.add(event.classes if over_classes else 0)
            case ev.LossRead(scaled=False) if event.root.startswith("NllLoss"):
                self._reads.append((step, event.value))
            case ev.OptimizerStepped():
                self._fed |= _may_have_used_gradients(event)
            case ev.HandStepped():
                self._fed = True
            case ev.ProcessStarted():
                self._processes += 1
                self._started = self._started or event.site

    def coverage(self, progress: Progress, error: str) -> Coverage:
        """Return the coverage; ``error`` describes the exception that ended the run, or is empty."""
        met = progress.met
        return Coverage(
            called=not met.isdisjoint((ev.ModelCalled, ev.ModelMet, ev.ForwardCalledDirectly)),
            backward=not met.isdisjoint((ev.BackwardEnded, ev.GradientsTaken)),
            fed=self._fed or not progress.step,
            error=error,
            processes=self._processes,
            started=self._started,
            chance=self._chance(progress.step),
        )

    def _chance(self, steps: int) -> Chance | None:
        """Return the level of the loss if it stays at that of a random guess, and is the only loss; else None."""
        classes = next(iter(self._classes)) if len(self._classes) == 1 else 0
        if classes < 2 or len(self._reads) < _LEAST_READS or self._reads[-1][0] < max(_LEAST_STEP, _LATE * steps):
            return None
        guess = math.log(classes)
        values = [value for _, value in self._reads]
        later = fmean(values[len(values) // 2 :])
        if min(values) < _LOWEST * guess or not _AT_CHANCE[0] * guess <= later <= _AT_CHANCE[1] * guess:
            return None
        return Chance(classes, float(f"{later:.3g}"), self._reads[-1][0])


def _may_have_used_gradients(step: ev.OptimizerStepped) -> bool:
    """Return True unless all observed parameters had no gradient, or one that was cleared before the step."""
    without = step.absent_grad + step.cleared == step.observed > 0
    return step.closure or step.scaler or not without
