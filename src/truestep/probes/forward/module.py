"""Module calls from user code: outermost ones always, inner ones at sampled steps."""

from __future__ import annotations

import functools
import sys
from contextlib import ExitStack
from types import FrameType
from typing import Any

from truestep import seams
from truestep.events import ForwardCalledDirectly, LoopRead, Site
from truestep.probes.backward.kept_graphs import Keep
from truestep.probes.context.local_variables import argument
from truestep.probes.context.names import receiver
from truestep.probes.context.probe import Probe, sees
from truestep.probes.evaluation.last_pass import last_pass
from truestep.probes.evaluation.loops import loop_around
from truestep.probes.forward.call_sites import CallSite
from truestep.probes.forward.inner_calls import InnerCalls
from truestep.probes.forward.inputs.reads import Inputs
from truestep.probes.forward.layers.norms import Norms
from truestep.probes.forward.layers.statistics import Evaluated
from truestep.probes.forward.model import Model, Models
from truestep.probes.forward.outputs import Outputs
from truestep.probes.optimizer.aliases import tell_ensemble
from truestep.probes.unread.states import InnerCall, dropped_state
from truestep.seams.code.weaving import compiling
from truestep.seams.wrappers import is_compiled, unwrapped

_CALLING = ("_wrapped_call_impl", "_call_impl")
Token = tuple[int, Any, Any]
"""Depth of the thread before a call; its place; True if its input is the same object as at the call before."""


class ModuleProbe(Probe):
    """Emits `ModelMet`, `ModelCalled`, `InputsRead`, `ForwardCalledDirectly`, `UnregisteredModuleCalled` and more."""

    def install(self, stack: ExitStack) -> None:
        scene, torch = self.scene, self.scene.torch
        self._coast = scene.coast
        self._module = torch.nn.Module
        self._tensor = torch.Tensor
        self._grad_enabled = torch.is_grad_enabled
        self._autocast_enabled = torch.is_autocast_enabled
        self._compiling = compiling(torch)
        self._tracing = torch._C._get_tracing_state
        self._in_engine = seams.backward.engine_state()
        self._wrapper: Any = None
        """Code of ``OptimizedModule.__call__``, which stands between user code and a compiled model."""
        self._called_by = 0
        """While a round is learned: key of the latest call from user code, 0 for a call without one."""
        self._models = Models(scene)
        self._callsites: dict[tuple[int, int, int], CallSite] = {}
        self._receiver = functools.cache(receiver)
        self.norms = Norms(scene)
        self.evaluated = Evaluated(scene)
        self.keep = Keep(scene)
        self._compared = Outputs(scene)
        self._inputs = Inputs(scene)
        self._inside = InnerCalls(scene, self.norms)
        self._looking = False
        """True in a call without gradients with embeddings to be read."""
        self.outputs = Keep(scene, named=True)
        if not seams.module_call.wrap(stack, enter=self.enter, leave=self.leave, depth=scene.depth, coast=scene.coast):
            return
        hook = torch.nn.modules.module.register_module_parameter_registration_hook(self._parameter_registered)
        stack.callback(hook.remove)
        stack.callback(self._models.unwritten.forget)

    @sees
    def _parameter_registered(self, module: Any, name: str, parameter: Any) -> None:
        if not self.scene.active:
            return
        if self.scene.depth.inside:
            self._inside.created.add(module)
        self._models.unwritten.registered(module, name, parameter)

    # --- the seam ----------------------------------------------------------------------------------------------

    def enter(self, module: Any, args: tuple[Any, ...], depth_of_caller: int = 2) -> Any:
        """Observe the start of a module call: an outermost one, or an inner one at a sampled step.

        Args:
            module: the module that is called.
            args: its positional arguments.
            depth_of_caller: number of frames from this one to the caller.

        Returns:
            A token for `leave`: a tuple; while coasting the key of the call, None for a module without trainable
            parameters, False inside of another call.
        """
        coast = self._coast
        if coast.inside:
            return False
        if coast.on:
            key = id(module) + self._caller(depth_of_caller).f_lasti
            called = coast.calls.get(key, coast)
            if called is not coast:
                coast.inside = True
                if called is None:
                    return None
                coast.same = called.repeats_input(args)
                return key
        depth = self.scene.depth
        before = depth.inside
        self.scene.unseen.met(*args)
        token = self._entered(module, args, before, depth_of_caller + 2)
        if token is None:
            depth.inside = 1
            return before, None, False
        return token

    def _caller(self, depth: int) -> Any:
        """Return the frame that called a module, at a depth from the method that calls this one."""
        frame = sys._getframe(depth + 1)
        return frame.f_back if frame.f_code is self._wrapper else frame

    @sees
    def _entered(self, module: Any, args: tuple[Any, ...], before: int, depth_of_caller: int) -> Token:
        scene, depth, coast = self.scene, self.scene.depth, self._coast
        passed_by = before, None, False
        if depth.fetching or not scene.active or self._in_engine() or self._compiling() or self._tracing():
            depth.inside = 1
            return passed_by
        if before:
            if before == 2:
                self._inside.called(module, args)
                followed = self._compared.entering(module, args) if self._compared.following else False
                state = self._inside.states.begins(self._caller(depth_of_caller), args)
                return before, None, followed if state is None else InnerCall(followed, state, module)
            if before == 3:
                if type(module) in self.norms.kinds and self.evaluated.model is not None:
                    self.evaluated.met(module, args)
                if self._looking:
                    self._inside.evaluated(module, args)
            return passed_by
        frame = self._caller(depth_of_caller)
        place = self._callsites.get((id(frame.f_code), frame.f_lasti, id(module)))
        if place is None or scene.sampling.on or place.model.ref() is None:
            place = self._look(module, frame)
        model = place.model
        if coast.learning:
            self._learn(module, model, frame)
        if model.count <= 0:
            depth.inside = 1
            return passed_by
        if scene.copies is not None:
            scene.copies.called(model.number)
        same = model.repeats_input(args)
        if place.state is not None and place.state.open:
            place.state.begin(frame, args)
        grad = self._grad_enabled()
        evaluates = place.evaluates(module, grad)
        if evaluates and place.loader != scene.loader:
            place.turn(scene.loader)
        if scene.sampling.on or (place.reads and evaluates):
            place.reads -= not scene.sampling.on
            if place.last is not None and not grad:
                self._look_back(place, frame)
            self._inputs.look(model.number, module, args, place.site, place.given)
        if grad:
            self.evaluated.model, self._looking = None, False
        else:
            self.evaluated.begin(model)
            self._looking = self._inside.evaluates(model, place.site, args)
        if scene.sampling.on and model.trainable and grad:
            depth.inside = 2
            self._inside.begin(model, place.site, args)
            self._compared.begin(model, args)
        else:
            depth.inside = 1 if self.evaluated.model is None and not self._looking else 3
        return before, place, same

    def leave(self, token: Any, result: Any, depth_of_caller: int = 2) -> None:
        """Observe the end of the call; the result is None if it raised an error."""
        if type(token) is not tuple:
            if token is not False:
                self._coast.inside = False
                if token is not None and result is not None:
                    self._passed(token, result, depth_of_caller + 1)
            return
        before, place, same = token
        scene, depth = self.scene, self.scene.depth
        depth.inside = before
        dropout, depth.dropout = depth.dropout, None
        drops, depth.drops = depth.drops, False
        if result is None or (place is None and same is False):
            return
        scene.unseen.met(result)
        if place is None:
            self._inner_left(same, result)
            return
        tracked = self._left(place, before, same, (dropout, drops), result)
        if tracked is not None and scene.checks is not None and not before:
            scene.checks.returned(place.model, place.site, tracked, self._caller(depth_of_caller - 1), result)
        scene.relieve()

    @sees
    def _inner_left(self, entered: Any, result: Any) -> None:
        if type(entered) is InnerCall:
            entered.state.end(entered.module, result)
            entered = entered.followed
        if entered is not False:
            self._compared.left(entered, result)

    @sees
    def _left(
        self, place: CallSite, before: int, same: bool, dropped: tuple[Site | None, bool], result: Any
    ) -> bool | None:
        """Emit a call that returned. Return True if its result tracks gradients; None if the model was freed."""
        scene, model = self.scene, place.model
        dropout, drops = dropped
        module = model.ref()
        if module is None:
            return None
        tensor = result if type(result) is self._tensor else _first_tensor(result, self._tensor)
        tracked = tensor is not None and tensor.requires_grad
        if place.state is not None and place.state.open:
            place.state.end(module, result)
        if scene.sampling.on and not before:
            self._compared.end(model, module, place.site, result)
            scene.losses.returned(model.number, result, self._tensor)
            self._inside.end(model.number, module)
            if tracked and scene.unread is not None:
                scene.unread.look(scene.sites.frame(3))
        if scene.depth.modal is not None:
            model.follows(scene.depth)
        on = model.switched_on() if model.sensitive else 0
        training = module.training
        autocast = self._autocast_enabled(model.device)
        grad = self._grad_enabled()
        if dropout is not None and (grad or any(part.training for part in module.modules())):
            dropout = None
        drops = drops and training and not grad
        looks = not grad and training and (drops or on > 0)
        known = looks and model.knows(scene.sampling.step)
        same = same or (looks and model.has_repeated_rows())
        kinds = model.count, len(model.sensitive)
        key = (kinds, training, on, grad, tracked, same, scene.loader, autocast, dropout, drops, known)
        event = place.events.get(key)
        if event is None:
            event = place.events[key] = place.called(module, key)
        scene.emit(event)
        if self._coast.learning:
            self._coast.name(self._called_by if tracked else -self._called_by)
        if not tracked:
            self.evaluated.end(place.site)
            return False
        if self.norms.layers:
            self.norms.tell(model.number, place.site)
        for graph in scene.losses.retained:
            graph.met()
        if not training and not self.keep.full:
            self.keep.mark(tensor.grad_fn, place.site, backward=False)
        elif training and not self.outputs.full:
            self.outputs.mark(tensor.grad_fn, place.site, backward=True)
        return True

    def _learn(self, module: Any, model: Model, frame: FrameType) -> None:
        """Record the key by which a call is recognized in a later round."""
        known = (id(frame.f_code), frame.f_lasti, id(module)) in self._callsites
        self._called_by = id(module) + frame.f_lasti if known else 0
        if known:
            self._coast.calls[self._called_by] = model if model.count > 0 else None

    def _passed(self, key: int, result: Any, depth_of_caller: int) -> None:
        """Check that a recognized call is the one that comes at this place of every round."""
        coast = self._coast
        self.scene.unseen.met(result)
        aside = self.scene.unseen.begin()
        try:
            tensor = result if type(result) is self._tensor else _first_tensor(result, self._tensor)
            tracked = tensor is not None and tensor.requires_grad
            if coast.on and coast.keys[coast.at] == (key if tracked else -key):
                coast.at += 1
            elif not self._in_engine():
                frame = self._caller(depth_of_caller)
                place = self._callsites.get((id(frame.f_code), frame.f_lasti, key - frame.f_lasti))
                self.leave((self.scene.depth.inside, place, coast.same), result, depth_of_caller + 1)
        except Exception:
            self.scene.fail()
        finally:
            if aside:
                aside.close()

    # --- outermost calls ---------------------------------------------------------------------------------------

    def _look(self, module: Any, frame: FrameType) -> CallSite:
        """Return the record of a place that calls a module, made at its first call and again at sampled steps."""
        scene = self.scene
        if frame.f_code.co_name == "__call__" and is_compiled(module):
            self._wrapper = frame.f_code
            frame = frame.f_back or frame
        key = (id(frame.f_code), frame.f_lasti, id(module))
        user = scene.sites.frame(3)
        inner = unwrapped(module)
        owner = self._called_directly(frame)
        inner = inner if owner is None else owner
        caller = scene.sites.immediate(frame)
        model = self._models.met(inner, user, "" if caller is user or owner is not None else type(inner).__name__)
        if owner is None:
            self._models.whole(module, frame, user)
        place = self._callsites.get(key)
        if place is None or place.model is not model:
            if len(self._callsites) > 4096:
                self._callsites.clear()
            dropped = caller is not None and scene.sites.result_dropped(caller)
            place = CallSite(model, scene.sites.at(user), dropped)
            if (
                scene.sampling.step
                and not self._grad_enabled()
                and not (getattr(inner, "training", True) and model.sensitive)
            ):
                tell_ensemble(scene, module, model.number, frame)
            loop = None if place.site is None else loop_around(place.site)
            if loop is not None:
                scene.emit(LoopRead(model=model.number, site=place.site, **loop._asdict()))
                place.last = None if loop.name or loop.trains or place.site is None else last_pass(place.site)
            if owner is None and (frame is user or frame.f_code.co_name in _CALLING):
                self._callsites[key] = place
                place.state = dropped_state(scene, place.site) if frame is user else None
                scene.sites.keep(frame.f_code)
        return place

    def _look_back(self, place: CallSite, frame: FrameType) -> None:
        """Emit the loop around a call if a variable holds a metric of the pass before."""
        last = place.last
        if last is not None and self.scene.sites.at(frame) == place.site and last.is_metric(self.scene.torch, frame):
            place.last = None
            found = LoopRead(model=place.model.number, name=last.name, use="read", place=last.place, site=place.site)
            self.scene.emit(found)

    def _called_directly(self, frame: FrameType) -> Any:
        """Return the module with a ``forward`` that user code calls directly; None in the ordinary case."""
        if frame.f_code.co_name != "forward":
            return None
        owner = argument(frame, "self")
        if not isinstance(owner, self._module):
            return None
        code = getattr(getattr(type(owner), "forward", None), "__code__", None)
        if code is not frame.f_code:
            return None
        caller = self.scene.sites.above(frame)
        site = self.scene.sites.at(caller)
        hooks = {
            name: len(getattr(owner, name, ()))
            for name in ("_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks")
        }
        kind = type(owner).__name__
        self.scene.tell(
            ForwardCalledDirectly,
            kind=kind,
            name=self._receiver(site, kind.lower()),
            hooks=sum(hooks.values()),
            hook_names=tuple(name.strip("_") for name, count in hooks.items() if count),
            site=site,
        )
        return owner


def _first_tensor(value: Any, tensor: type, depth: int = 0) -> Any:
    """Return the first tensor in a model's result that tracks gradients, else the first tensor."""
    if isinstance(value, tensor):
        return value
    if depth > 2:
        return None
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        value = vars(value).values() if hasattr(value, "__dict__") else ()
    found = None
    for item in list(value)[:16]:
        inner = _first_tensor(item, tensor, depth + 1)
        if inner is not None and inner.requires_grad:
            return inner
        found = found if found is not None else inner
    return found
