"""The account of parameters: trained, frozen, loaded, left alone.

A parameter is *trained* if an optimizer holds it and its values have changed, *moved by hand* if they changed and no
optimizer holds it (an average, a target network). It is *still* if it is trainable and has kept its values. The
facts of a parameter are kept when its model is freed.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Literal

from truestep import events as ev
from truestep.accounts._account import Account, Entry, amount, line_of, place
from truestep.accounts.run_objects import Objects
from truestep.events import Event, Site

Fate = Literal[
    "trained", "moved by hand", "frozen", "in no optimizer", "without a gradient", "unchanged", "not trained", "unread"
]
"""Fate of a parameter; "unread" if its values were not compared."""
_ALARMING: tuple[Fate, ...] = ("in no optimizer", "without a gradient", "unchanged")


class Parameters(Account[int]):
    """Follows the parameters of models and optimizers."""

    name = "parameters"

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self.reached: set[int] = set()
        """Parameters that a loss has reached."""
        self.forwarded: set[int] = set()
        """Parameters of modules that ran with gradients on."""
        self.still: set[int] = set()
        """Trainable parameters that have kept their values since they were first read."""
        self.looked = -1
        """Step of the latest look at the values of all parameters; -1 before it."""
        self.moved: set[int] = set()
        """Parameters with other values than at first."""
        self.frozen: set[int] = set()
        """Parameters that did not require gradients when they were read last."""
        self.unfrozen: set[int] = set()
        """Trainable parameters that were frozen earlier in the run."""
        self.random: set[int] = set()
        """Weights that have kept the random values that torch's layers begin with."""
        self.drawn: set[int] = set()
        """These, and weights of no optimizer that have kept values which look random, of any initialisation."""
        self._fresh: set[int] = set()
        """Weights with such values of models that were first called late: others may have moved between two reads."""
        self._stepped: set[int] = set()
        self.ran: dict[int, ev.LayerRan] = {}
        """Parameters of layers that ran inside of a model call with gradients."""
        self.twins: dict[tuple[int, ...], ev.TwinIdle] = {}
        """Parameters of layers that did not run, while another one of their kind ran in two places."""
        self.zero: set[int] = set()
        """Parameters of optimizers that had gradients of zeros only."""
        self.loaded: dict[int, Site | None] = {}
        """Parameters that got their values from a state dict before their optimizer's first step, with its line."""

    def note(self, event: Event) -> None:
        """Enter an event."""
        match event:
            case ev.TapeRead():
                self.reached.update(event.reached)
                self.forwarded.update(event.forwarded)
            case ev.ParametersUnchanged():
                self.looked = event.steps
                self.moved.update(event.moved)
                self.still = (self.still | set(event.parameters)) - self.moved
                self.random.update(event.random)
                self.drawn.update(event.random, event.drawn)
                self.unfrozen |= self.frozen & set(event.parameters)
                self.frozen = (self.frozen - set(event.moved) - set(event.parameters)) | set(event.frozen)
                self.zero = set(event.zero)
            case ev.ModelMet(fresh=fresh):
                self._fresh.update(fresh)
            case ev.OptimizerStepped():
                self._stepped.add(event.optimizer)
            case ev.LayerRan():
                for parameter in event.parameters:
                    self.ran.setdefault(parameter, event)
            case ev.TwinIdle():
                self.twins.setdefault(event.parameters, event)
            case ev.StateLoaded():
                for parameter in event.parameters:
                    held = self.objects.held_by.get(parameter, ())
                    used = not self._stepped.isdisjoint(held) if held else self._is_apart(parameter)
                    if parameter not in self.moved and not used:
                        self.loaded.setdefault(parameter, event.site)
            case ev.ParameterMet(trainable=False):
                self.frozen.add(event.parameter)

    def _is_apart(self, parameter: int) -> bool:
        """Return True if a parameter of no optimizer had gradients while others were trained."""
        return parameter in self.reached and bool(self._stepped)

    def fate(self, parameter: int) -> Fate:
        """Return the fate of a parameter."""
        held = bool(self.objects.held_by.get(parameter))
        if parameter in self.moved:
            return "trained" if held else "moved by hand"
        if parameter in self.frozen:
            return "frozen"
        if parameter not in self.still:
            return "unread"
        if parameter in self.reached:
            return "unchanged" if held else "in no optimizer"
        if held:
            return "without a gradient"
        return "not trained"

    def untrained(self, parameter: int) -> bool:
        """Return True if a weight that no step moved has random values of its initialisation, and none were loaded."""
        late = parameter in self._fresh and self._stepped.isdisjoint(self.objects.held_by.get(parameter, ()))
        return (parameter in self.random or late) and parameter not in self.moved and parameter not in self.loaded

    def idle(self, parameter: int) -> bool:
        """Return True if a trainable parameter was initialised here and never had a gradient, or one of zeros only."""
        if parameter in self.frozen or parameter in self.loaded:
            return False
        return parameter in self.zero or (parameter in self.still and parameter not in self.reached)

    def entry(self) -> Entry | None:
        """Return the parameters of all models and optimizers, by their fate."""
        objects = self.objects
        numbers = dict.fromkeys(p for model in objects.models.values() for p in model.parameters)
        numbers |= dict.fromkeys(objects.held_by)
        met = [objects.parameters[p] for p in numbers if p in objects.parameters]
        if not met:
            return None
        fates = Counter(self.fate(parameter.parameter) for parameter in met)
        values = sum(math.prod(parameter.shape) for parameter in met)
        loads = [self.loaded[p.parameter] for p in met if p.parameter in self.loaded]
        read = len(met) - fates["unread"]
        parts = [f"{fates['trained']:,} of {read:,} trained" if read else amount(len(met), "parameter")]
        parts += [f"{fates[fate]:,} {fate}" for fate in _ALARMING if fates[fate]]
        parts[-1] += f": {values:,} values"
        parts += [f"{fates['moved by hand']:,} moved outside of optimizers"] if fates["moved by hand"] else []
        parts += [f"{fates['not trained']:,} not trained"] if fates["not trained"] else []
        parts += [f"{fates['frozen']:,} frozen"] if fates["frozen"] else []
        parts += [f"{amount(fates['unread'], 'other')} not followed"] if read and fates["unread"] else []
        parts += [f"{len(loads):,} loaded" + (f" ({place(loads[0])})" if loads[0] else "")] if loads else []
        return Entry(", ".join(parts), self._facts(met, values, fates))

    def _facts(self, met: list[ev.ParameterMet], values: int, fates: Counter[Fate]) -> dict[str, object]:
        left = [p for p in met if self.fate(p.parameter) in _ALARMING]
        lines = Counter(self.loaded[p.parameter] for p in met if p.parameter in self.loaded)
        return {
            "parameters": len(met),
            "values": values,
            "fates": {fate.replace(" ", "_"): count for fate, count in fates.items()},
            "left": [{"name": p.name, "fate": self.fate(p.parameter)} for p in left[:100]],
            "loaded": [{"site": line_of(site), "parameters": count} for site, count in lines.items()],
        }
