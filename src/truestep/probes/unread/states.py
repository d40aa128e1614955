"""States of a recurrent model that are dropped: each call of a loop begins from the same one."""

from __future__ import annotations

from collections import deque
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep.events import Site, ValueUnread
from truestep.probes.context.local_variables import argument
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import version
from truestep.probes.unread.returned_states import returns_state
from truestep.probes.unread.state_loops import StateLoop, state_loop
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_ENOUGH = 4
"""Calls in a row from the same state."""
_MOST_LOOKS = 64
_LARGEST = 1 << 16
_KEEPING = (dict, list, tuple, deque)


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
        self._step: tuple[Any, Any] | None = None
        self.open = True

    def begin(self, frame: FrameType, args: tuple[Any, ...]) -> None:
        """Keep weak references to the input and the possible states of a call that begins."""
        tensor = self._scene.torch.Tensor
        found: dict[str, Any] = {}
        for name, _ in self._loop.states:
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
        )

    def end(self, module: Any, result: Any) -> None:
        """Count a call that returned if it began from the same state as the one before, and returned another one."""
        begun, self._step = self._step, None
        given = begun[0]() if begun is not None and begun[0] is not None else None
        if begun is None or given is None or type(result) is not tuple or len(result) <= max(self._loop.dropped):
            self._calls = 0
            return
        parts = [(place, _first(result[place], self._scene.torch.Tensor)) for place in self._loop.dropped]
        for at, part in parts:
            if part is None or not part.is_floating_point() or part.dim() < 2 or not _is_one_step(given, part):
                continue
            if _are_shares(part) or _keeps_state(module, part):
                continue
            alike = {name: ref() for name, ref in begun[1].items()}
            alike = {name: held for name, held in alike.items() if held is not None and held.shape == part.shape}
            for name, place in self._loop.states:
                held = alike.get(name)
                if held is not None and _is_another(part, held) and self._returns(module, place, at):
                    self._count(name, held, given)
                    return
        self._calls = 0

    def _returns(self, module: Any, place: int | str, part: int) -> bool:
        """Return True if a part of the result of a module is surely the next one of the state that it got."""
        kinds = self._scene.torch.nn.RNNBase, self._scene.torch.nn.RNNCellBase
        if isinstance(module, kinds) and type(module).__module__.startswith("torch.nn."):
            return place in (1, "hx") and (part == 1 or isinstance(module, kinds[1]))
        code = getattr(getattr(type(module), "forward", None), "__code__", None)
        recurrent = any(isinstance(one, kinds) for one in module.modules())
        return isinstance(code, CodeType) and returns_state(code, place, part, recurrent=recurrent)

    def _count(self, name: str, held: Any, given: Any) -> None:
        known = self._held() if self._held is not None else None
        now = version(held)
        same = self._calls and name == self._name and known is held and now == self._version
        if same and self._given is not None and self._given() is given:  # the same input again
            return
        self._calls = self._calls + 1 if same else 1
        self._name, self._held, self._version = name, Ref(held), now
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
    """Return True if a module keeps a tensor of the form of a state: it may carry the state itself."""
    tensor = type(part)
    held = [one for inner in module.modules() for one in (*vars(inner).values(), *inner._buffers.values())]
    inside = [one for kept in held if type(kept) in _KEEPING for one in (kept.values() if type(kept) is dict else kept)]
    found = (_first(one, tensor) for one in (*held, *inside))
    return any(one is not None and one.shape == part.shape for one in found)
