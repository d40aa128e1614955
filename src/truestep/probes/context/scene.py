"""The state that all probes share: numbers of objects, sites, the gradient ledger, and the emission of events."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from truestep import events as ev
from truestep.events import Event, Site
from truestep.probes.context import names
from truestep.probes.context.repetition import Coast
from truestep.probes.context.sites import Sites
from truestep.probes.context.unseen import Unseen
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import Held
from truestep.probes.gradients.ledger import Ledger
from truestep.probes.gradients.scales import Scales
from truestep.seams.refs import Ref

_FIRST = (0, 1, 2, 3, 10, 20, 50, 100, 200, 500)
_MOST_CHANGES = 16
_NAMED_PARAMETERS = 4000
_NOTHING = nullcontext()
MOST = {"optimizer": 5000, "scheduler": 5000, "loader": 10_000, "trained model": 5000}
"""Largest number of objects of a kind to distinguish: rules remember each of them, and memory must be bounded."""


def is_lazy(parameter: Any) -> bool:
    """Return True if a parameter of a lazy module has no shape and values yet."""
    return hasattr(parameter, "materialize")


class Depth(threading.local):
    """How deep this thread is inside module calls: 0 outside, 1 inside, 2 inside and looking at every call."""

    inside = 0
    step = 0
    scaler = False
    fetching = False
    mode = False
    schedule = 0
    dropout: Site | None = None
    """Where the call under way applied dropout that does not follow the mode of the model."""


class Known:
    """A numbered object: its weak reference keeps an address from being taken for another object's."""

    __slots__ = ("number", "ref")

    def __init__(self, number: int, thing: Any) -> None:
        self.number = number
        self.ref = Ref(thing)


class Scene:
    """Shared by the probes of one session."""

    def __init__(self, torch: Any, emit: Callable[[Event], None]) -> None:
        self.torch = torch
        self.emit = emit
        self.active = True
        self.sites = Sites(torch.__path__[0])
        self.ledger = Ledger(torch.Tensor)
        self.scales = Scales(self.ledger)
        self.depth = Depth()
        self.unseen = Unseen(torch, self.fail)
        self.engine_task: Callable[[], int] = torch._C._current_graph_task_id
        self.step = 0
        self.sampled = True
        self.loader: int | None = None
        self.last_loss: float | None = None
        self.bad_loss = False
        """True if a backward pass since the last step began from a loss that is not finite."""
        self.reads_losses = False
        """True examines every loss (a plateau schedule may get it); False every other one."""
        self.scaled_by: int | None = None
        """The scaler that scaled the loss of the next backward pass."""
        self.attempts: dict[int, int] = {}
        """Number of steps, also of those that a scaler skipped, by optimizer number."""
        self.optimizers: dict[int, Callable[[], Any]] = {}
        """Weak reference by optimizer number."""
        self.forwarded: dict[int, tuple[Site, ...]] = {}
        """Places of the calls since the last step by trainable parameter of the modules (sampled steps only)."""
        self.unchanged: tuple[int, ...] = ()
        """The parameters in the last event about unchanged values."""
        self.kept: set[str] = set()
        """Variables that were found to keep the graphs of losses."""
        self.retained: list[Any] = []
        """Graphs that a backward pass retained, and that are followed until they are gone."""
        self.errors: list[str] = []
        self.thread = 0
        """The thread that runs the backward passes."""
        self.reading = threading.RLock()
        """Held while gradients are examined."""
        self.blind = ""
        """Reason why observation has ended; "" while it continues."""
        self.cost_s = 0.0
        """Time spent on close reading, at sampled steps."""
        self.frugal = False
        """True if close reading was given up."""
        self.given_up = ""
        """Reason for giving it up; "" if it was not."""
        self.full: Callable[[], None] = lambda: None
        """Called now and then outside of steps, so that the events of a long evaluation do not pile up."""
        self.stop: Callable[[], None] = lambda: None
        """Called where it is safe to end the script."""
        self.step_ended: Callable[[Event], None] = emit
        self.evaluated: Callable[[Any, int, Site | None, Any], None] | None = None
        """Called after an outermost call of a model in eval mode, if active checks are on."""
        self.met: Callable[[Any, int], None] | None = None
        """Called with a model and its number before its first call, if active checks are on."""
        self.coast = Coast(self)
        self._device_failed: Any = getattr(torch, "AcceleratorError", ())
        self._plan = set(_FIRST)
        self._changes = 0
        self._numbers: dict[str, dict[int, Known]] = {}
        self._last: dict[str, int] = {}
        self._parameter_names: dict[int, str] = {}

    def fail(self) -> None:
        """Record an error of a probe; the training goes on.

        An accelerator reports errors late, at the next read: an error that a probe meets belongs to the program, which
        will meet it too. If the memory of the accelerator is full, probes skip their copies.
        """
        error = sys.exception()
        if isinstance(error, self._device_failed):
            self.lose_sight("the accelerator reported an error")
        elif isinstance(error, self.torch.OutOfMemoryError):
            self.give_up(f"close reading given up at step {self.step}, because the accelerator's memory was full")
        elif len(self.errors) < 20:
            self.errors.append(traceback.format_exc())

    def give_up(self, reason: str) -> None:
        """Read nothing closely from the next step on."""
        self.frugal, self.given_up = True, reason

    # --- close reading -----------------------------------------------------------------------------------------------

    def is_sampled(self, step: int) -> bool:
        """Return True if a step is examined closely: by its number, never by the clock, so that verdicts repeat."""
        return (step in self._plan or step % 1000 == 0) and not self.frugal

    def clock(self, tensor: Any) -> float:
        """Return the time at which close reading begins, after the tensor's device has finished its queued work.

        The wait of the first read is for work of the program, and does not count as a cost of reading.
        """
        if tensor is not None and not tensor.is_cpu and has_values(tensor):
            device = tensor.device
            module: Any = getattr(self.torch, device.type, None)
            if hasattr(module, "synchronize"):
                module.synchronize(*(() if device.type == "mps" else (device,)))
        return time.perf_counter()

    def changed(self) -> None:
        """Look closely at the next steps too: there is another optimizer, or other parameters."""
        self.coast.wake()
        self._changes += 1
        if self._changes <= _MOST_CHANGES:
            self._plan.update(self.step + offset for offset in _FIRST)

    # --- numbers ---------------------------------------------------------------------------------------------------

    def number(self, family: str, thing: Any) -> tuple[int, bool]:
        """Return the number of an object in its family, and whether it is new."""
        known = self._numbers.setdefault(family, {})
        entry = known.get(id(thing))
        if entry is not None and entry.ref() is thing:
            return entry.number, False
        self._last[family] = number = self._last.get(family, 0) + 1
        if number > MOST.get(family, number):
            self.lose_sight(f"more than {MOST[family]:,} {family}s came and went")
        known[id(thing)] = Known(number, thing)
        if number % 256 == 0:
            for key in [key for key, old in known.items() if old.ref() is None]:
                del known[key]
        return number, True

    def count(self, family: str) -> int:
        """Return the number of objects of a family so far."""
        return self._last.get(family, 0)

    def alive(self, family: str) -> list[Any]:
        """Return the objects of a family that are still alive."""
        things = [entry.ref() for entry in list(self._numbers.get(family, {}).values())]
        return [thing for thing in things if thing is not None]

    def known(self, family: str, thing: Any) -> int | None:
        """Return the number of an object that was met before."""
        entry = self._numbers.get(family, {}).get(id(thing))
        return entry.number if entry is not None and entry.ref() is thing else None

    # --- parameters ------------------------------------------------------------------------------------------------

    def hold(self, parameter: Any, name: str = "", model: int | None = None) -> Held:
        """Return the record of a parameter; emit an event when it is met for the first time."""
        held = self.ledger.held(parameter)
        if held is None:
            self.unseen.met(parameter)
            with self.unseen.begin() or _NOTHING:
                number, _ = self.number("parameter", parameter)
                held = self.ledger.by_id[id(parameter)] = Held(number, parameter)
                if number <= _NAMED_PARAMETERS:
                    self.emit(self._met(held, parameter, name or f"parameter {number}", model))
        elif name and model is not None and held.number <= _NAMED_PARAMETERS:
            self.emit(self._met(held, parameter, name, model))
        return held

    def _met(self, held: Held, parameter: Any, name: str, model: int | None) -> ev.ParameterMet:
        self._parameter_names[held.number] = name
        return ev.ParameterMet(
            parameter=held.number,
            name=name,
            shape=() if is_lazy(parameter) else tuple(parameter.shape),
            dtype=str(parameter.dtype).removeprefix("torch."),
            trainable=bool(parameter.requires_grad),
            model=model,
        )

    def parameter_name(self, number: int) -> str:
        """Return the latest name of a parameter in an event."""
        return self._parameter_names.get(number, f"parameter {number}")

    # --- sites and names -------------------------------------------------------------------------------------------

    def site(self, depth: int = 1) -> Site | None:
        """Return the user's line of the current call (``depth`` 1: from the caller of this method)."""
        return self.sites.at(self.sites.frame(depth + 2))

    callee = staticmethod(names.callee)
    target = staticmethod(names.target)
    receiver = staticmethod(names.receiver)

    # --- steps -----------------------------------------------------------------------------------------------------

    def close_step(self, event: Event) -> None:
        """Emit a step and begin the next one."""
        self.step += 1
        before, ledger = self.sampled, self.ledger
        try:
            self.sampled = ledger.sampled = self.is_sampled(self.step)
            if self.sampled or before:
                self.forwarded.clear()
                ledger.refresh()
            self.step_ended(event)
            self.coast.closed(event)
        except Exception:
            self.fail()

    def lose_sight(self, reason: str) -> None:
        """End observation: findings stay, and no rule is reported as clear."""
        self.active = False
        self.blind = reason
        self.coast.end()

    def forget(self) -> None:
        """Forget every object, so that a session that is over leaves no reference at the program's tensors."""
        self._numbers.clear()
        self.ledger.forget()
        self.coast.forget()

    # --- threads ---------------------------------------------------------------------------------------------------

    def take_over(self) -> bool:
        """Let this thread be the one that is watched, where the one before is gone; else watch no more.

        The engine replaces gradients without holding Python's lock: to look at one while another thread runs a
        backward pass over it is a crash.
        """
        with self.reading:
            if self.thread and any(thread.ident == self.thread for thread in threading.enumerate()):
                self.lose_sight("several threads train at once")
            else:
                self.thread = threading.get_ident()
            return self.active
