"""`FunctionProbe`: functions that are models. Seam: the code of functions of the program that its training calls.

A function is a model if it takes samples, uses trained tensors, and returns more than one number with a gradient, each
time that it is called in a step; the outermost one counts. It is looked for in programs without trained modules.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType, FrameType, FunctionType
from typing import Any

from truestep.events import FunctionCalled, FunctionMet, Site
from truestep.probes.context.probe import Probe, sees
from truestep.probes.context.values import key_of
from truestep.probes.copies.call import Call
from truestep.probes.forward.inputs.reads import READS_ASIDE, Inputs
from truestep.probes.forward.results import Use, given_at, use_of
from truestep.probes.functions.as_module import as_module
from truestep.probes.functions.callees import called_by, callees
from truestep.probes.functions.candidates import Candidate, arguments_of, operations
from truestep.probes.functions.choices import Choices
from truestep.probes.functions.drops import Drops, on_purpose
from truestep.probes.functions.leaves import around, has_leaves, leaves_of
from truestep.probes.functions.passes import Passes
from truestep.probes.functions.watchers import compiled_frames, watches
from truestep.seams.backward import engine_state
from truestep.seams.code.functions import code_of, observe
from truestep.seams.patch import uncounted
from truestep.seams.refs import Ref

_MOST_LOOKS = 6
"""Passes before which the functions are observed."""
_LEAST = 2
"""Passes that a function must be a model in."""
_MOST_MODELS = 4
_MOST_CALLS = 64
_MOST_LEAVES = 64
_MOST_READ = 100
"""Calls of an evaluation at one line that are given to the checks of copies."""
_MOST_PARTS = 8
"""Tensors of a batch, and of a result, that are looked at."""


class FunctionModel:
    """A function that is a model."""

    __slots__ = ("__weakref__", "inner", "last", "leaves", "module", "name", "number", "weights")

    def __init__(self, name: str, weights: frozenset[str], inner: list[CodeType]) -> None:
        self.name = name
        self.weights = weights
        self.inner = inner
        """The code of the functions that it calls; they can hold tensors."""
        self.number = 0
        self.module: Any = None
        """The function as a module, with the arguments of its latest call."""
        self.leaves: dict[str, Ref] = {}
        """The trained tensors of a call in the first steps, by their places."""
        self.last: Ref | None = None
        """The first sample of the latest call."""

    def repeats_input(self, given: list[Any]) -> bool:
        """Return True if the first argument is the object of the call before; remember it for the next call."""
        first = next((value for value in given if hasattr(value, "grad_fn")), None)
        same = first is not None and self.last is not None and self.last() is first
        self.last = None if first is None else Ref(first)
        return same


class FunctionProbe(Probe):
    """Emits `FunctionMet` and `FunctionCalled`, and passes calls on to the checks of rows."""

    def install(self, stack: ExitStack) -> None:
        scene = self.scene
        self._stack = stack
        self._in_engine = engine_state()
        self._grad_enabled = scene.torch.is_grad_enabled
        self._transformed = scene.torch._C._functorch.peek_interpreter_stack
        self._kinds = scene.torch.Tensor, scene.torch.nn.Parameter
        self._choices = Choices(scene)
        self._inputs = Inputs(scene)
        self._reads: dict[Site | None, int] = {}
        """Line of an evaluation to the number of its calls that are still read outside of sampled steps."""
        self._calls: dict[Site | None, int] = {}
        """Line of an evaluation to the number of its calls."""
        self._passes = Passes(scene)
        self._drops = Drops(scene)
        self.drops: Drops | None = None
        """Follows dropout in the call of a model that is under way, without gradients."""
        self._compiled = compiled_frames()
        self._looks = 0
        self._looking = False
        self._ended = False
        self._observed: dict[int, Callable[[], None]] = {}
        """Id of the code of an observed function to the function that restores it."""
        self._found: dict[int, Candidate] = {}
        """Id of the code of a function to its calls since the latest pass."""
        self._before: dict[int, Candidate] = {}
        """The same of the pass before."""
        self._votes: dict[int, int] = {}
        self._models: dict[int, FunctionModel] = {}
        self._running = False
        """True in a call of a model."""
        self._within: list[list[int]] = []
        """For each call under way of an observed function, the functions that were models inside of it."""
        scene.functions = self
        stack.callback(setattr, scene, "functions", None)

    # --- the first passes --------------------------------------------------------------------------------------

    @sees
    def passing(self, root: Any, frame: FrameType | None) -> None:
        """Handle a backward pass of a training, before it runs: find functions in the first ones of sampled steps.

        Args:
            root: the operation that made the loss.
            frame: the innermost frame of the program.
        """
        for model in self._models.values():
            model.module = None  # which has tensors of the program
        if self._ended or not self.scene.sampling.on:
            return
        if self._looking:
            self._vote(root)
            if self._looks >= _MOST_LOOKS or max(self._votes.values(), default=0) >= _LEAST:
                self._choose()
                return
        elif not self._begin(frame):
            self._ended = True
            return
        self._looks += 1

    def _begin(self, frame: FrameType | None) -> bool:
        """Observe the functions that a training calls. Return False if there is none, or if it would be seen."""
        scene = self.scene
        if scene.numbers.count("trained model"):
            return False
        frames = _of_program(scene.sites.users(frame))
        functions = callees(scene, frames)
        files = {code.co_filename for code in (*(one.f_code for one in frames), *(one.__code__ for one in functions))}
        if compiled_frames() != self._compiled or any(map(watches, files)):
            return False
        for function in functions:
            code = function.__code__
            restore = observe(self._stack, function, self._passed_on)
            if restore is not None:
                self._observed[id(code)] = restore
        self._looking = bool(self._observed)
        return self._looking

    def _vote(self, root: Any) -> None:
        reached = operations(root)
        for one in self._found.values():
            judged = [call for call in one.calls if call[0] in reached]
            one.ok = bool(judged) and all(is_model for _, is_model, _ in judged)
            for _, is_model, within in judged:
                for inner in within if is_model else ():
                    self._found[inner].inside = True
        models = {key for key, one in self._found.items() if one.ok and not one.inside}
        self._votes = {key: self._votes.get(key, 0) + 1 for key in models}
        self._before, self._found = self._found, {}

    def _choose(self) -> None:
        """Keep the functions that are models, and restore all others."""
        self._looking, self._ended = False, True
        scene = self.scene
        for key, votes in list(self._votes.items())[:_MOST_MODELS]:
            if votes >= _LEAST:
                one = self._before[key]
                inner = list(map(code_of, called_by(scene, one.own)))
                model = self._models[key] = FunctionModel(one.own.__name__, one.weights, inner)
                model.leaves = one.leaves
                model.number, _ = scene.numbers.of("model", model)
                scene.emit(FunctionMet(model=model.number, name=model.name))
        for key, restore in list(self._observed.items()):
            if key not in self._models:
                restore()
                del self._observed[key]
        self._before = {}

    def weights(self) -> dict[str, dict[str, Any]]:
        """Return the trained tensors that each model used in the first steps, by their places."""
        return {
            model.name: {place: leaf for place, ref in model.leaves.items() if (leaf := ref()) is not None}
            for model in self._models.values()
        }

    # --- calls -------------------------------------------------------------------------------------------------

    def _passed_on(self, own: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function for the program, and observe the call."""
        scene = self.scene
        key = id(own.__code__)
        model = self._models.get(key)
        if model is not None and not scene.sampling.on and self._grad_enabled():
            result = own(*args, **kwargs)
            tracked = result.requires_grad if type(result) is self._kinds[0] else self._tracks(result)
            if tracked is False and self._is_seen():  # of weights without a gradient
                self._returned(model, own, args, kwargs, result)
            elif self._choices.waiting:
                self._settle()
            return result
        if (model is None and not self._looking) or not self._is_seen():
            return own(*args, **kwargs)
        if model is not None:
            self._running = True
            self._follow_drops()
            try:
                result = own(*args, **kwargs)
            finally:
                self._running = False
            self._returned(model, own, args, kwargs, result)
            return result
        within: list[int] = []
        self._within.append(within)
        try:
            result = own(*args, **kwargs)
        finally:
            self._within.pop()
        self._examine(own, args, kwargs, result, within)
        return result

    uncounted(_passed_on)

    @sees
    def _tracks(self, result: Any) -> bool | None:
        """Return whether a result tracks gradients; None for one without a tensor."""
        first = self._first(result)
        return None if first is None else bool(first.requires_grad)

    @sees
    def _follow_drops(self) -> None:
        """Follow dropout in a call without gradients that begins."""
        self.drops = None if self._grad_enabled() else self._drops
        if self.drops is not None:
            self.drops.begin()

    @sees
    def _is_seen(self) -> bool:
        """Return True for a call by the training, and not by a transformation of it or inside of another model."""
        scene = self.scene
        return bool(
            scene.active
            and not self._running
            and not scene.depth.fetching
            and not scene.depth.step
            and not self._in_engine()
            and self._transformed() is None
            and scene.ledger.thread in (0, threading.get_ident())
        )

    @sees
    def _examine(
        self, own: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, within: list[int]
    ) -> None:
        """Judge if a call in the first steps is that of a model."""
        if not self._grad_enabled():
            return
        key, torch = id(own.__code__), self.scene.torch
        given = arguments_of(own, args, kwargs)
        weights = frozenset(name for name, value in given.items() if has_leaves(torch, value))
        samples = [one for name, value in given.items() if name not in weights for one in self._tensors(value)]
        is_model = (
            any(value.dim() and not value.requires_grad for value in samples)
            and not any(value.requires_grad for value in samples)
            and self._is_result(result)
            and (bool(weights) or around(torch, own))
        )
        first = self._first(result)
        one = self._found.setdefault(key, Candidate(own))
        if len(one.calls) < _MOST_CALLS:
            node = None if first is None or first.grad_fn is None else key_of(first.grad_fn)
            one.calls.append((node, is_model, within))
        if is_model:
            one.weights |= weights
            places = leaves_of(torch, own, {name: given[name] for name in weights})
            one.leaves = {place: Ref(leaf) for place, leaf in list(places.items())[:_MOST_LEAVES]}
            within = [key]
        if self._within:
            self._within[-1] += within

    def _tensors(self, value: Any) -> list[Any]:
        """Return a tensor, or those of a batch that is a tuple, a list or a dict."""
        if type(value) in self._kinds:
            return [value]
        kind = type(value)
        if kind is dict:
            parts: tuple[Any, ...] = tuple(value.values())
        elif kind is list or (isinstance(value, tuple) and (kind is tuple or "_fields" in vars(kind))):
            parts = tuple(value)
        else:
            return []
        return [part for part in parts[:_MOST_PARTS] if type(part) in self._kinds]

    def _is_result(self, result: Any) -> bool:
        first = self._first(result)
        return first is not None and first.dim() > 0 and first.numel() > 1 and first.grad_fn is not None

    def _first(self, result: Any) -> Any:
        """Return a tensor that is a result, or the first one in it; None without one."""
        if type(result) is self._kinds[0]:
            return result
        parts = list(result.values()) if type(result) is dict else result if type(result) in (tuple, list) else ()
        return next((part for part in parts[:_MOST_PARTS] if type(part) is self._kinds[0]), None)

    def _is_read(self, site: Site | None, *, tracked: bool) -> bool:
        """Return True if the values of a call are read: in sampled steps, and in the first calls of an evaluation."""
        if self.scene.sampling.on or tracked:
            return self.scene.sampling.on
        left = self._reads.get(site, READS_ASIDE)
        self._reads[site] = max(0, left - 1)
        return left > 0

    @sees
    def _settle(self) -> None:
        """Handle the first call of the training after an evaluation."""
        self._choices.trained(self.scene.sites.frame(3))

    @sees
    def _returned(
        self, model: FunctionModel, own: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """Handle a call of a model."""
        scene, frame = self.scene, sys._getframe(2)
        first = self._first(result)
        drops, self.drops = self.drops, None
        dropout = None if drops is None else drops.end([own.__code__, *model.inner])
        if first is None:
            return
        user = scene.sites.above(frame)
        site = scene.sites.at(user)
        passed = arguments_of(own, args, kwargs)
        samples = [name for name, value in passed.items() if name not in model.weights and self._tensors(value)]
        given = [one for name in samples for one in self._tensors(passed[name])]
        tracked = bool(first.requires_grad)
        calls = 0 if tracked else self._calls.get(site, 0) + 1
        if calls:
            self._calls[site] = calls
        read = scene.checks is not None and calls <= _MOST_READ
        module = as_module(scene.torch, own, passed, samples) if read else None
        sampled = dropout is not None and on_purpose(site, user)
        if sampled or (drops is not None and not drops.changes(dropout, module, frame)):
            dropout = None
        use = Use() if site is None else use_of(site)
        if calls and site is not None:
            self._passes.returned(model.number, site, user, own, calls)
        if tracked:
            self._choices.trained(user)
        else:
            self._choices.waiting = True
        scene.tell(
            FunctionCalled,
            model=model.number,
            site=site,
            grad=self._grad_enabled(),
            tracked=tracked,
            use=use.how,
            only_read=use.only,
            same_input=model.repeats_input(given),
            loader=scene.loader,
            dropout=dropout,
            sampled=sampled,
        )
        if scene.checks is not None:
            model.module = module
            if self._is_read(site, tracked=tracked) and module is not None:
                module.training = tracked
                self._inputs.look(model.number, module, tuple(given), site, "" if site is None else given_at(site))
                module.training = False
            call = Call(tuple(given), {})
            scene.checks.function_returned(module, model.number, site, frame, call, result, tracked=tracked)
            if not tracked:
                model.module = None


def _of_program(frames: list[FrameType]) -> list[FrameType]:
    """Return the frames up to that of the main file; those beyond it started the program."""
    for place, frame in enumerate(frames):
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
            return frames[: place + 1]
    return frames
