"""Results that a training makes in each step and never reads: a mask that is not applied, a value that is dropped.

The source of the functions on the stack shows the names, the frames show their values: at the backward pass, at a call
of a model and inside of it, and at a loss. Only sampled steps are read.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from truestep.events import Site, ValueUnread
from truestep.probes.context.local_variables import variables
from truestep.probes.context.values import has_values
from truestep.probes.unread.attributes import LostAttributes
from truestep.probes.unread.effects import is_pure, owner_of
from truestep.probes.unread.masks import calls, passed
from truestep.probes.unread.rebound import is_descent
from truestep.probes.unread.statements import Unread, unread
from truestep.seams.code.functions import code_of
from truestep.seams.refs import Ref
from truestep.seams.tracing import Aside

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_FRAMES = 4
_CHANGES = 3
"""Steps in a row with another value of a variable, after which it is made in each step."""
_LEAST_ROWS = 8
_MOST_CLASSES = 1000
_LARGEST = 1 << 22
_CHOICES = {"argmax", "argmin", "max", "min", "sum", "bincount", "unique", "topk", "sort", "argsort", "numel", "eq"}
"""Operations that make whole numbers to look at."""
_MOVES = {"to", "cuda", "cpu", "long", "int", "contiguous"}
"""Methods that return the same values in another place or type."""
_NEW = {"zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "clone"}
_OUT_OF_PLACE = {"view", "reshape", "permute", "flip", "roll", "repeat", "expand", "softmax", "log_softmax"}
"""Methods of tensors that return a new one, and have no form that writes in place."""


@dataclass(slots=True)
class _Watched:
    """A statement, over the steps that were read."""

    ref: Ref | None = None
    step: int = -1
    changes: int = 0
    same: int = 0
    pure: bool | None = None
    closed: bool = False


class UnreadValues:
    """Emits `ValueUnread`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._watched: dict[Unread, _Watched] = {}
        self._attributes = LostAttributes(scene)
        self._masks: dict[Site, _Watched] = {}
        """Masks that a function gets and never reads, by the parameter."""

    def look(self, frame: FrameType | None, *, depth: int = _FRAMES, backward: bool = False) -> None:
        """Look at the variables of a user's frame and of those outwards, at a sampled step.

        Args:
            frame: the frame.
            depth: number of frames.
            backward: True at a backward pass: a statement that is under way then trains.
        """
        scene = self._scene
        with Aside():
            if backward:
                self._attributes.look()
            while frame is not None and depth:
                if scene.sites.kind(frame.f_code) == 0:
                    depth -= 1
                    self._frame(frame, backward)
                frame = frame.f_back

    def _frame(self, frame: FrameType, backward: bool) -> None:
        function = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED)
        if not function and frame.f_globals.get("__name__") != "__main__":
            return
        found, passing = unread(frame.f_code), calls(frame.f_code)
        if not found and not passing:
            return
        own = variables(frame) if function else frame.f_globals
        names = {**frame.f_globals, **own} if own else {}
        for call in passing if own else ():
            for name, place in passed(call, names, self._scene.torch):
                self._passed(name, place)
            self._called(names.get(call.function), names)
        for one in found if own else ():
            watched = self._watched.setdefault(one, _Watched())
            if not watched.closed and one.lines[0] <= frame.f_lineno <= one.lines[1]:
                watched.closed = backward
            elif not watched.closed:
                self._examine(one, watched, own, names)

    def _passed(self, name: str, place: Site) -> None:
        """Count the steps with a mask that a function does not read."""
        watched, step = self._masks.setdefault(place, _Watched()), self._scene.sampling.step
        watched.changes += step != watched.step
        watched.step = step
        if watched.changes >= _CHANGES and not watched.closed:
            watched.closed = True
            self._scene.emit(ValueUnread(name=name, kind="argument", site=place))

    def _called(self, function: Any, names: dict[str, Any]) -> None:
        """Judge the updates of a function of the program that runs after the backward pass, by its source."""
        code = code_of(function) if type(function) is FunctionType else None
        if code is not None and self._scene.sites.kind(code) == 0:
            for one in unread(code):
                watched = self._watched.setdefault(one, _Watched())
                if one.rebound and not watched.closed and (one.lost or is_descent(one.value, one.names[0])):
                    self._dropped(one, watched, names)

    def _examine(self, one: Unread, watched: _Watched, own: dict[str, Any], names: dict[str, Any]) -> None:
        if not one.names or (one.rebound and (one.lost or is_descent(one.value, one.names[0]))):
            self._dropped(one, watched, names)
            return
        if one.rebound and one.names[0] not in own:
            return
        if one.written and not _is_new(one.value):
            watched.closed = True
            return
        if one.names[0] not in own:
            self._later(one, watched, names)
            return
        value = self._first(own[one.names[0]])
        kind = "" if value is None else self._kind(value, one)
        if value is None or not kind:
            return
        if kind == "sampler":
            watched.pure = True
        step = self._scene.sampling.step
        if watched.pure is None:
            watched.pure = is_pure(one.value, names, self._scene.torch) and not self._is_shared(value, one, own)
        if not watched.pure:
            watched.closed = True
            return
        if watched.ref is None or watched.ref() is not value:
            if watched.step != step:  # several values of one step count once
                watched.changes = watched.changes + 1 if one.rebound or watched.step == step - 1 else 0
            watched.ref, watched.step, watched.same = Ref(value), step, 0
        elif watched.step < step:
            watched.same += 1
        if watched.changes >= _CHANGES:
            watched.closed = True
            self._tell(one, "rebound" if one.rebound else kind)
        elif one.once and watched.same >= _CHANGES:
            watched.closed = True
            kind = "weights" if kind == "values" and _are_weights(value) else kind
            if kind in ("sampler", "weights") or (kind == "mask" and value.numel() >= _LEAST_ROWS):
                self._tell(one, kind, again=False, size=len(value) if kind == "weights" else 0)

    def _later(self, one: Unread, watched: _Watched, names: dict[str, Any]) -> None:
        """Judge a product with a tensor, in a function that returns before its value can be read."""
        step, tensor, product = self._scene.sampling.step, self._scene.torch.Tensor, one.value
        if one.guarded or one.written or not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
            return
        sides = [names.get(node.id) for node in ast.walk(product) if isinstance(node, ast.Name)]
        wide = any(side is not None and issubclass(type(side), tensor) and side.numel() > 1 for side in sides)
        if step == watched.step or not wide:
            return
        watched.same = watched.same + 1 if is_pure(product, names, self._scene.torch) else 0
        watched.step = step
        if watched.same > _CHANGES:
            watched.closed = True
            self._tell(one, "values")

    def _tell(self, one: Unread, kind: str, *, again: bool = True, size: int = 0) -> None:
        event = ValueUnread(name=", ".join(one.names), kind=kind, again=again, size=size, site=one.place)
        self._scene.emit(event)

    # --- values ------------------------------------------------------------------------------------------------

    def _first(self, value: Any) -> Any:
        """Return the tensor of a variable, or the first of several, or a sampler; None for anything else."""
        tensor = self._scene.torch.Tensor
        if issubclass(type(value), self._scene.torch.utils.data.Sampler):  # without code of the object
            return value
        if type(value) is dict:
            value = list(value.values())
        if type(value) in (list, tuple) and value and all(type(part) is tensor for part in value):
            value = value[0] if value[0].numel() > 1 or value[0].requires_grad else None
        return value if type(value) is tensor else None

    def _kind(self, value: Any, one: Unread) -> str:
        torch = self._scene.torch
        if type(value) is not torch.Tensor:
            return "sampler"
        if value.requires_grad:
            return "graph" if value.grad_fn is not None else ""
        if value.numel() < 2 or value.numel() > _LARGEST or not has_values(value):
            return ""
        if value.dtype is torch.bool:
            return "mask" if value.is_cpu and bool(value.any()) and not bool(value.all()) else ""
        if value.is_floating_point():
            return "values"
        counted = any(isinstance(node, ast.Attribute) and node.attr in _CHOICES for node in ast.walk(one.value))
        return "" if counted or value.is_complex() or _is_moved(one.value) else "values"

    def _is_shared(self, value: Any, one: Unread, own: dict[str, Any]) -> bool:
        """Return True if another variable has the memory of a value: it is another name for a value that is read."""
        tensor = self._scene.torch.Tensor
        place = value.untyped_storage().data_ptr()
        others: Iterable[Any] = (held for name, held in own.items() if name not in one.names)
        return any(type(held) is tensor and _memory(held) == place for held in others)

    # --- expressions alone -------------------------------------------------------------------------------------

    def _dropped(self, one: Unread, watched: _Watched, names: dict[str, Any]) -> None:
        """Judge an expression that is a statement: does it only return a tensor?"""
        torch, value = self._scene.torch, one.value
        if one.rebound:
            made, name = True, "rebound"
        elif isinstance(value, ast.BinOp):
            operands = [names.get(node.id) for node in ast.walk(value) if isinstance(node, ast.Name)]
            made = any(type(operand) is torch.Tensor for operand in operands)
            name = ""
        else:
            made, name = self._returns_only(value, names)
        if made and is_pure(value, names, torch):
            # No optimizer may step in a program that loses its updates.
            watched.changes += one.rebound or watched.step != self._scene.sampling.step
            watched.step = self._scene.sampling.step
            if watched.changes >= _CHANGES:
                watched.closed = True
                self._tell(one, name or "expression")

    def _returns_only(self, call: ast.expr, names: dict[str, Any]) -> tuple[bool, str]:
        """Return True for a method or a function of torch that returns a new tensor, and its name."""
        torch = self._scene.torch
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return False, ""
        name = call.func.attr
        if not hasattr(torch.Tensor, name + "_") and name not in _OUT_OF_PLACE:
            return False, ""
        held = owner_of(call.func.value, names, torch)
        if (held is torch or held is torch.nn.functional) and call.args:
            held = owner_of(call.args[0], names, torch)
        return type(held) in (torch.Tensor, torch.nn.Parameter), name


def _is_new(value: ast.expr) -> bool:
    """Return True if a value is new memory, which no other variable has."""
    func = value.func if isinstance(value, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr in _NEW


def _is_moved(value: ast.expr) -> bool:
    """Return True for a part of a batch in another place: labels that a training has no use for.

    >>> [_is_moved(ast.parse(text, mode="eval").body) for text in ("y.to(device)", "batch[1].long().cuda()", "y + 1")]
    [True, True, False]
    """
    moved = False
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MOVES:
        value, moved = value.func.value, True
    return moved and isinstance(value, ast.Name | ast.Subscript | ast.Attribute)


def _are_weights(value: Any) -> bool:
    """Return True if values are a row of positive numbers that are not all equal."""
    if value.dim() != 1 or not value.is_cpu or len(value) > _MOST_CLASSES:
        return False
    return bool((value > 0).all()) and bool((value != value[0]).any())


def _memory(tensor: Any) -> int:
    try:
        return int(tensor.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):
        return 0
