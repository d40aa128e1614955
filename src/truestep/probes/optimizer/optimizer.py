"""Optimizers: built, given parameters, stepped. Seams: global step hooks, ``__init__`` and ``add_param_group``."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from truestep import seams
from truestep.events import (
    Event,
    GradientScaleRead,
    GradientsRepaired,
    OptimizerBuilt,
    OptimizerStepped,
    ParametersAdded,
    Site,
)
from truestep.probes.context.local_variables import variables
from truestep.probes.context.names import target
from truestep.probes.context.probe import Probe, sees
from truestep.probes.gradients.gradient_states import Counts, Panel
from truestep.probes.gradients.ineffective_freezes import Freezes
from truestep.probes.optimizer.aliases import Aliases
from truestep.probes.optimizer.averages import Averages
from truestep.probes.optimizer.copies import Copies
from truestep.probes.optimizer.equal_rows import Rows
from truestep.probes.optimizer.layer_sizes import LayerSizes
from truestep.probes.optimizer.pace import Pace
from truestep.probes.optimizer.pass_loops import lasts_one_pass
from truestep.probes.optimizer.rebuilt import Rebuilt
from truestep.probes.optimizer.sampled_measures import Unchanged, finite_gradients, mixture
from truestep.probes.optimizer.stepped import Stepped, decay_of_vectors, settings
from truestep.probes.unread.rates import ComputedRates
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


class Pending(NamedTuple):
    """A step under way."""

    panel: Panel
    site: Site | None
    counts: Counts | int
    """Number of fresh gradients if all examined ones are fresh."""
    closure: bool


class OptimizerProbe(Probe):
    """Emits `OptimizerBuilt`, `ParametersAdded` and, for the outermost of nested steps, `OptimizerStepped`."""

    def install(self, stack: ExitStack) -> None:
        from torch.optim import optimizer as module

        self._events: dict[tuple[Any, ...], OptimizerStepped] = {}
        self._coast = self.scene.coast
        self._pending: Pending | None = None
        self._panels: dict[int, Panel] = {}
        """Optimizer by its identity."""
        self._building = self._nested = 0
        self._rows = Rows(self.scene)
        self._freezes = Freezes(self.scene)
        self._stepped = Stepped(self.scene)
        self._computed = ComputedRates(self.scene)
        self._sizes = LayerSizes(self.scene)
        self._pace = Pace(self.scene)
        self._unchanged = Unchanged(self.scene)
        self._rebuilt = Rebuilt(self.scene)
        self._copies = self.scene.copies = Copies(self.scene)
        self._averages = Averages(self.scene, self._copies)
        self._aliases = Aliases(self.scene)
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
                self.built(optimizer)

        def add_param_group(optimizer: Any, param_group: dict[str, Any]) -> None:
            original_add(optimizer, param_group)
            if scene.active and not self._building:
                self.extended(optimizer)

        patch(stack, module.Optimizer, "__init__", __init__)
        patch(stack, module.Optimizer, "add_param_group", add_param_group)
        seams.step.watch(stack, before=self.before, after=self.after)

    def last(self) -> Iterator[Event]:
        """Yield final learning rates of the optimizers that are there, the pace, and parameters that moved late."""
        yield from self._unchanged.last()
        yield from self._copies.last()
        pace = self._pace.event()
        if pace is not None:
            yield pace
        for panel in self._panels.values():
            optimizer = panel.optimizer()
            read = None if optimizer is None else self._stepped.rates(optimizer, panel.number)
            if read is not None:
                yield read

    @sees
    def built(self, optimizer: Any) -> None:
        """Record that user code built an optimizer."""
        self._meet(optimizer, self.scene.site())

    @sees
    def extended(self, optimizer: Any) -> None:
        """Record that user code added parameters to an optimizer."""
        self._extend(optimizer, self.scene.site())

    def _meet(self, optimizer: Any, site: Site | None) -> Panel:
        """Assign a number to an optimizer, and a panel to its parameters."""
        ledger = self.scene.ledger
        number, _ = self.scene.numbers.of("optimizer", optimizer)
        panel = ledger.panels.get(number)
        if panel is None:
            ledger.prune()
            panel = ledger.panels[number] = Panel(number, weakref.ref(optimizer))
            self._panels = {key: known for key, known in self._panels.items() if known.optimizer() is not None}
            self._panels[id(optimizer)] = panel
            self._fill(panel, optimizer, site)
        self._panels[id(optimizer)] = panel
        return panel

    @sees
    def _fill(self, panel: Panel, optimizer: Any, site: Site | None) -> None:
        """Add the parameters of a new optimizer, and emit the event."""
        scene = self.scene
        given = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        names = self._variables(site) if any(scene.ledger.held(parameter) is None for parameter in given) else {}
        for parameter in given:
            panel.add(scene.hold(parameter, names.get(id(parameter), "")))
        scene.changed()
        scene.ledger.refresh()
        group = optimizer.param_groups[0] if optimizer.param_groups else {}
        bases = {base.__name__ for base in type(optimizer).__mro__}
        replaces = self._rebuilt.replaced(panel, site)
        scene.emit(
            OptimizerBuilt(
                optimizer=panel.number,
                name=target(site, "optimizer"),
                kind=type(optimizer).__name__,
                parameters=tuple(held.number for held in panel.everything),
                lr=_number(group.get("lr")),
                weight_decay=_number(group.get("weight_decay")),
                scale_free=bool(bases & _SCALE_FREE),
                remembers=bool(group.get("betas") or group.get("momentum") or "RMSprop" in bases),
                maximizes=group.get("maximize") is True,
                replaces=replaces,
                one_pass=replaces is not None and site is not None and lasts_one_pass(scene.sites.chain(1)),
                settings=settings(optimizer),
                decay_of_vectors=decay_of_vectors(optimizer),
                site=site,
            )
        )

    def _variables(self, site: Site | None) -> dict[int, str]:
        """Return the variables with a tensor in the user's function that builds an optimizer, by the tensor's id."""
        frame = None if site is None else self.scene.sites.frame(1)
        values = {} if frame is None else variables(frame)
        return {id(value): name for name, value in values.items() if isinstance(value, self.scene.torch.Tensor)}

    @sees
    def _extend(self, optimizer: Any, site: Site | None) -> None:
        """Record parameters that were added by `add_param_group`, or without it."""
        scene, panel = self.scene, self._panels.get(id(optimizer))
        if panel is None or panel.optimizer() is not optimizer:
            return
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

    # --- before a step -----------------------------------------------------------------------------------------

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
        if not self.scene.active:
            return
        depth = self.scene.depth
        depth.step = depth.step + 1 if depth.step == 0 else self._steps_under_way()
        if depth.step > 1:
            return
        if coast.learning:
            coast.step_key = id(optimizer) + sys._getframe(2).f_lasti if len(args) == 1 and not kwargs else None
        self._pending = self._examined(optimizer, args, kwargs)

    @sees
    def _examined(self, optimizer: Any, args: Any, kwargs: Any) -> Pending:
        """Examine the gradients of an outermost step."""
        scene, ledger = self.scene, self.scene.ledger
        site = scene.sites.quick(5)
        panel = self._panels.get(id(optimizer))
        if panel is None or panel.optimizer() is not optimizer:
            panel = self._meet(optimizer, None)
        if scene.unwritten is not None:
            scene.unwritten.stepping()
        if panel.number in self._rebuilt.waiting:
            self._rebuilt.begins(panel, site)
        closure = (len(args) > 1 and args[1] is not None) or kwargs.get("closure") is not None
        if scene.losses.bad:
            scene.losses.bad = False
            if finite_gradients(scene, panel):
                scene.emit(GradientsRepaired(optimizer=panel.number))
        counts: Counts | int = ledger.fresh_only(panel)
        if not counts:
            if scene.sampling.on:
                self._extend(optimizer, None)
            counts = ledger.look(ledger.owned(panel))
            if scene.sampling.on:
                if scene.scales.in_use and not scene.depth.scaler:
                    read = scene.scales.stepping(panel, site, scaler=False)
                    divides = getattr(optimizer, "grad_scale", None) is not None or len(args) > 1 or bool(kwargs)
                    if read is not None and not divides:  # else it may divide by the scale itself
                        scene.tell(GradientScaleRead, **read)
                if not closure:
                    mixture(scene, panel, counts, site)
                self._copy(optimizer, panel, counts, site, closure)
        return Pending(panel, site, counts, closure)

    @sees
    def _copy(self, optimizer: Any, panel: Panel, counts: Counts, site: Site | None, closure: bool) -> None:
        """Copy values to compare after the step; the step counts even if this fails."""
        with self.scene.sampling.timed(_one_of(panel)):
            if self.scene.ranks is not None:
                self.scene.ranks.before_step(panel)
            self._averages.measure()
            self._stepped.before(optimizer, panel, counts, site, closure=closure)
            self._computed.look(optimizer, panel.number, self.scene.sites.frame(1))
            self._sizes.before(panel)
            self._rows.meet()

    def _steps_under_way(self) -> int:
        """Return the number of steps around the hook; a step that raised leaves no other trace."""
        frame: Any = sys._getframe(2)
        wrapper, count = frame.f_code, 0
        while frame is not None:
            count += frame.f_code is wrapper
            frame = frame.f_back
        return count

    # --- after it ----------------------------------------------------------------------------------------------

    def after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Global post-hook."""
        coast = self._coast
        passing: Any = coast.passing
        if passing is not None:
            if self._nested:
                self._nested -= 1
                return
            coast.passing = None
            if coast.on:
                coast.stepped()
            else:  # another event during the step ended coasting
                self._close(self._passed(passing))
            return
        depth = self.scene.depth
        if not self.scene.active or depth.step == 0:
            return
        depth.step -= 1
        if depth.step or self._pending is None:
            return
        pending, self._pending = self._pending, None
        self._close(self._completed(pending))

    def _close(self, event: OptimizerStepped | None) -> None:
        if event is not None:
            self.scene.close_step(event)

    @sees
    def _passed(self, event: OptimizerStepped) -> OptimizerStepped:
        """Return the event of a step that was recognized at its start."""
        self.scene.ledger.stepped(self.scene.ledger.panels[event.optimizer])
        return event

    @sees
    def _completed(self, pending: Pending) -> OptimizerStepped:
        """Return the event of a step that was examined at its start."""
        scene, ledger = self.scene, self.scene.ledger
        panel, site, counts, closure = pending
        if scene.sampling.on:
            self._compare(panel, site)
        if closure and not isinstance(counts, int) and not counts.fresh and not counts.mixed:
            counts = ledger.look(ledger.owned(panel))
            counts.fresh, counts.reused = counts.fresh + counts.reused, 0
        ledger.stepped(panel)
        panel.scaled = False
        self._rebuilt.stepped(panel)
        # At every step: by this key without the cost of `tell`.
        scaler = scene.depth.scaler
        key = (panel.number, id(site), counts if isinstance(counts, int) else counts.key(), closure, scaler)
        event = self._events.get(key)
        if event is None:
            fields = {"observed": counts, "fresh": counts} if isinstance(counts, int) else counts.fields()
            event = self._events[key] = OptimizerStepped(
                optimizer=panel.number, site=site, **fields, closure=closure, scaler=scaler
            )
        return event

    @sees
    def _compare(self, panel: Panel, site: Site | None) -> None:
        """Read values closely at a sampled step; the step counts even if this fails."""
        with self.scene.sampling.timed(_one_of(panel)):
            if self.scene.ranks is not None:
                self.scene.ranks.after_step(panel, site)
            self._stepped.after(panel, site)
            self._sizes.after(panel, site)
            self._unchanged.look()
            self._copies.look(self._unchanged.moved, self._unchanged.stayed)
            self._averages.look(self._unchanged.moved)
            self._aliases.look()
            self._rows.look()
            self._freezes.look()
        self._pace.read(_one_of(panel))


def _one_of(panel: Panel) -> Any:
    """Return a parameter of an optimizer; None without any."""
    return panel.everything[0].ref() if panel.everything else None


def _number(value: Any) -> float:
    """Return a hyperparameter as a float, 0.0 for a tensor (reading it could synchronise) or anything else."""
    return float(value) if isinstance(value, int | float) else 0.0
