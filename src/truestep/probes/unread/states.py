"""States of a recurrent model that are dropped: each call of a loop begins from the same one."""

from __future__ import annotations

import re
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep.events import Site, ValueUnread
from truestep.probes.context.local_variables import argument
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import version
from truestep.probes.unread.state_loops import StateLoop, state_loop
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_ENOUGH = 4
"""Calls in a row from the same state."""
_MOST_LOOKS = 64
_LARGEST = 1 << 16
_STATE = re.compile(r"(^|_)(h|hx|hc|hidden|states?)\d*($|_)")


class DroppedState:
    """The calls at a place in a loop, which drops the state that they return; emits `ValueUnread` once."""

    __slots__ = (
        "_calls",
        "_given",
        "_held",
        "_looks",
        "_loop",
        "_name",
        "_scene",
        "_site",
        "_step",
        "_version",
        "open",
    )

    def __init__(self, scene: Scene, site: Site, loop: StateLoop) -> None:
        self._scene, self._site, self._loop = scene, site, loop
        self._held: Ref | None = None
        self._version = -1
        self._given: Ref | None = None
        self._name = ""
        self._calls = self._looks = 0
        self._step: tuple[Any, Any, Any] | None = None
        self.open = True

    def begin(self, frame: FrameType, args: tuple[Any, ...]) -> None:
        """Keep weak references to the input and the possible states of a call that begins."""
        tensor = self._scene.torch.Tensor
        found: dict[str, Any] = {}
        for name in self._loop.states:
            held = _first(argument(frame, name), tensor)
            if held is not None and held.is_floating_point():
                found[name] = held
        given = next(
            (one for one in args if type(one) is tensor and all(one is not held for held in found.values())), None
        )
        self._looks += 1
        self.open = self._looks < _MOST_LOOKS
        self._step = (
            None if given is None else Ref(given),
            {name: Ref(held) for name, held in found.items()},
            len(args),
        )

    def end(self, module: Any, result: Any) -> None:
        """Count a call that returned if it began from the same state as the one before, and returned another one."""
        begun, self._step = self._step, None
        given = begun[0]() if begun is not None and begun[0] is not None else None
        if begun is None or given is None or type(result) is not tuple or len(result) <= max(self._loop.dropped):
            self._calls = 0
            return
        parts = [_first(result[place], self._scene.torch.Tensor) for place in self._loop.dropped]
        for part in (one for one in parts if one is not None and one.is_floating_point() and one.dim() > 1):
            if not _is_one_step(given, part) or _are_shares(part) or _keeps_state(module, part):
                continue
            alike = {name: ref() for name, ref in begun[1].items()}
            alike = {name: held for name, held in alike.items() if held is not None and held.shape == part.shape}
            exact = part.is_cpu and not given.is_floating_point()
            for name, held in alike.items():
                if _is_another(part, held) and (exact or _STATE.search(name) or self._is_recurrent(module)):
                    self._count(name, held, given)
                    return
            if not alike and self._loop.fed and _has_state_left(module, begun[2], self._loop.given):
                self._count("", None, given)
                return
        self._calls = 0

    def _is_recurrent(self, module: Any) -> bool:
        kinds = self._scene.torch.nn.RNNBase, self._scene.torch.nn.RNNCellBase
        return any(isinstance(one, kinds) for one in module.modules())

    def _count(self, name: str, held: Any, given: Any) -> None:
        known = self._held() if self._held is not None else None
        now = -1 if held is None else version(held)
        same = self._calls and name == self._name and known is held and now == self._version
        if same and self._given is not None and self._given() is given:  # the same input again
            return
        self._calls = self._calls + 1 if same else 1
        self._name, self._held, self._version = name, None if held is None else Ref(held), now
        self._given = Ref(given)
        if self._calls >= _ENOUGH:
            self.open = False
            self._scene.emit(ValueUnread(name=name, kind="state", size=self._calls, site=self._site))


def dropped_state(scene: Scene, site: Site | None) -> DroppedState | None:
    """Return the watch of the calls at a site; None unless its loop drops a state."""
    loop = None if site is None else state_loop(site)
    return None if loop is None or site is None else DroppedState(scene, site, loop)


class InnerCall(NamedTuple):
    """A call inside of a model, in a loop that drops a state."""

    followed: Any
    state: DroppedState
    module: Any


class InnerStates:
    """The loops inside of models that drop a state, at sampled steps."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._places: dict[Site, DroppedState | None] = {}

    def begins(self, frame: FrameType, args: tuple[Any, ...]) -> DroppedState | None:
        """Return the watch of the call that begins in this frame; None in the ordinary case."""
        sites = self._scene.sites
        site = sites.at(frame) if sites.kind(frame.f_code) == 0 else None
        if site is None:
            return None
        if site not in self._places:
            self._places[site] = dropped_state(self._scene, site)
        state = self._places[site]
        if state is None or not state.open:
            return None
        state.begin(frame, args)
        return state


def _first(value: Any, tensor: type) -> Any:
    """Return a tensor, or the first of several; None for anything else."""
    if type(value) in (tuple, list) and value:
        value = value[0]
    return value if type(value) is tensor else None


def _is_one_step(given: Any, state: Any) -> bool:
    """Return True if an input has one value, or one row of them, for each row of the state."""
    rows = (
        given.numel()
        if not given.is_floating_point()
        else given.numel() // max(1, given.shape[-1] if given.dim() else 1)
    )
    return bool(rows == state.shape[-2])


def _is_another(part: Any, held: Any) -> bool:
    """Return True if two tensors have different values; those of a device are not read."""
    if part is held:
        return False
    if not part.is_cpu or not held.is_cpu or part.numel() > _LARGEST:
        return True
    return has_values(part) and has_values(held) and not bool((part == held).all())


def _are_shares(part: Any) -> bool:
    """Return True if rows sum to one, as weights of attention do."""
    if not part.is_cpu or part.numel() > _LARGEST or not has_values(part):
        return False
    detached = part.detach()
    return bool((detached >= 0).all()) and bool(((detached.sum(-1) - 1).abs() < 1e-3).all())


def _keeps_state(module: Any, part: Any) -> bool:
    """Return True if a module has a tensor of the form of a state as an attribute: it may carry the state itself."""
    tensor = type(part)
    kept = [held for one in module.modules() for held in (*vars(one).values(), *one._buffers.values())]
    return any(held is not None and held.shape == part.shape for held in (_first(one, tensor) for one in kept))


def _has_state_left(module: Any, passed: int, given: tuple[str, ...]) -> bool:
    """Return True if the module takes a state, which the call leaves out."""
    forward = getattr(type(module), "forward", None)
    code, defaults = getattr(forward, "__code__", None), getattr(forward, "__defaults__", None) or ()
    if not isinstance(code, CodeType):
        return False
    names = code.co_varnames[: code.co_argcount]
    optional = zip(names[len(names) - len(defaults) :], defaults, strict=True)
    left = {name for name, value in optional if value is None and name not in names[: passed + 1]}
    return any(_STATE.search(name) for name in left - set(given)) and "**" not in given
