"""``zero_grad()`` of optimizers and modules. Other ways of clearing are seen by the state of the gradients."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.events import GradientsZeroed
from truestep.probes._ledger import Counts, Held
from truestep.probes._patch import patch
from truestep.probes._probe import Probe


class ZeroProbe(Probe):
    """Tells `GradientsZeroed` with the line, and what it cleared."""

    def install(self, stack: ExitStack) -> None:
        from torch.optim import Optimizer

        scene = self.scene
        compiling = scene.torch.compiler.is_dynamo_compiling
        self._events: dict[tuple[Any, ...], GradientsZeroed] = {}

        def optimizer_zero_grad(optimizer: Any, set_to_none: bool = True) -> None:
            if compiling() or not scene.active:
                original_optimizer(optimizer, set_to_none)
                return
            panel = scene.ledger.panels.get(scene.known("optimizer", optimizer) or 0)
            some = [] if panel is None else scene.ledger.owned(panel)
            counts = self.before(some)
            original_optimizer(optimizer, set_to_none)
            self.after(counts, some, optimizer=optimizer)

        def module_zero_grad(module: Any, set_to_none: bool = True) -> None:
            if compiling() or not scene.active:
                original_module(module, set_to_none)
                return
            some = scene.ledger.among(module.parameters())
            counts = self.before(some)
            original_module(module, set_to_none)
            self.after(counts, some, module=module)

        original_optimizer = patch(stack, Optimizer, "zero_grad", optimizer_zero_grad)
        original_module = patch(stack, scene.torch.nn.Module, "zero_grad", module_zero_grad)

    def before(self, some: list[Held]) -> Counts | None:
        try:
            return self.scene.ledger.look(some)
        except Exception:
            self.scene.fail()
            return None

    def after(self, counts: Counts | None, some: list[Held], *, optimizer: Any = None, module: Any = None) -> None:
        scene = self.scene
        if counts is None:
            return
        try:
            scene.ledger.cleared(some)
            site = scene.site()
            owner = scene.known("optimizer", optimizer) if optimizer is not None else None
            model = scene.known("model", module) if module is not None else None
            fresh, used = counts.fresh + counts.mixed, counts.reused
            key = (id(site), owner, model, fresh, used, counts.observed)
            event = self._events.get(key)
            if event is None:
                event = self._events[key] = GradientsZeroed(
                    site=site, optimizer=owner, model=model, fresh=fresh, used=used, observed=counts.observed
                )
            scene.emit(event)
        except Exception:
            scene.fail()
