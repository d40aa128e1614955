"""Coasting: between two full looks, a step that keeps repeating is only checked to be the same calls in the same order.

A round is what repeats: one step, or several of several optimizers. Once it came often enough (the stream of events
says so), one round is learned: its events, what shows each call to be the one that made an event, and the states of
the gradients after it. The steps that follow are compared with it, call by call, and no gradient is read. The first
call that differs wakes everything: the stream is given the steps passed and the events of the step under way, the
ledger its states, and that very call is observed in full.

The check has to be small: between kernels the caches are cold, and every object touched costs about as much as ten
instructions. So a call is recognised by one number, made of the caller's position and the identity of what is called.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    Event,
    GradientsClipped,
    GradientsZeroed,
    LossComputed,
    ModelCalled,
    ModeSet,
    OptimizerStepped,
    SchedulerStepped,
)
from truestep.probes.gradients.gradient_states import FRESH, HAND, MIXED, NONE, USED, Held, Panel

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

LIGHT_STEPS = 15
"""Steps between two full rounds, or the next smaller multiple of a round (at least one round)."""
_REST = 64
"""Full steps before another attempt, after a round that could not be learned or was left at once."""
_KEYED = (GradientsZeroed, BackwardEnded, OptimizerStepped, GradientsClipped)
"""Told from the state of gradients: while coasting, the call can only be recognised by its key."""
_TOLD = (BatchDrawn, LossComputed, ModelCalled, ModeSet, SchedulerStepped)
"""Told without a look at gradients: where the key is not enough, the event itself is compared."""


def _nothing_repeats() -> int:
    return 0


def _not_counted(steps: int, begun: Sequence[Event]) -> None:
    pass


class _Moment(NamedTuple):
    """After one event of a round."""

    states: tuple[tuple[int, bool], ...]
    """State, and whether cleared, of each parameter that is looked at."""
    scaled: tuple[bool, ...]
    """Whether the gradients of each optimizer carry the scale of a GradScaler."""


class _Step(NamedTuple):
    """One step of a round."""

    events: list[Event]
    keys: list[int | None]
    moments: list[_Moment]


class Coast:
    """Whether, and where in a round, the run is coasting. Its plain attributes are the probes' fast path.

    Attributes:
        on: whether calls are only compared.
        learning: whether a round is being learned; probes then add the key of what they tell.
        events: those of the step under way, while coasting.
        keys: beside them, what shows a call to be the one that made the event, None where nothing does.
        at: how many of them came already.
        number: number of the step under way, while coasting.
        passing: the event of a recognised step that is under way.
        inside: whether a model call that was recognised is under way.
        same: whether that call was given the same object as the call before.
        thread: the thread that runs the backward passes.
        every: whether the value of every loss is looked at; else of every other one.
        step_key: the key of the full step under way.
        calls: keys of the module calls of the round, with what is remembered of the model, None for a module that has
            nothing to train.
        repeating: returns how many steps make the round that repeats, 0 where none does.
        passed: takes how many steps were passed over, and the events of the step under way.
        until: number of steps after which the script is ended, if it is.
    """

    __slots__ = (
        "_checked",
        "_first",
        "_live",
        "_panels",
        "_phase",
        "_rest",
        "_round",
        "_take",
        "at",
        "calls",
        "events",
        "every",
        "inside",
        "keys",
        "last",
        "learning",
        "number",
        "on",
        "passed",
        "passing",
        "repeating",
        "same",
        "scene",
        "step_key",
        "thread",
        "until",
    )  # fmt: skip

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.on = self.learning = self.inside = self.same = self.every = False
        self.passing: Event | None = None
        self.events: list[Event] = []
        self.keys: list[int | None] = []
        self.at = self.number = self.last = self.thread = 0
        self.step_key: int | None = None
        self.calls: dict[int, Any] = {}
        self.repeating: Callable[[], int] = _nothing_repeats
        self.passed: Callable[[int, Sequence[Event]], None] = _not_counted
        self.until: int | None = None
        self._take = scene.emit
        self._round: list[_Step] = []
        self._first = self._phase = self._rest = 0
        self._checked = 0
        """While a learned round is seen in full again: one more than its steps seen so far; 0 where none is learned."""
        self._live: list[Held] = []
        self._panels: list[Panel] = []

    # --- while steps are observed in full ------------------------------------------------------------------------

    def name(self, key: int) -> None:
        """Add the key to the event that was told last."""
        if self.keys:
            self.keys[-1] = key or None

    def closed(self, event: Event) -> None:
        """Take the end of a step that was observed in full."""
        if self._rest:
            self._rest -= 1
            return
        period = self.repeating()
        if not period or self.scene.sampled:
            self._forget()
        elif self.learning:
            self._note(event)
            self.keys[-1] = self.step_key
            if len(self._round) < period:
                self._learn_step()
            else:
                self._unlearn()
                if self._is_fit():
                    self._checked = 1
                    self._begin()
                else:
                    self._rest = _REST
        elif not self._checked:
            self._learn()
        else:
            self._checked += 1
            if self._checked > period:
                self._checked = 1
                self._begin()

    def _forget(self) -> None:
        self._unlearn()
        self._checked = 0

    def _learn(self) -> None:
        self._round = []
        self._live = self.scene.ledger.live
        self._panels = list(self.scene.ledger.panels.values())
        self.calls = {}
        self.learning, self.scene.emit = True, self._record
        self._learn_step()

    def _learn_step(self) -> None:
        step = _Step([], [], [])
        self._round.append(step)
        self.events, self.keys, _ = step

    def _unlearn(self) -> None:
        self.learning, self.scene.emit = False, self._take

    def _record(self, event: Event) -> None:
        self._note(event)
        self._take(event)

    def _note(self, event: Event) -> None:
        states = tuple([(held.state, held.cleared) for held in self._live])
        self._round[-1].moments.append(_Moment(states, tuple([panel.scaled for panel in self._panels])))
        self.events.append(event)
        self.keys.append(None)

    def _begin(self) -> None:
        """Coast over the steps that follow, where the round allows it."""
        scene = self.scene
        span = self._span(len(self._round))
        if not span or scene.ledger.live is not self._live:
            return
        self._first = self.number = scene.step
        self.last = scene.step + span
        self.thread, self.every = scene.thread, scene.reads_losses
        self.passing, self.inside = None, False
        self._phase = self.at = 0
        self.events, self.keys, _ = self._round[0]
        self.on, scene.emit = True, self.expect

    def _is_fit(self) -> bool:
        """Whether all calls of the round can be recognised, and no step calls a closure or is made by a scaler."""
        if any(held.flattened for held in self._live):
            return False
        for step in self._round:
            for event, key in zip(step.events, step.keys, strict=True):
                if not isinstance(event, _TOLD) and (not isinstance(event, _KEYED) or key is None):
                    return False
                if isinstance(event, OptimizerStepped) and (event.closure or event.scaler):
                    return False
        return True

    def _span(self, period: int) -> int:
        """Return how many steps, in whole rounds, lie before the next one that has to be looked at in full."""
        scene, first = self.scene, self.scene.step
        most = max(LIGHT_STEPS - LIGHT_STEPS % period, period)
        if self.until is not None:
            most = max(0, min(most, self.until - first - 1))
        free = next((n for n in range(most) if scene.is_sampled(first + n + 1)), most)
        return free - free % period

    # --- while coasting ------------------------------------------------------------------------------------------

    def expect(self, event: Event) -> None:
        """Take an event: pass over the one that comes here in every round, else wake."""
        if event is self.events[self.at]:
            self.at += 1
        else:
            self.wake()
            self._take(event)

    def stepped(self) -> None:
        """Take the end of a step that was passed over."""
        self.at = 0
        self.number += 1
        if len(self._round) > 1:
            self._phase = (self._phase + 1) % len(self._round)
            self.events, self.keys, _ = self._round[self._phase]
        if self.number == self.last:
            self._leave(certain=True)
            self._checked = 1

    def wake(self) -> None:
        """Observe everything in full again, from the call under way."""
        if not self.on:
            return
        self._checked = 0
        if self.number == self._first:
            self._rest = _REST
        self._leave(certain=False)

    def account(self) -> None:
        """Have the steps counted that were passed over so far."""
        scene = self.scene
        steps = self.number - scene.step if self.on else 0
        if not steps:
            return
        scene.step = self.number
        period = len(self._round)
        for back in range(1, steps + 1):
            event = self._round[(self._phase - back) % period].events[-1]
            optimizer: int = event.optimizer  # type: ignore[attr-defined]
            scene.attempts[optimizer] = scene.attempts.get(optimizer, 0) + 1
        self.passed(steps, ())

    def end(self) -> None:
        """Coast no more; look at no gradient, because other threads may be at work."""
        try:
            self._unlearn()
            if self.on:
                self._stop()
        except Exception:
            self.scene.fail()

    def forget(self) -> None:
        """Forget every parameter: nothing is watched any more."""
        self._live, self._panels, self._round, self.calls = [], [], [], {}

    def _leave(self, *, certain: bool) -> None:
        aside = self.scene.unseen.begin()
        try:
            self._stop()
            self._restore(certain=certain)
        except Exception:
            self.on, self.scene.emit = False, self._take
            self.scene.fail()
        finally:
            if aside:
                aside.close()

    def _stop(self) -> None:
        self.account()
        self.on, self.scene.emit = False, self._take
        self.passed(0, self.events[: self.at])

    def _restore(self, *, certain: bool) -> None:
        """Give the ledger the states that the round has at this place, of the gradients as they are now.

        Args:
            certain: whether the latest event has just been told, so that no user code can have run since.
        """
        moments = [moment for step in self._round for moment in step.moments]
        place = sum(len(step.moments) for step in self._round[: self._phase]) + self.at - 1
        now = moments[place]
        later = [*moments[place + 1 :], *moments[:place]] if place >= 0 else moments
        mine = threading.get_ident() == self.scene.thread
        for panel, scaled in zip(self._panels, now.scaled, strict=True):
            panel.scaled = scaled
        with self.scene.reading:
            for index, (held, (state, cleared)) in enumerate(zip(self._live, now.states, strict=True)):
                held.cleared = cleared
                if not mine:
                    held.grad, held.state = None, HAND
                    continue
                if state == USED and not certain and _next(later, index, state) == FRESH:
                    state = HAND  # cleared by hand before the next backward, perhaps already
                parameter = held.ref()
                grad = None if parameter is None else parameter.grad
                if grad is None and state in (FRESH, MIXED):
                    held.cleared = True
                held.sync(grad if state != NONE else None, state)


def _next(moments: list[_Moment], index: int, state: int) -> int:
    """Return the state that a gradient has after this one."""
    return next((moment.states[index][0] for moment in moments if moment.states[index][0] != state), state)
