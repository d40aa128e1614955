"""The moment at which a short check of a script has seen its first steps and an evaluation."""

from __future__ import annotations

import time

from truestep.events import Event, HandStepped, ModelCalled, OptimizerStepped

LEAST_STEPS = 20
"""Optimizer steps before the evaluation: the checks on copies are made during the first steps."""


class FirstEvaluation:
    """Reads the events of a run, up to the first evaluation after `LEAST_STEPS` steps.

    Args:
        seconds: largest duration, counted from the construction.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._steps = 0
        self._latest: dict[int, int] = {}
        """Model to the step of its latest call without a graph."""
        self._evaluated = False

    def passed(self, event: Event) -> bool:
        """Note an event; return True once the evaluation has begun or the time is over."""
        match event:
            case OptimizerStepped() | HandStepped():
                self._steps += 1
            case ModelCalled(tracked=False):
                # A call in every step (a teacher, a target network) serves the training.
                rare = self._latest.get(event.model, -1) not in (self._steps, self._steps - 1)
                self._evaluated |= rare and self._steps >= LEAST_STEPS
                self._latest[event.model] = self._steps
        return self._evaluated or time.monotonic() >= self._end
