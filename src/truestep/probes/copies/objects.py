"""Copies of the program's objects, if copying has no effect on the program; otherwise an error with the reason."""

from __future__ import annotations

import copy
import functools
import types
from typing import Any

from truestep.probes.context.scene import Scene
from truestep.probes.copies.purity import Purity, functions_in

SMALL_BYTES = 64 << 20
_OF_FREE = 0.02
"""Share of the free memory of an accelerator that a copy may take, if that is more than the small size."""
_LEAST_FREE = 4
"""An accelerator with less free memory than so many small copies gets none."""
_MOST_OBJECTS = 50_000
_ATOMS = (int, float, complex, str, bytes, type(None), range, type)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Refused(Exception):
    """A check is not possible; the message is the reason, in a form that follows "not observed"."""


def copy_of(thing: Any, scene: Scene) -> Any:
    """Return a deep copy, which shares only code with the program.

    Raises:
        Refused: the object cannot be copied, or its code can have side effects.
    """
    walk = _Walk(scene)
    walk.run(thing)
    mind(scene)
    try:
        return copy.deepcopy(thing)
    except Exception as error:
        raise Refused(f"it cannot be copied: {type(error).__name__}") from None


def mind(scene: Scene) -> None:
    """Raise an error if checks and close reading have used their share of the time.

    Raises:
        Refused: no time is left.
    """
    if not scene.sampling.has_time():
        raise Refused("the check would exceed the budget of time")


def largest(torch: Any, kinds: set[str]) -> int:
    """Return the largest size of a copy on these kinds of devices, in bytes."""
    if "cuda" not in kinds:
        return SMALL_BYTES
    free, _ = torch.cuda.mem_get_info()
    return max(SMALL_BYTES, int(_OF_FREE * free)) if free > _LEAST_FREE * SMALL_BYTES else 0


class _Walk:
    """Visits all objects in a copy, and collects their code for `Purity`."""

    def __init__(self, scene: Scene) -> None:
        self._torch = scene.torch
        self._purity = Purity(scene.torch, lambda code: scene.sites.kind(code) == 0)
        self._seen: set[int] = set()
        self._alive: list[Any] = []
        self._bytes = 0
        self._devices = {"cpu"}

    def run(self, root: Any) -> None:
        todo = [root]
        while todo:
            thing = todo.pop()
            if isinstance(thing, _ATOMS) or id(thing) in self._seen:
                continue
            self._seen.add(id(thing))
            self._alive.append(thing)
            if len(self._seen) > _MOST_OBJECTS:
                raise Refused("it has too many parts to copy")
            todo.extend(self._inside(thing))
        if self._bytes > largest(self._torch, self._devices):
            raise Refused(f"it is too large to copy ({self._bytes >> 20:,} MiB)")
        reason = self._purity.judge()
        if reason:
            raise Refused(reason)

    def _inside(self, thing: Any) -> list[Any]:
        """Return the objects inside an object."""
        torch = self._torch
        if isinstance(thing, torch.Tensor):
            self._tensor(thing)
            return []
        if isinstance(thing, dict):
            self._own_class(thing)
            return [*thing.keys(), *thing.values()]
        if isinstance(thing, list | tuple | set | frozenset):
            self._own_class(thing)
            self._bytes += 8 * len(thing)
            return list(thing)
        if isinstance(thing, types.ModuleType | types.BuiltinFunctionType):
            self._purity.value(thing)
            return []
        if isinstance(thing, types.FunctionType | types.MethodType | functools.partial):
            for function in functions_in(thing):
                self._purity.function(function)
            if isinstance(thing, functools.partial):
                return [thing.func, *thing.args, *thing.keywords.values()]
            return [thing.__self__] if isinstance(thing, types.MethodType) else []
        self._purity.instance(thing)
        if isinstance(thing, torch.nn.Module):
            self._module(thing)
        size = getattr(thing, "nbytes", 0)
        self._bytes += size if isinstance(size, int) else 0
        held = getattr(thing, "__dict__", None)
        slots = [getattr(thing, name, None) for base in type(thing).__mro__ for name in _slots(base)]
        if not isinstance(held, dict):
            return slots
        if isinstance(thing, torch.nn.RNNBase):  # weak references to its weights, which a copy creates again
            held = {name: value for name, value in held.items() if name != "_flat_weight_refs"}
        return [*slots, *held.values()]

    def _own_class(self, thing: Any) -> None:
        if type(thing).__module__ not in ("builtins", "collections"):
            self._purity.instance(thing)

    def _tensor(self, tensor: Any) -> None:
        torch = self._torch
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
        if not plain or tensor.device.type not in ("cpu", "cuda") or tensor.layout is not torch.strided:
            raise Refused(f"it contains a {type(tensor).__name__} on {tensor.device.type} that cannot be copied")
        if tensor.is_quantized or not tensor.is_leaf:
            raise Refused("it contains a tensor that cannot be copied (quantized, or not a leaf)")
        if getattr(tensor, "_backward_hooks", None):
            raise Refused("it contains a tensor with hooks")
        self._bytes += tensor.numel() * tensor.element_size()
        self._devices.add(tensor.device.type)

    def _module(self, module: Any) -> None:
        if any(getattr(module, name, None) for name in _HOOKS):
            raise Refused("it has hooks")
        if module._compiled_call_impl is not None:
            raise Refused("it is compiled")


def _slots(base: type) -> tuple[str, ...]:
    names = vars(base).get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)
