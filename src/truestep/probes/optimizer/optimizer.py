"""Optimizers: built, given parameters, stepped. Seams: global step hooks, ``__init__`` and ``add_param_group``."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.events import GradientsRepaired, OptimizerBuilt, OptimizerStepped, ParametersAdded, Site
from truestep.probes.context.probe import Probe
from truestep.probes.gradients.gradient_states import Counts, Panel
from truestep.probes.gradients.ineffective_freezes import Freezes
from truestep.probes.optimizer.equal_rows import Rows
from truestep.probes.optimizer.sampled_measures import finite_gradients, mixture, unchanged
from truestep.probes.optimizer.stepped import Stepped
from truestep.seams.patch import patch

_SCALE_FREE = {
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "SparseAdam",
    "Rprop",
    "Lion",
}


class OptimizerProbe(Probe):
    """Emits `OptimizerBuilt`, `ParametersAdded` and, for the outermost of nested steps, `OptimizerStepped`."""

    def install(self, stack: ExitStack) -> None:
        from torch.optim import optimizer as module

        self._events: dict[tuple[Any, ...], OptimizerStepped] = {}
        self._coast = self.scene.coast
        self._pending: tuple[Panel, Site | None, Counts | int, bool] | None = None
        self._panels: dict[int, tuple[Callable[[], Any], Panel]] = {}
        self._building = self._nested = 0
        self._rows = Rows(self.scene)
        self._freezes = Freezes(self.scene)
        self._stepped = Stepped(self.scene)
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
                self.told(optimizer)

        def add_param_group(optimizer: Any, param_group: dict[str, Any]) -> None:
            original_add(optimizer, param_group)
            if scene.active and not self._building:
                self.told(optimizer, added=True)

        patch(stack, module.Optimizer, "__init__", __init__)
        patch(stack, module.Optimizer, "add_param_group", add_param_group)
        seams.step.watch(stack, before=self.before, after=self.after)

    def told(self, optimizer: Any, *, added: bool = False) -> None:
        """Record that user code built an optimizer, or added parameters to one."""
        aside = self.scene.unseen.begin()
        try:
            if added:
                self.added(optimizer, self.scene.site())
            else:
                self.built(optimizer, self.scene.site())
        except Exception:
            self.scene.fail()
        finally:
            if aside:
                aside.close()

    def built(self, optimizer: Any, site: Site | None) -> Panel:
        """Assign a number to an optimizer, and a panel to its parameters."""
        scene, ledger = self.scene, self.scene.ledger
        number, _ = scene.number("optimizer", optimizer)
        scene.optimizers[number] = weakref.ref(optimizer)
        panel = ledger.panels.get(number)
        if panel is not None:
            self._panels[id(optimizer)] = (weakref.ref(optimizer), panel)
            return panel
        ledger.prune()
        panel = ledger.panels[number] = Panel(number)
        self._panels = {key: entry for key, entry in self._panels.items() if entry[0]() is not None}
        self._panels[id(optimizer)] = (weakref.ref(optimizer), panel)
        try:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    panel.add(scene.hold(parameter))
            scene.changed()
            ledger.refresh()
            group = optimizer.param_groups[0] if optimizer.param_groups else {}
            bases = {base.__name__ for base in type(optimizer).__mro__}
            scene.emit(
                OptimizerBuilt(
                    optimizer=number,
                    name=scene.target(site, "optimizer"),
                    kind=type(optimizer).__name__,
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
        """Record added parameters, by add_param_group or without it."""
        scene = self.scene
        try:
            entry = self._panels.get(id(optimizer))
            if entry is None or entry[0]() is not optimizer:
                return
            panel = entry[1]
            known = {held.number for held in panel.everything}
            fresh = [scene.hold(p) for group in optimizer.param_groups for p in group["params"]]
            fresh = [held for held in fresh if held.number not in known]
            for held in fresh:
                panel.add(held)
            if fresh:
                scene.changed()
                scene.ledger.refresh()
                numbers = tuple(held.number for held in fresh)
                scene.emit(ParametersAdded(optimizer=panel.number, parameters=numbers, site=site))
        except Exception:
            scene.fail()

    def before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Global pre-hook: runs for every optimizer, also for nested ones."""
        coast = self._coast
        if coast.on:
            if coast.keys[coast.at] == id(optimizer) + sys._getframe(2).f_lasti and len(args) == 1 and not kwargs:
                coast.passing = coast.events[coast.at]
                self._nested = 0
                return
            if coast.passing is not None:  # a step inside a step
                self._nested += 1
                return
            coast.wake()
        coast.passing = None
        scene = self.scene
        if not scene.active:
            return
        depth = scene.depth
        depth.step = depth.step + 1 if depth.step == 0 else self._steps_under_way()
        if depth.step > 1:
            return
        if coast.learning:
            coast.step_key = id(optimizer) + sys._getframe(2).f_lasti if len(args) == 1 and not kwargs else None
        aside = scene.unseen.begin()
        try:
            ledger = scene.ledger
            site = scene.sites.quick(3)
            entry = self._panels.get(id(optimizer))
            mine = entry is not None and entry[0]() is optimizer
            panel = entry[1] if entry is not None and mine else self.built(optimizer, None)
            closure = (len(args) > 1 and args[1] is not None) or kwargs.get("closure") is not None
            if scene.bad_loss:
                scene.bad_loss = False
                if finite_gradients(scene, panel):
                    scene.emit(GradientsRepaired(optimizer=panel.number))
            counts: Counts | int = ledger.fresh_only(panel)
            if not counts:
                if scene.sampled:
                    self.added(optimizer, None)
                counts = ledger.look(ledger.owned(panel))
                if scene.sampled and scene.scales.in_use and not depth.scaler:
                    told = getattr(optimizer, "grad_scale", None) is not None or len(args) > 1 or bool(kwargs)
                    scale = scene.scales.stepping(panel, site, scaler=False)
                    if scale is not None and not told:  # else it may divide by the scale itself
                        scene.emit(scale)
                if scene.sampled and not closure:
                    mixture(scene, panel, counts, site)
                if scene.sampled:
                    self._compare(optimizer, panel, counts, closure)
            self._pending = (panel, site, counts, closure)
        except Exception:
            self._pending = None
            scene.fail()
        finally:
            if aside:
                aside.close()

    def _compare(self, optimizer: Any, panel: Panel, counts: Counts, closure: bool) -> None:
        """Copy values to compare after the step; the step counts even if this fails."""
        begun = time.perf_counter()
        try:
            begun = self.scene.clock(_one_of(panel))
            self._stepped.before(optimizer, panel, counts, closure=closure)
        except Exception:
            self.scene.fail()
        self.scene.cost_s += time.perf_counter() - begun

    def _steps_under_way(self) -> int:
        """Return the number of steps around the hook; a step that raised leaves no other trace."""
        frame: Any = sys._getframe(2)
        wrapper, count = frame.f_code, 0
        while frame is not None:
            count += frame.f_code is wrapper
            frame = frame.f_back
        return count

    def after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Global post-hook."""
        coast = self._coast
        passing = coast.passing
        if passing is not None:
            if self._nested:
                self._nested -= 1
                return
            coast.passing = None
            if coast.on:
                coast.stepped()
            else:
                self.passed(passing)
            return
        scene = self.scene
        depth = scene.depth
        if not scene.active or depth.step == 0:
            return
        depth.step -= 1
        if depth.step or self._pending is None:
            return
        panel, site, counts, closure = self._pending
        self._pending = None
        aside = scene.unseen.begin()
        try:
            if scene.sampled:
                begun = time.perf_counter()
                try:
                    begun = scene.clock(_one_of(panel))
                    self._stepped.after(panel, site)
                    unchanged(scene)
                    self._rows.look()
                    self._freezes.look()
                except Exception:  # the step counts all the same
                    scene.fail()
                scene.cost_s += time.perf_counter() - begun
            if closure and not isinstance(counts, int) and not counts.fresh and not counts.mixed:
                counts = scene.ledger.look(scene.ledger.owned(panel))
                counts.fresh, counts.reused = counts.fresh + counts.reused, 0
            scene.ledger.after_step(panel, next_sampled=scene.is_sampled(scene.step + 1))
            panel.scaled = False
            number = panel.number
            scene.attempts[number] = scene.attempts.get(number, 0) + 1
            key: tuple[Any, ...] = (number, id(site), counts, closure, depth.scaler)
            if not isinstance(counts, int):
                key = (*key[:2], *counts.key(), *key[3:])
            event = self._events.get(key)
            if event is None:
                event = self._events[key] = _stepped(number, site, counts, closure, depth.scaler)
        except Exception:
            scene.fail()
            return
        finally:
            if aside:
                aside.close()
        scene.close_step(event)

    def passed(self, event: Any) -> None:
        """Emit a recognized step during which another event woke the observation."""
        scene, number = self.scene, event.optimizer
        aside = scene.unseen.begin()
        try:
            scene.attempts[number] = scene.attempts.get(number, 0) + 1
            scene.ledger.after_step(scene.ledger.panels[number], next_sampled=scene.is_sampled(scene.step + 1))
        except Exception:
            scene.fail()
            return
        finally:
            if aside:
                aside.close()
        scene.close_step(event)


def _stepped(number: int, site: Site | None, counts: Counts | int, closure: bool, scaler: bool) -> OptimizerStepped:
    if isinstance(counts, int):
        return OptimizerStepped(
            optimizer=number, site=site, observed=counts, fresh=counts, closure=closure, scaler=scaler
        )
    return OptimizerStepped(
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
        scaler=scaler,
    )


def _one_of(panel: Panel) -> Any:
    """Return a parameter of an optimizer; None without any."""
    return panel.everything[0].ref() if panel.everything else None


def _number(value: Any) -> float:
    """Return a hyperparameter as a float, 0.0 for a tensor (reading it could synchronise) or anything else."""
    return float(value) if isinstance(value, int | float) else 0.0
