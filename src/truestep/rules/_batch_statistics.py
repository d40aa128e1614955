"""Base class of rules on the number of values from which batch normalisation takes its statistics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from truestep.events import BackwardEnded, BatchStatisticsTaken, Event, RunEnded
from truestep.rules._rule import Progress, Rule

TINY = 2
"""Most values per channel of which only the order is left."""
_LEAST_LOOKS = 4
_FIRST_STEP = 10
"""Least number of steps between the first and the latest sampled step."""


@dataclass(slots=True)
class Looks:
    """Observed batch statistics of one model."""

    latest: BatchStatisticsTaken
    count: int = 0
    step: int = 0
    """The latest observed step."""
    first_step: int = 0
    most: int = 0
    """Most values per channel of a layer in any of them."""


class StatisticsRule(Rule):
    """A failure of models that have few values per channel in every sampled step of a training."""

    most: ClassVar[int]
    """Most values per channel that count as few."""

    def __init__(self) -> None:
        super().__init__()
        self._looks: dict[int, Looks] = {}
        self._enough: set[int] = set()
        """Models that had more values at some step, or that overfit one batch."""
        self._waiting: dict[int, BatchStatisticsTaken] = {}
        """Models before their next backward pass."""

    def suspected(self) -> bool:
        return super().suspected() or bool(self._looks)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BatchStatisticsTaken():
                if event.values > self.most or event.same_input:
                    self._enough.add(event.model)
                    self._looks.pop(event.model, None)
                elif event.model not in self._enough:
                    self._waiting[event.model] = event
            case BackwardEnded():
                for model, latest in self._waiting.items():
                    if model not in self._enough:
                        self._look(model, latest, run)
                self._waiting.clear()

    def _look(self, model: int, latest: BatchStatisticsTaken, run: Progress) -> None:
        looks = self._looks.setdefault(model, Looks(latest, first_step=run.step))
        looks.latest = latest
        looks.most = max(looks.most, latest.values)
        looks.count += 1
        looks.step = run.step

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how not in ("finished", "exited"):
            return
        for model, looks in self._looks.items():
            if looks.count < _LEAST_LOOKS or looks.step - looks.first_step < _FIRST_STEP or 2 * looks.step < run.step:
                continue  # too little of the training was observed: batches may grow
            self.judge(model, looks, run)

    @abstractmethod
    def judge(self, model: int, looks: Looks, run: Progress) -> None:
        """Report a model that had few values in every sampled step, if that is the failure.

        Args:
            model: number of the model.
            looks: its observed statistics.
            run: position of the run.
        """
