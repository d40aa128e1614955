"""Clips in the wrong place, which found no fresh gradient: what clip-after-step and clip-before-backward share."""

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
"""From this max_norm on, a clip is there to read the norm."""


class Place(Enum):
    """Where in the loop a clip of no fresh gradient stands."""

    AFTER_STEP = "after the step"
    BEFORE_BACKWARD = "before the backward pass"


class Clipping:
    """Follows clips between steps, and tells those that stand in the wrong place."""

    def __init__(self) -> None:
        self._stepped_at: dict[int | None, Site | None] = {}
        """Optimizer to the line of its latest step; None for the latest of all."""
        self._since_step = True
        """Whether nothing of the next iteration has happened since the latest step."""
        self._backward_ran = False
        self._bound: set[int | None] = set()
        self._proper: set[int | None] = set()
        """Optimizers that stepped on clipped gradients at least once."""

    def observe(self, event: Event, run: Progress) -> Place | None:
        """Take up an event; return where it stands when it is a clip in the wrong place."""
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
            case _:
                pass
        return None

    def step_of(self, event: GradientsClipped) -> Site | None:
        """Return the line of the latest step of the optimizer that holds the clipped parameters."""
        return self._stepped_at.get(event.optimizer)

    def _close(self) -> None:
        self._since_step, self._backward_ran = True, False
        self._bound.clear()

    def _clip(self, event: GradientsClipped) -> Place | None:
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
            return Place.BEFORE_BACKWARD
        if event.site is not None and (step.path, step.function) == (event.site.path, event.site.function):
            return Place.AFTER_STEP if event.site.line >= step.line else Place.BEFORE_BACKWARD
        return Place.AFTER_STEP if self._since_step else Place.BEFORE_BACKWARD


class MisplacedClip(Rule):
    """A rule about clips that stand in one of the wrong places."""

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
    needs = (GradientsClipped,)
    leads_to = ("nan-or-inf",)

    def __init__(self) -> None:
        super().__init__()
        self._clipping = Clipping()


def is_limit(event: GradientsClipped) -> bool:
    """Whether the clip is there to limit gradients, not only to read their norm."""
    return 0 < event.max_norm < LOGGING
