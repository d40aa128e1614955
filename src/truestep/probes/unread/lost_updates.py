"""Tensors of a training that keep their values, since their updates are bound to the variable of a loop.

Looks when gradients are taken. The source shows such loops, in the functions on the stack and in those that each pass
calls; the tensors that they go over show whether the values are lost.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from truestep.events import Site, ValueUnread
from truestep.probes.context.local_variables import variables
from truestep.probes.context.values import has_values
from truestep.probes.forward.mask_switches import MaskSwitches
from truestep.probes.optimizer.sampled_measures import fingerprint
from truestep.probes.unread.bound_updates import BOUNDS, BoundUpdate, Source, reached
from truestep.probes.unread.effects import parts_of
from truestep.probes.variables.origins import resolved
from truestep.seams.tracing import Aside

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_FRAMES = 4
_ENOUGH = 4
"""Looks with the same values."""
_LOOKS = frozenset((0, 3, *(2**power for power in range(15))))
"""Calls of ``autograd.grad`` at a line at which the variables are read."""
_MOST = 64
_LARGEST = 1 << 22


@dataclass(slots=True)
class _Watched:
    """A variable of a loop, over the looks."""

    kept: list[list[str]] = field(default_factory=list)
    """Values of the tensors at the latest look."""
    others: list[list[str]] = field(default_factory=list)
    """Values of the tensors that the loop writes."""
    same: int = 0
    moved: bool = False
    """True if the tensors that the loop writes have changed meanwhile."""
    closed: bool = False


class LostUpdates:
    """Emits `ValueUnread`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._watched: dict[Site, _Watched] = {}
        self._calls: dict[int, int] = {}
        self._masks = MaskSwitches(scene)

    def taken(self, site: Site | None, frame: FrameType | None) -> None:
        """Look at some of the calls of ``autograd.grad`` at a line."""
        calls = self._calls.get(id(site), 0)
        self._calls[id(site)] = calls + 1
        if calls in _LOOKS and self._scene.active:
            with self._scene.sampling.timed(None):
                self.look(frame)

    def look(self, frame: FrameType | None) -> None:
        """Look at the loops that every pass reaches from a user's frame and from those outwards."""
        with Aside():
            frames = self._scene.sites.users(frame)[:_FRAMES]
            for one in frames:
                self._frame(one)
            self._masks.look(frames)

    def _frame(self, frame: FrameType) -> None:
        found = reached(frame.f_code, frame.f_lineno)
        if not found.updates and not found.calls:
            return
        names: dict[str, Any] | None = None
        if found.updates:
            names = _names(frame)
            self._examine(found.updates, names)
        for call in found.calls:
            called = _function(resolved(call.func, frame.f_globals if names is None else names))
            if called is None and names is None and _is_local(call.func, frame.f_code):
                names = _names(frame)
                called = _function(resolved(call.func, names))
            if called is None or self._scene.sites.kind(called[0].__code__) != 0:
                continue
            inner = reached(called[0].__code__, 0).updates
            if inner:
                names = _names(frame) if names is None else names
                self._examine(inner, _arguments(call, *called, names))

    def _examine(self, updates: tuple[BoundUpdate, ...], names: dict[str, Any]) -> None:
        for one in updates:
            watched = self._watched.setdefault(one.place, _Watched())
            if not watched.closed:
                held = self._tensors(one.own, names)
                if held and self._is_lost(one, watched, held, names):
                    watched.closed = True
                    self._scene.emit(ValueUnread(name=one.name, kind="update", site=one.place))

    def _is_lost(self, one: BoundUpdate, watched: _Watched, held: list[Any], names: dict[str, Any]) -> bool:
        """Return True if enough looks have shown that a tensor does not get its new values."""
        if isinstance(one.value, ast.Call) and isinstance(one.value.func, ast.Attribute):
            if one.value.func.attr in BOUNDS:
                outside = not one.read and all(tensor.requires_grad for tensor in held)
                watched.same = watched.same + 1 if outside and _exceeds(one.value, held, names) else 0
                return watched.same >= _ENOUGH
        others = [tensor for written in one.written for tensor in self._tensors(written, names)]
        kept, moving = [fingerprint(tensor) for tensor in held], [fingerprint(tensor) for tensor in others]
        same = kept == watched.kept and all(kept)
        moves = len(moving) == len(watched.others) and moving != watched.others
        watched.moved = same and (watched.moved or moves)
        watched.same = watched.same + 1 if same else 0
        watched.kept, watched.others = kept, moving
        if one.read:  # a state, such as a velocity: it begins with zeros, and the parameters move without it
            shapes = {tuple(tensor.shape) for tensor in others}
            zero = all(not tensor.requires_grad and tuple(tensor.shape) in shapes for tensor in held)
            return zero and watched.moved and watched.same >= _ENOUGH - 1 and not any(map(_has_any, held))
        trained = all(tensor.requires_grad and tensor.is_leaf for tensor in held)
        return trained and one.gradient and watched.same >= _ENOUGH - 1

    def _tensors(self, own: Source, names: dict[str, Any]) -> list[Any]:
        """Return the tensors that a variable of a loop goes over; [] if there is anything else."""
        torch = self._scene.torch
        found = list(_items(own, names, torch))[:_MOST]
        kinds = torch.Tensor, torch.nn.Parameter
        small = all(type(one) in kinds and one.is_cpu and 0 < one.numel() <= _LARGEST for one in found)
        return found if small and all(map(has_values, found)) else []


def _names(frame: FrameType) -> dict[str, Any]:
    return {**frame.f_globals, **variables(frame)}


def _is_local(node: ast.expr, code: CodeType) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in (*code.co_varnames, *code.co_freevars, *code.co_cellvars)


def _function(called: Any) -> tuple[FunctionType, Any] | None:
    """Return the function of a call below its decorators, and the object of a method; None for another object."""
    owner = called.__self__ if type(called) is MethodType else None
    called = called.__func__ if type(called) is MethodType else called
    while type(called) is FunctionType and "__wrapped__" in vars(called):
        called = vars(called)["__wrapped__"]
    return (called, owner) if type(called) is FunctionType else None


def _arguments(call: ast.Call, called: FunctionType, owner: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Return the names that a function reads, with the arguments of a call as far as they are known."""
    code = called.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = {name: value for name, value in called.__globals__.items() if name not in code.co_varnames}
    given = list(call.args)
    if any(isinstance(one, ast.Starred) for one in given):
        return found
    # A method that is resolved in its class has no object yet: the call names it.
    bound = owner is not None or (isinstance(call.func, ast.Attribute) and parameters[:1] == ("self",))
    if bound and parameters and isinstance(call.func, ast.Attribute):
        found[parameters[0]] = resolved(call.func.value, names)
    pairs = [*zip(parameters[bound:], given, strict=False), *((one.arg, one.value) for one in call.keywords if one.arg)]
    for name, node in pairs:
        found[name] = _value(node, names)
    return found


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Tuple | ast.List):
        return [_value(one, names) for one in node.elts]
    return resolved(node, names)


def _items(own: Source, names: dict[str, Any], torch: Any) -> Iterator[Any]:
    """Yield the objects that a variable of a loop goes over, without code of the program; None for an unknown one."""
    node = own.held
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters":
        owner = resolved(node.func.value, names)
        if issubclass(type(owner), torch.nn.Module):
            for part in parts_of(owner):
                yield from (one for one in part.__dict__["_parameters"].values() if one is not None)
        return
    held = _value(node, names)
    values: Any = ()
    if type(held) is dict and own.keyed:
        values = held.values()
    elif type(held) in (list, tuple) and not own.keyed:
        values = held
    for one in values:
        unpacked = own.part is not None and type(one) in (list, tuple) and own.part < len(one)
        yield one[own.part] if unpacked else one if own.part is None else None


def _has_any(tensor: Any) -> bool:
    return bool(tensor.detach().any())


def _exceeds(call: ast.Call, held: list[Any], names: dict[str, Any]) -> bool:
    """Return True if a tensor has values out of the bounds that a call of ``clamp`` gives."""
    method = isinstance(call.func, ast.Attribute) and call.func.attr
    given = dict(zip(_bounds_of(method), _bounds(call), strict=False))
    given |= {word.arg: word.value for word in call.keywords if word.arg}
    low, high = (_number(given.get(name), names) for name in ("min", "max"))
    for tensor in held:
        values = tensor.detach()
        if (low is not None and bool((values < low).any())) or (high is not None and bool((values > high).any())):
            return True
    return False


def _bounds_of(method: str | bool) -> tuple[str, ...]:
    return ("max",) if method == "clamp_max" else ("min", "max")


def _bounds(call: ast.Call) -> list[ast.expr]:
    """Return the arguments behind the tensor: ``p.clamp(a, b)`` and ``torch.clamp(p, a, b)``."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    of_torch = isinstance(owner, ast.Name) and owner.id == "torch"
    return call.args[1:] if of_torch else call.args


def _number(node: ast.expr | None, names: dict[str, Any]) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        negated = _number(node.operand, names)
        return None if negated is None else -negated
    value: Any = node.value if isinstance(node, ast.Constant) else None if node is None else resolved(node, names)
    return float(value) if type(value) in (int, float) else None
