"""Coasting: between two full looks, a step that repeats is only checked for the same calls in the same order.

A round is the unit that repeats: one step, or several steps of several optimizers. After enough repetitions (the stream
of events decides), one round is learned: its events, the key of the call behind each event, and the states of the
gradients after it. The following steps are compared with it, call by call, without reading a gradient. The first call
that differs ends coasting: the stream gets the passed steps and the events of the current step, the ledger gets its
states, and this call is observed in full.

The check must be small: between kernels the caches are cold, and every object touched costs about as much as ten
instructions. So a call is recognized by one number, made of the caller's position and the identity of the callee.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep.events import Event, OptimizerStepped
from truestep.probes.gradients.gradient_states import FRESH, HAND, MIXED, NONE, USED, Held, Panel

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

LIGHT_STEPS = 63
"""Steps between two full rounds, or the next smaller multiple of a round (at least one round)."""
_REST = 64
"""Full steps before another attempt, after a round that could not be learned or was left at once."""


def _nothing_repeats() -> int:
    return 0


def _not_counted(steps: int, begun: Sequence[Event]) -> None:
    pass


class _Moment(NamedTuple):
    """The state after one event of a round."""

    states: tuple[tuple[int, bool], ...]
    """State of each examined parameter, and True if it was cleared."""
    scaled: tuple[bool, ...]
    """True for each optimizer with gradients that carry the scale of a GradScaler."""


class _Step(NamedTuple):
    """One step of a round."""

    events: list[Event]
    keys: list[int | None]
    moments: list[_Moment]


class Coast:
    """State of coasting, with the position in the round. Its plain attributes are the probes' fast path.

    Attributes:
        on: True while calls are only compared.
        learning: True while a round is learned; probes then add the keys of their events.
        events: expected events of the current step, while coasting.
        keys: keys of the calls behind these events; None for an event without a key.
        at: number of these events that have come.
        number: number of the current step, while coasting.
        passing: event of the current recognized step.
        inside: True during a recognized model call.
        same: True if this call got the same object as the call before.
        thread: thread that runs the backward passes.
        every: True if the value of every loss is examined; else every other one.
        step_key: key of the current full step.
        calls: keys of the module calls of the round, with the record of the model; None for a module without trainable
            parameters.
        repeating: function that returns the number of steps of the repeating round, 0 without one.
        passed: function that takes the number of passed steps, and the events of the current step.
        until: number of steps after which the script is stopped; None for no limit.
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
        """While a learned round is observed in full again: one more than its steps so far; 0 without one."""
        self._live: list[Held] = []
        self._panels: list[Panel] = []

    # --- while steps are observed in full ------------------------------------------------------------------------

    def name(self, key: int) -> None:
        """Add the key to the latest event."""
        if self.keys:
            self.keys[-1] = key or None

    def closed(self, event: Event) -> None:
        """Process the end of a step that was observed in full."""
        if self._rest:
            self._rest -= 1
            return
        period = self.repeating()
        if not period or self.scene.sampling.on:
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
        self._learn_step()
        self.learning, self.scene.emit = True, self._record

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
        """Coast over the following steps, if the round allows it."""
        scene = self.scene
        span = self._span(len(self._round))
        if not span or scene.ledger.live is not self._live:
            return
        self._first = self.number = scene.sampling.step
        self.last = scene.sampling.step + span
        self.thread, self.every = scene.ledger.thread, scene.losses.every
        self.passing, self.inside = None, False
        self._phase = self.at = 0
        self.events, self.keys, _ = self._round[0]
        self.on, scene.emit = True, self.expect

    def _is_fit(self) -> bool:
        """Return True if all calls of the round can be recognized, and no step has a closure or comes from a scaler."""
        if any(held.flattened for held in self._live):
            return False
        for step in self._round:
            for event, key in zip(step.events, step.keys, strict=True):
                if event.repeats == "never" or (event.repeats == "by call" and key is None):
                    return False
                if isinstance(event, OptimizerStepped) and (event.closure or event.scaler):
                    return False
        return True

    def _span(self, period: int) -> int:
        """Return the number of steps, in whole rounds, before the next step that must be observed in full."""
        scene, first = self.scene, self.scene.sampling.step
        most = max(LIGHT_STEPS - LIGHT_STEPS % period, period)
        if self.until is not None:
            most = max(0, min(most, self.until - first - 1))
        free = next((n for n in range(most) if scene.sampling.is_sampled(first + n + 1)), most)
        return free - free % period

    # --- while coasting ------------------------------------------------------------------------------------------

    def expect(self, event: Event) -> None:
        """Process an event: pass over the expected one of the round; any other ends coasting."""
        if event is self.events[self.at]:
            self.at += 1
        else:
            self.wake()
            self._take(event)

    def stepped(self) -> None:
        """Process the end of a step that was passed over."""
        self.at = 0
        self.number += 1
        if len(self._round) > 1:
            self._phase = (self._phase + 1) % len(self._round)
            self.events, self.keys, _ = self._round[self._phase]
        if self.number == self.last:
            self._leave(certain=True)
            self._checked = 1

    def wake(self) -> None:
        """Observe everything in full again, from the current call on."""
        if not self.on:
            return
        self._checked = 0
        if self.number == self._first:
            self._rest = _REST
        self._leave(certain=False)

    def account(self) -> None:
        """Report the steps that were passed over so far."""
        scene = self.scene
        steps = self.number - scene.sampling.step if self.on else 0
        if not steps:
            return
        scene.sampling.step = self.number
        period, attempts = len(self._round), scene.ledger.attempts
        for back in range(1, steps + 1):
            event = self._round[(self._phase - back) % period].events[-1]
            optimizer: int = event.optimizer  # type: ignore[attr-defined]
            attempts[optimizer] = attempts.get(optimizer, 0) + 1
        self.passed(steps, ())

    def end(self) -> None:
        """End coasting without reading gradients, because other threads may be running."""
        try:
            self._unlearn()
            if self.on:
                self._stop()
        except Exception:
            self.scene.fail()

    def forget(self) -> None:
        """Forget every parameter: observation has ended."""
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
        """Set the ledger to the states of the round at this place, for the current gradients.

        Args:
            certain: True if the latest event has just been emitted, so that no user code can have run since.
        """
        moments = [moment for step in self._round for moment in step.moments]
        place = sum(len(step.moments) for step in self._round[: self._phase]) + self.at - 1
        now = moments[place]
        later = [*moments[place + 1 :], *moments[:place]] if place >= 0 else moments
        mine = threading.get_ident() == self.scene.ledger.thread
        for panel, scaled in zip(self._panels, now.scaled, strict=True):
            panel.scaled = scaled
        with self.scene.ledger.lock:
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
    """Return the next state of a gradient in the round."""
    return next((moment.states[index][0] for moment in moments if moment.states[index][0] != state), state)
