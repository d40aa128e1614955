"""``zero_grad()`` of optimizers and modules. Other ways of clearing show in the state of the gradients."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.events import GradientsZeroed
from truestep.probes.context.probe import Probe
from truestep.probes.gradients.gradient_states import FRESH, MIXED, USED, Held


class ZeroProbe(Probe):
    """Emits `GradientsZeroed` with the line and the cleared gradients."""

    def install(self, stack: ExitStack) -> None:
        scene, coast, frame = self.scene, self.scene.coast, sys._getframe
        compiling = scene.torch.compiler.is_dynamo_compiling
        self._events: dict[tuple[Any, ...], GradientsZeroed] = {}

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
            some, counts, owner = self.before(optimizer)
            raw(optimizer, set_to_none)
            self.after(counts, some, owner=owner, key=key if coast.learning else 0)

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
            some, counts, model = self.before(module, is_module=True)
            original_module(module, set_to_none)
            self.after(counts, some, model=model, key=key)

        raw = seams.zero_grad.wrap_optimizer(stack, optimizer_zero_grad)
        original_module = seams.zero_grad.wrap_module(stack, module_zero_grad)

    def before(self, owner: Any, *, is_module: bool = False) -> tuple[list[Held], tuple[int, int], int | None]:
        """Return the gradients to be cleared, the numbers of unused and used ones, and the owner's number.

        Gradients are read at sampled steps only.
        """
        fresh = used = 0
        some: list[Held] = []
        number: int | None = None
        scene = self.scene
        aside = scene.unseen.begin()
        try:
            if is_module:
                some, number = scene.ledger.among(owner.parameters()), scene.known("model", owner)
            else:
                number = scene.known("optimizer", owner)
                panel = scene.ledger.panels.get(number or 0)
                if panel is None:
                    number = None
                else:
                    some = scene.ledger.owned(panel)
            if scene.sampled:
                scene.ledger.look(some)
            for held in some:
                if held.state == FRESH or held.state == MIXED:
                    fresh += 1
                elif held.state == USED:
                    used += 1
        except Exception:
            scene.fail()
        finally:
            if aside:
                aside.close()
        return some, (fresh, used), number

    def after(
        self,
        counts: tuple[int, int],
        some: list[Held],
        *,
        owner: int | None = None,
        model: int | None = None,
        key: int = 0,
    ) -> None:
        scene = self.scene
        try:
            scene.ledger.cleared(some)
            site = scene.sites.quick(3)
            look = (id(site), owner, model, counts, len(some))
            event = self._events.get(look)
            if event is None:
                event = self._events[look] = GradientsZeroed(
                    site=site, optimizer=owner, model=model, fresh=counts[0], used=counts[1], observed=len(some)
                )
            scene.emit(event)
            if scene.coast.learning:
                scene.coast.name(key)
        except Exception:
            scene.fail()
