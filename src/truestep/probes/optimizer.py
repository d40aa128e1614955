"""Optimizers: built, given parameters, stepped. Seams: global step hooks, ``__init__`` and ``add_param_group``."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

from truestep.events import OptimizerBuilt, OptimizerStepped, ParametersAdded, Site
from truestep.probes._ledger import Counts, Panel
from truestep.probes._patch import patch
from truestep.probes._probe import Probe
from truestep.probes._scene import is_sampled
from truestep.probes.vitals import mixture, unchanged

_SCALE_FREE = {"Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta", "SparseAdam", "Rprop", "Lion"}


class OptimizerProbe(Probe):
    """Tells `OptimizerBuilt`, `ParametersAdded` and, for the outermost of nested steps, `OptimizerStepped`."""

    def install(self, stack: ExitStack) -> None:
        from torch.optim import optimizer as module

        self._events: dict[tuple[Any, ...], OptimizerStepped] = {}
        self._pending: tuple[int, Panel, Site | None, Counts, bool] | None = None
        self._building = 0
        original_init = module.Optimizer.__init__
        original_add = module.Optimizer.add_param_group
        scene = self.scene

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            self._building += 1
            try:
                original_init(optimizer, *args, **kwargs)
            finally:
                self._building -= 1
            if scene.active and not self._building:
                self.built(optimizer, scene.site())

        def add_param_group(optimizer: Any, param_group: dict[str, Any]) -> None:
            original_add(optimizer, param_group)
            if scene.active and not self._building:
                self.added(optimizer, scene.site())

        patch(stack, module.Optimizer, "__init__", __init__)
        patch(stack, module.Optimizer, "add_param_group", add_param_group)
        stack.callback(module.register_optimizer_step_pre_hook(self.before).remove)
        stack.callback(module.register_optimizer_step_post_hook(self.after).remove)

    def built(self, optimizer: Any, site: Site | None) -> Panel:
        """Give an optimizer its number, and its parameters a panel."""
        scene = self.scene
        number, new = scene.number("optimizer", optimizer)
        panel = scene.ledger.panels.get(number)
        if panel is not None and not new:
            return panel
        panel = scene.ledger.panels[number] = Panel(number)
        try:
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            for parameter in parameters:
                panel.add(scene.hold(parameter))
            group = optimizer.param_groups[0] if optimizer.param_groups else {}
            kind = type(optimizer).__name__
            bases = {base.__name__ for base in type(optimizer).__mro__}
            scene.emit(
                OptimizerBuilt(
                    optimizer=number,
                    name=scene.target(site, "optimizer"),
                    kind=kind,
                    parameters=tuple(held.number for held in panel.everything),
                    lr=_number(group.get("lr")),
                    weight_decay=_number(group.get("weight_decay")),
                    scale_free=bool(bases & _SCALE_FREE),
                    site=site,
                )
            )
        except Exception:
            scene.fail()
        return panel

    def added(self, optimizer: Any, site: Site | None) -> None:
        scene = self.scene
        try:
            number = scene.known("optimizer", optimizer)
            panel = scene.ledger.panels.get(number or 0)
            if number is None or panel is None:
                return
            known = {id(held) for held in panel.everything}
            fresh = [scene.hold(p) for p in optimizer.param_groups[-1]["params"]]
            for held in fresh:
                if id(held) not in known:
                    panel.add(held)
            scene.emit(ParametersAdded(optimizer=number, parameters=tuple(h.number for h in fresh), site=site))
        except Exception:
            scene.fail()

    def before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Global pre-hook: runs for every optimizer, nested ones too."""
        scene = self.scene
        if not scene.active:
            return
        depth = scene.depth
        depth.step += 1
        if depth.step > 1:
            return
        try:
            number = scene.known("optimizer", optimizer)
            frame = scene.sites.frame(2)
            site = scene.sites.at(frame)
            panel = scene.ledger.panels.get(number or 0)
            if number is None or panel is None:
                panel = self.built(optimizer, None)
                number = panel.number
            elif sum(len(group["params"]) for group in optimizer.param_groups) > len(panel.everything):
                self._refresh(optimizer, panel)
            closure = (len(args) > 1 and args[1] is not None) or kwargs.get("closure") is not None
            counts = scene.ledger.before_step(panel)
            if scene.sampled and not closure:
                mixture(scene, panel, counts, site)
            self._pending = (number, panel, site, counts, closure)
        except Exception:
            self._pending = None
            scene.fail()

    def _refresh(self, optimizer: Any, panel: Panel) -> None:
        """Take up parameters put into ``param_groups`` past add_param_group (as SAM and load paths do)."""
        known = {id(held) for held in panel.everything}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                held = self.scene.hold(parameter)
                if id(held) not in known:
                    panel.add(held)
                    self.scene.emit(ParametersAdded(optimizer=panel.number, parameters=(held.number,)))

    def after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Global post-hook."""
        scene = self.scene
        depth = scene.depth
        if not scene.active or depth.step == 0:
            return
        depth.step -= 1
        if depth.step or self._pending is None:
            return
        number, panel, site, counts, closure = self._pending
        self._pending = None
        try:
            if closure and not counts.fresh and not counts.mixed:
                counts = scene.ledger.before_step(panel)
                counts.fresh, counts.reused = counts.fresh + counts.reused, 0
            if scene.sampled:
                begun = time.perf_counter()
                unchanged(scene)
                scene.cost_s += time.perf_counter() - begun
            scene.ledger.after_step(panel, next_sampled=is_sampled(scene.step + 1))
            panel.scaled = False
            scene.attempts[number] = scene.attempts.get(number, 0) + 1
            by_scaler = scene.depth.scaler
            key = (number, id(site), counts.observed, counts.fresh, counts.mixed, counts.reused, counts.cleared)
            key += (counts.absent, counts.by_hand, closure, by_scaler)
            event = self._events.get(key)
            if event is None:
                event = self._events[key] = OptimizerStepped(
                    optimizer=number,
                    site=site,
                    observed=counts.observed,
                    fresh=counts.fresh,
                    mixed=counts.mixed,
                    reused=counts.reused,
                    cleared=counts.cleared,
                    absent_grad=counts.absent,
                    by_hand=counts.by_hand,
                    closure=closure,
                    scaler=by_scaler,
                )
        except Exception:
            scene.fail()
            return
        scene.close_step(event)


def _number(value: Any) -> float:
    """Return a hyperparameter as a float, 0.0 for a tensor (reading it could synchronise) or anything else."""
    return float(value) if isinstance(value, int | float) else 0.0
