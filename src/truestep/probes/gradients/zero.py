"""``zero_grad()`` of optimizers and modules. Other ways of clearing show in the state of the gradients."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any, NamedTuple

from truestep import seams
from truestep.events import GradientsZeroed
from truestep.probes.context.probe import Probe, sees
from truestep.probes.gradients.gradient_states import FRESH, MIXED, USED, Held


class Cleared(NamedTuple):
    """Gradients that are cleared by a call, and the number of its optimizer or model."""

    some: list[Held]
    optimizer: int | None
    model: int | None
    fresh: int
    used: int


class ZeroProbe(Probe):
    """Emits `GradientsZeroed` with the line and the cleared gradients."""

    def install(self, stack: ExitStack) -> None:
        scene, coast, frame = self.scene, self.scene.coast, sys._getframe
        self._events: dict[tuple[Any, ...], GradientsZeroed] = {}
        compiling = scene.torch.compiler.is_dynamo_compiling

        def optimizer_zero_grad(optimizer: Any, set_to_none: bool = True) -> None:
            if coast.on or coast.learning:
                try:
                    key = id(optimizer) + frame(2).f_lasti
                except ValueError:
                    key = 0
                if coast.on and coast.keys[coast.at] == key:
                    coast.at += 1
                    raw(optimizer, set_to_none)
                    return
                coast.wake()
            if not scene.active:
                raw(optimizer, set_to_none)
                return
            cleared = self.before(optimizer)
            raw(optimizer, set_to_none)
            if cleared is not None:
                self.after(cleared, key if coast.learning else 0)

        def module_zero_grad(module: Any, set_to_none: bool = True) -> None:
            if compiling() or not scene.active:
                original_module(module, set_to_none)
                return
            key = id(module) + frame(1).f_lasti
            if coast.on:
                if coast.keys[coast.at] == key:
                    coast.at += 1
                    original_module(module, set_to_none)
                    return
                coast.wake()
            cleared = self.before(module, is_module=True)
            original_module(module, set_to_none)
            if cleared is not None:
                self.after(cleared, key)

        raw = seams.zero_grad.wrap_optimizer(stack, optimizer_zero_grad)
        original_module = seams.zero_grad.wrap_module(stack, module_zero_grad)

    @sees
    def before(self, owner: Any, *, is_module: bool = False) -> Cleared:
        """Find the gradients to be cleared. They are read at sampled steps only."""
        ledger, numbers = self.scene.ledger, self.scene.numbers
        optimizer = model = None
        some: list[Held] = []
        if is_module:
            some, model = ledger.among(owner.parameters()), numbers.known("model", owner)
        else:
            panel = ledger.panels.get(numbers.known("optimizer", owner) or 0)
            if panel is not None:
                some, optimizer = ledger.owned(panel), panel.number
        if self.scene.sampling.on:
            ledger.look(some)
        fresh = used = 0
        for held in some:
            if held.state == FRESH or held.state == MIXED:
                fresh += 1
            elif held.state == USED:
                used += 1
        return Cleared(some, optimizer, model, fresh, used)

    @sees
    def after(self, cleared: Cleared, key: int) -> None:
        """Record the cleared gradients and emit the event."""
        scene = self.scene
        some, optimizer, model, fresh, used = cleared
        scene.ledger.cleared(some)
        site = scene.sites.quick(4)
        # At every step: by this key without the cost of `tell`.
        look = (id(site), optimizer, model, fresh, used, len(some))
        event = self._events.get(look)
        if event is None:
            event = self._events[look] = GradientsZeroed(
                site=site, optimizer=optimizer, model=model, fresh=fresh, used=used, observed=len(some)
            )
        scene.emit(event)
        if scene.coast.learning:
            scene.coast.name(key)
