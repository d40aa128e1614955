"""The state that all probes of a session share: events, sites, numbers of objects, states of gradients."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from truestep.events import Event, ParameterMet, Site
from truestep.probes.context.listener import Listener
from truestep.probes.context.losses import Losses
from truestep.probes.context.object_numbers import Numbers
from truestep.probes.context.repetition import Coast
from truestep.probes.context.sampling import Sampling
from truestep.probes.context.sites import Sites
from truestep.probes.context.unseen import Unseen
from truestep.probes.forward.draws import Draws
from truestep.probes.gradients.gradient_states import Held
from truestep.probes.gradients.ledger import Ledger
from truestep.probes.gradients.scales import Scales

if TYPE_CHECKING:
    from truestep.probes.active.probe import ActiveProbe
    from truestep.probes.data.seeds import SeedProbe
    from truestep.probes.forward.layers.unwritten import Unwritten
    from truestep.probes.functions.probe import FunctionProbe
    from truestep.probes.optimizer.copies import Copies
    from truestep.probes.ranks.probe import RankProbe
    from truestep.probes.unread.values import UnreadValues
    from truestep.probes.variables.ended_rows import EndedRows

E = TypeVar("E", bound=Event)
_NAMED_PARAMETERS = 4000
_MOST_ERRORS = 20
_MOST_EVENTS = 10_000
_NOTHING = nullcontext()
_IGNORING = Listener()


def is_lazy(parameter: Any) -> bool:
    """Return True if a parameter of a lazy module has no shape and values yet."""
    return hasattr(parameter, "materialize")


class Depth(threading.local):
    """How deep this thread is inside module calls: 0 outside, 1 inside, 2 looking at every call, 3 at normalisation."""

    inside = 0
    step = 0
    scaler = False
    fetching = False
    mode = False
    schedule = 0
    dropout: Site | None = None
    """Where the call under way applied dropout that does not follow the mode of the model."""
    modal: Any = None
    """The module with the mode that a dropout function follows, at a sampled step."""
    drops = False
    """True if a function applied dropout to computed values in the call under way, without gradients."""


class Scene:
    """Shared by the probes of one session.

    Args:
        torch: the module.
        listener: gets the events.

    Attributes:
        emit: function that takes an event. While steps repeat, `Coast` replaces it.
        active: True while the probes observe.
        blind: reason why observation has ended; "" while it continues.
        errors: tracebacks of the errors of probes.
        loader: number of the loader of the latest batch, None without one.
        seeds: the probe of seeds, None before it is installed.
        ranks: the probe of ranks, None before it is installed.
        checks: the active checks, None if they are off.
        unread: the results that nothing reads, None before the probe of backward passes is installed.
        ends: the targets at the ends of episodes, None before that, too.
        functions: the probe of functions that are models, None before it is installed.
        copies: the models that were meant to follow another one, None before the probe of optimizers is installed.
        unwritten: the parameters that nothing has written to, None before the probe of modules is installed.
    """

    def __init__(self, torch: Any, listener: Listener = _IGNORING) -> None:
        self.torch = torch
        self.listener = listener
        self.emit = listener.take
        self.active = True
        self.blind = ""
        self.errors: list[str] = []
        self.unseen = Unseen(torch, self.fail)
        self.depth = Depth()
        self.sites = Sites(torch.__path__[0])
        self.numbers = Numbers(self.lose_sight)
        self.sampling = Sampling(torch)
        self.ledger = Ledger(torch.Tensor, self.sampling)
        self.scales = Scales(self.ledger)
        self.draws = Draws(self)
        self.losses = Losses()
        self.loader: int | None = None
        self.seeds: SeedProbe | None = None
        self.ranks: RankProbe | None = None
        self.checks: ActiveProbe | None = None
        self.unread: UnreadValues | None = None
        self.ends: EndedRows | None = None
        self.functions: FunctionProbe | None = None
        self.unwritten: Unwritten | None = None
        self.copies: Copies | None = None
        self.coast = Coast(self)
        self._events: dict[tuple[Any, ...], Any] = {}
        self._device_failed: Any = getattr(torch, "AcceleratorError", ())

    def fail(self) -> None:
        """Record the error of a probe; the training continues.

        An accelerator reports errors late, at the next read: an error that a probe meets belongs to the program, which
        will meet it too. If the memory of the accelerator is full, probes skip their copies.
        """
        error = sys.exception()
        if isinstance(error, self._device_failed):
            self.lose_sight("the accelerator reported an error")
        elif isinstance(error, self.torch.OutOfMemoryError):
            step = self.sampling.step
            self.sampling.give_up(f"close reading given up at step {step}, because the accelerator's memory was full")
        elif len(self.errors) < _MOST_ERRORS:
            self.errors.append(traceback.format_exc())

    def lose_sight(self, reason: str) -> None:
        """End observation: findings stay, and no rule is reported as clear."""
        self.active = False
        self.blind = reason
        self.coast.end()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Context manager in which the probes observe nothing; a session that is over stays so."""
        active, self.active = self.active, False
        try:
            yield
        finally:
            self.active = active and not self.blind

    def forget(self) -> None:
        """Forget every object, so that a session that is over leaves no reference to the program's tensors."""
        self.numbers.forget()
        self.ledger.forget()
        self.coast.forget()

    def site(self, depth: int = 1) -> Site | None:
        """Return the user's line of the current call (``depth`` 1: from the caller of this method)."""
        return self.sites.at(self.sites.frame(depth + 2))

    def hold(self, parameter: Any, name: str = "", model: int | None = None) -> Held:
        """Return the record of a parameter; emit an event when it is met for the first time."""
        held = self.ledger.held(parameter)
        if held is None:
            self.unseen.met(parameter)
            with self.unseen.begin() or _NOTHING:
                number, _ = self.numbers.of("parameter", parameter)
                held = self.ledger.by_id[id(parameter)] = Held(number, parameter)
                self._name(held, parameter, name or held.name, model)
        elif name and model is not None:
            self._name(held, parameter, name, model)
        return held

    def _name(self, held: Held, parameter: Any, name: str, model: int | None) -> None:
        if held.number > _NAMED_PARAMETERS:
            return
        held.name = name
        self.emit(
            ParameterMet(
                parameter=held.number,
                name=name,
                shape=() if is_lazy(parameter) else tuple(parameter.shape),
                dtype=str(parameter.dtype).removeprefix("torch."),
                trainable=bool(parameter.requires_grad),
                model=model,
            )
        )

    def event(self, kind: type[E], /, **fields: Any) -> E:
        """Return an event; events with equal fields are the same object, so that repeated steps are recognized."""
        return self._interned(kind, fields)

    def tell(self, kind: type[Event], /, **fields: Any) -> None:
        """Emit an event with these fields."""
        self.emit(self._interned(kind, fields))

    def _interned(self, kind: type[E], fields: dict[str, Any]) -> E:
        key = (kind, *fields, *[id(value) if type(value) is Site else value for value in fields.values()])
        event: E | None = self._events.get(key)
        if event is None:
            if len(self._events) >= _MOST_EVENTS:
                self._events.clear()
            event = self._events[key] = kind(**fields)
        return event

    def changed(self) -> None:
        """Sample the next steps too: there is another optimizer, or other parameters."""
        self.coast.wake()
        self.sampling.extend()

    def close_step(self, event: Event) -> None:
        """Emit the event that closes a step, and begin the next step."""
        before = self.sampling.on
        try:
            self.sampling.advance(getattr(event, "optimizer", None))
            if self.sampling.on or before:
                self.ledger.begin_step()
            self.listener.step(event)
            self.coast.closed(event)
        except Exception:
            self.fail()

    def relieve(self) -> None:
        """Let the session process a long row of events outside of steps."""
        try:
            self.listener.relieve()
        except Exception:
            self.fail()
