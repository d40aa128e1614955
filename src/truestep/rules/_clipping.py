"""Clipping in the wrong place, without a fresh gradient: shared by clip-after-step and clip-before-backward."""

from __future__ import annotations

from enum import Enum

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    Event,
    GradientsClipped,
    GradientsZeroed,
    HandStepped,
    ModelCalled,
    OptimizerStepped,
    Site,
)
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule

LOGGING = 1e6
"""From this max_norm on, the clip only serves to read the norm."""


class ClipPlace(Enum):
    """Position in the loop of a clip that found no fresh gradient."""

    AFTER_STEP = "after the step"
    BEFORE_BACKWARD = "before the backward pass"


class Clipping:
    """Tracks clips between steps, and detects those in the wrong place."""

    def __init__(self) -> None:
        self._stepped_at: dict[int | None, Site | None] = {}
        """Optimizer to the line of its latest step; key None: the latest step of any optimizer."""
        self._since_step = True
        """Whether the next iteration has not begun since the latest step."""
        self._backward_ran = False
        self._bound: set[int | None] = set()
        self._proper: set[int | None] = set()
        """Optimizers that stepped on clipped gradients at least once."""

    def observe(self, event: Event, run: Progress) -> ClipPlace | None:
        """Update the state with an event; return its place if it is a clip in the wrong place."""
        match event:
            case BatchDrawn() | ModelCalled():
                self._since_step = False
            case BackwardEnded():
                self._since_step = False
                self._backward_ran = True
            case GradientsZeroed():
                self._bound.clear()
            case HandStepped():
                self._close()
            case OptimizerStepped():
                self._stepped_at[event.optimizer] = self._stepped_at[None] = event.site
                if event.optimizer in self._bound:
                    self._proper |= {None, event.optimizer}
                self._close()
            case GradientsClipped():
                return self._clip(event)
        return None

    def step_of(self, event: GradientsClipped) -> Site | None:
        """Return the line of the latest step of the optimizer that holds the clipped parameters."""
        return self._stepped_at.get(event.optimizer)

    def _close(self) -> None:
        self._since_step, self._backward_ran = True, False
        self._bound.clear()

    def _clip(self, event: GradientsClipped) -> ClipPlace | None:
        if event.fresh:
            self._bound |= {None, event.optimizer, *event.optimizers}
            return None
        if not is_limit(event) or self._backward_ran or event.optimizer in self._proper:
            return None
        nothing_yet = event.kind == "value" and not event.given
        if not nothing_yet and not event.used + event.absent_grad == event.observed > 0:
            return None
        step = self.step_of(event)
        if step is None:
            return ClipPlace.BEFORE_BACKWARD
        if event.site is not None and (step.path, step.function) == (event.site.path, event.site.function):
            return ClipPlace.AFTER_STEP if event.site.line >= step.line else ClipPlace.BEFORE_BACKWARD
        return ClipPlace.AFTER_STEP if self._since_step else ClipPlace.BEFORE_BACKWARD


class MisplacedClip(Rule):
    """Base class of rules about clips in the wrong place."""

    severity = Severity.ERROR
    watches = (
        BackwardEnded,
        BatchDrawn,
        GradientsClipped,
        GradientsZeroed,
        HandStepped,
        ModelCalled,
        OptimizerStepped,
    )
    needs = (GradientsClipped, OptimizerStepped)
    leads_to = ("nan-or-inf", "update-exceeds-weights")

    def __init__(self) -> None:
        super().__init__()
        self._clipping = Clipping()


def is_limit(event: GradientsClipped) -> bool:
    """Return True if the clip limits gradients and does not only read their norm."""
    return 0 < event.max_norm < LOGGING
