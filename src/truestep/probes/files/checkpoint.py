"""Files and state dicts, made and loaded. Seams: inside torch.serialization, and methods of modules.

A module gets its state from `copy.deepcopy` by `Module.__setstate__`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from types import CodeType, FrameType
from typing import Any

from truestep import seams
from truestep.events import (
    CheckpointLoaded,
    CheckpointSaved,
    OptimizerLoaded,
    ScheduleMoved,
    Site,
    StateLoaded,
    StateTaken,
    WeightsKept,
)
from truestep.probes.context.guards import Guard, guard_at, of_validation
from truestep.probes.context.local_variables import argument, variables
from truestep.probes.context.names import arguments, receiver
from truestep.probes.context.probe import Probe, sees
from truestep.probes.context.scene import is_lazy
from truestep.probes.context.values import plain_number
from truestep.probes.files.contents import resumes, states
from truestep.probes.files.kept_copies import unread_variable
from truestep.probes.files.state_dicts import Changed, States, read, shapes
from truestep.probes.gradients.random_values import is_initial
from truestep.probes.optimizer.sampled_measures import keep_base
from truestep.seams.patch import patch

_RECONSTRUCT: CodeType | None = getattr(getattr(copy, "_reconstruct", None), "__code__", None)
"""Code of `copy.deepcopy` that gives a copy its state; None in a Python without this function."""
_MOST_PARAMETERS = 4000
_MOST_WEIGHTS = 16
_HOOKS = ("_state_dict_hooks", "_state_dict_pre_hooks", "_optimizer_state_dict_post_hooks")
"""Attributes with functions that a call of `state_dict` runs: it may be made for their effect."""


class CheckpointProbe(Probe):
    """Emits `CheckpointSaved`, `CheckpointLoaded`, `StateTaken`, `StateLoaded`, `OptimizerLoaded`, `ScheduleMoved`."""

    def install(self, stack: ExitStack) -> None:
        probe, scene = self, self.scene
        module = scene.torch.nn.Module
        compiling = scene.torch.compiler.is_dynamo_compiling
        self._states = States(scene)

        def _save(obj: Any, *args: Any, **kwargs: Any) -> Any:
            result = original_save(obj, *args, **kwargs)
            if scene.active:
                probe.saved(obj, sys._getframe(1))
            return result

        def _load(*args: Any, **kwargs: Any) -> Any:
            result = original_load(*args, **kwargs)
            if scene.active:
                probe.file_loaded(result)
            return result

        @functools.wraps(module.state_dict)
        def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            filled = args[0] if args else kwargs.get("destination")
            if compiling() or not scene.active or (filled is not None and not probe.of_user(sys._getframe(1))):
                return original_taken(self, *args, **kwargs)  # torch's own call for a child of the module
            into = filled is not None and probe.fills(self, filled)
            result = original_taken(self, *args, **kwargs)
            if filled is None:
                probe.taken(result)
            probe.read(self, "module", sys._getframe(1), into=into)
            return result

        @functools.wraps(module.load_state_dict)
        def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not scene.active or compiling():
                return original_state(self, *args, **kwargs)
            state = args[0] if args else kwargs.get("state_dict")
            changed = probe.before(self, state)
            result = original_state(self, *args, **kwargs)
            strict = args[1] if len(args) > 1 else kwargs.get("strict", True)
            probe.loaded(self, result, state, changed, None if strict else sys._getframe(1))
            return result

        @functools.wraps(module.__setstate__)
        def __setstate__(self: Any, state: Any) -> None:
            original_set(self, state)
            if scene.active and not compiling():
                probe.copied(sys._getframe(1))

        original_save = seams.saving.wrap(stack, "_save", _save)
        original_load = seams.saving.wrap(stack, "_load", _load)
        original_taken = patch(stack, module, "state_dict", state_dict)
        original_state = patch(stack, module, "load_state_dict", load_state_dict)
        original_set = patch(stack, module, "__setstate__", __setstate__)
        self._watch_others(stack)

    def _watch_others(self, stack: ExitStack) -> None:
        """Watch the states of optimizers and schedules."""
        from torch.optim import Optimizer, lr_scheduler

        base = lr_scheduler.LRScheduler
        schedules = [cls for cls in vars(lr_scheduler).values() if isinstance(cls, type) and issubclass(cls, base)]
        for cls in dict.fromkeys([Optimizer, *schedules]):
            if "state_dict" in vars(cls):
                self._watch_state(stack, cls, "optimizer" if cls is Optimizer else "schedule")
            if cls is not Optimizer and "load_state_dict" in vars(cls):
                self._watch_schedule(stack, cls)
        original, probe, scene = Optimizer.load_state_dict, self, self.scene

        @functools.wraps(original)
        def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            if scene.active:
                probe.optimizer_loaded(self)
            return result

        patch(stack, Optimizer, "load_state_dict", load_state_dict)

    def _watch_schedule(self, stack: ExitStack, cls: Any) -> None:
        scene, original = self.scene, vars(cls)["load_state_dict"]

        @functools.wraps(original)
        def load_state_dict(schedule: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(schedule, *args, **kwargs)
            if scene.active:
                self.schedule_loaded(schedule)
            return result

        patch(stack, cls, "load_state_dict", load_state_dict)

    def _watch_state(self, stack: ExitStack, cls: Any, kind: str) -> None:
        scene, original = self.scene, vars(cls)["state_dict"]

        @functools.wraps(original)
        def state_dict(owner: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(owner, *args, **kwargs)
            if scene.active:
                self.read(owner, kind, sys._getframe(1))
            return result

        patch(stack, cls, "state_dict", state_dict)

    @sees
    def saved(self, obj: Any, caller: FrameType) -> None:
        """Emit that an object was saved, with the file that ``torch.save`` got."""
        file = _target(caller)
        keys = tuple(str(key) for key in list(obj)[:20]) if isinstance(obj, dict) else (type(obj).__name__,)
        whole = isinstance(obj, self.scene.torch.nn.Module)
        path = os.path.abspath(file) if isinstance(file, str | os.PathLike) else ""
        self.scene.tell(CheckpointSaved, site=self.scene.site(2), holds=keys, whole_model=whole, path=path)

    @sees
    def file_loaded(self, loaded: Any) -> None:
        """Emit that a file was loaded."""
        site, (optimizers, schedules) = self.scene.site(2), states(loaded)
        partial = bool(optimizers or schedules)
        self.scene.tell(
            CheckpointLoaded,
            site=site,
            optimizers=optimizers,
            schedules=schedules,
            resumes=partial and resumes(site),
        )

    @sees
    def taken(self, state: Any) -> None:
        """Remember a state dict."""
        self._states.take(state, self.scene.site())

    @sees
    def of_user(self, frame: FrameType) -> bool:
        """Return True if code of the user made a call."""
        return self.scene.sites.kind(frame.f_code) == 0

    @sees
    def fills(self, module: Any, filled: Any) -> bool:
        """Return True if a dict that a state is written to has a tensor of that name already."""
        names = (name for name, _ in itertools.chain(module.named_parameters(), module.named_buffers()))
        return isinstance(filled, Mapping) and next(names, None) in filled

    @sees
    def read(self, owner: Any, kind: str, frame: FrameType, *, into: bool | None = False) -> None:
        """Emit that code of the user took a state dict."""
        scene = self.scene
        if scene.sites.kind(frame.f_code):
            return
        site = scene.sites.at(frame)
        hooked = any(getattr(owner, name, None) for name in _HOOKS)
        filled = arguments(site, ("destination",))[0] if into else ""
        kept = "" if site is None else unread_variable(site, script=frame.f_globals.get("__name__") == "__main__")
        scene.tell(
            StateTaken,
            site=site,
            owner=receiver(site, "model"),
            kind=kind,
            dropped=not hooked and not into and scene.sites.result_dropped(frame),
            into=filled,
            kept=kept,
            trained=bool(scene.ledger.attempts),
        )
        if kind == "module" and scene.ledger.attempts:
            self._kept_as_best(site, frame)

    @sees
    def copied(self, frame: FrameType) -> None:
        """Handle a module that was given its state: a copy of a trained model, unless it is a part of a larger one."""
        deepcopy = frame.f_back if frame.f_code is _RECONSTRUCT else None
        user = deepcopy.f_back if deepcopy is not None else None
        if user is not None and self.scene.ledger.attempts and self.of_user(user):
            self._kept_as_best(self.scene.sites.at(user), user)

    def _kept_as_best(self, site: Site | None, frame: FrameType) -> None:
        """Emit that weights were taken in a branch for a new best figure, also by a function that it calls."""
        for user in self.scene.sites.users(frame):
            guard = guard_at(user.f_code.co_filename, user.f_lineno)
            if guard is not None:
                held = argument(user, guard.name)
                value = plain_number(self.scene.torch, user.f_globals.get(guard.name) if held is None else held)
                if value is not None:
                    self.scene.tell(
                        WeightsKept,
                        name=guard.name,
                        loss=guard.loss,
                        share=guard.share,
                        greater=guard.greater,
                        value=value,
                        best=guard.best,
                        beside=self._beside(guard, value, user),
                        site=guard.site,
                        taken=site,
                    )
                return

    def _beside(self, guard: Guard, value: float, user: FrameType) -> str:
        """Return the variable with the figure of a validation, beside a compared one of the training; else ""."""
        names = variables(user) if user.f_code.co_flags & inspect.CO_OPTIMIZED else user.f_globals
        for name in of_validation(guard, list(names)):
            number = plain_number(self.scene.torch, names[name])
            if number is not None and number != value:
                return name
        return ""

    @sees
    def optimizer_loaded(self, optimizer: Any) -> None:
        """Emit that an optimizer loaded its moments, and whether its weights were still the first ones."""
        number, site = self.scene.numbers.known("optimizer", optimizer), self.scene.site(2)
        if number is not None and optimizer.state:
            held = (p for group in optimizer.param_groups for p in group["params"] if not is_lazy(p) and p.dim() > 1)
            initial = [is_initial(p) for p in itertools.islice(held, _MOST_WEIGHTS)]
            name = receiver(site, "optimizer")
            self.scene.tell(
                OptimizerLoaded, optimizer=number, name=name, initial=bool(initial) and all(initial), site=site
            )

    @sees
    def schedule_loaded(self, schedule: Any) -> None:
        """Emit that a schedule loaded its position."""
        number = self.scene.numbers.known("scheduler", schedule)
        if number is not None:
            self.scene.tell(ScheduleMoved, scheduler=number, site=self.scene.site(2))

    @sees
    def before(self, module: Any, state: Any) -> Changed | None:
        """Return the facts about a state dict that consists of the module's own tensors, and has changed."""
        number, _ = self.scene.numbers.of("loaded module", module)
        return self._states.own(number, module, state) if isinstance(state, Mapping) else None

    @sees
    def loaded(self, module: Any, result: Any, state: Any, changed: Changed | None, frame: FrameType | None) -> None:
        """Emit a load; ``frame`` is the frame of the call if it allowed missing or unexpected keys, else None."""
        scene = self.scene
        missing, unexpected = getattr(result, "missing_keys", ()), getattr(result, "unexpected_keys", ())
        facts: dict[str, Any] = {"missing": len(missing), "unexpected": len(unexpected)}
        absent = set(missing)
        written = [p for name, p in module.named_parameters() if name not in absent and not is_lazy(p)]
        loaded = list(map(scene.hold, written))
        for held, parameter in zip(loaded, written, strict=True):
            held.moved = -1  # other values, and no update by hand
            keep_base(held, parameter)
        facts["parameters"] = tuple(held.number for held in loaded[:_MOST_PARAMETERS])
        if changed is not None:
            facts |= {"taken": changed.taken.site, "taken_steps": _rough(changed.steps)}
            facts["overwritten"] = changed.overwritten
        if frame is not None and frame is scene.sites.frame(1) and scene.sites.result_dropped(frame):
            facts |= self._unread(module, missing, state)
        number, _ = scene.numbers.of("loaded module", module)
        model = scene.numbers.known("model", module)
        scene.tell(StateLoaded, site=scene.site(2), model=model, module=number, **facts)

    def _unread(self, module: Any, missing: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return the facts about a load that allowed missing or unexpected keys and ignored the result."""
        tensors = [thing for thing in state.values() if isinstance(thing, self.scene.torch.Tensor)]
        names = shapes(module.named_parameters(remove_duplicate=False))
        absent = set(missing)
        reading = read({name: shape for name, shape in names.items() if name in absent}, state)
        return {
            "unread": True,
            "state": self.scene.numbers.of("state", tensors[0])[0] if tensors else 0,
            "offered": len(tensors),
            "dropped": len(absent & names.keys()),
            "matched": len(names.keys() - absent),
            "added": reading.added,
            "lacking": reading.lacking,
            "inner": reading.inner,
            "found": reading.found,
        }


def _rough(number: int) -> int:
    """Return a count to one significant digit, so that events have few different counts.

    >>> _rough(7), _rough(1234)
    (7, 1000)
    """
    return int(float(f"{number:.0e}"))


def _target(frame: FrameType | None) -> Any:
    """Return the first argument after the object of the ``torch.save`` that called; other wrappers may be between."""
    for _ in range(4):
        if frame is None or frame.f_code.co_name == "save":
            break
        frame = frame.f_back
    return None if frame is None else frame.f_locals.get("f")
