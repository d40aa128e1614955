"""Tensors in variables that share the memory of trained ones: the same objects, or views of all their elements."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from truestep.probes.context.local_variables import own_dict
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import version
from truestep.probes.optimizer.sampled_measures import fingerprint
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_MOST_ITEMS = 4000
_DEEP = 3

Place = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""Storage, offset, shape and strides of a tensor."""


class Leaves:
    """The tensors with gradients that are trained: those of optimizers, those that a loss reaches, and inputs.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._inputs: dict[int, Ref] = {}

    def met(self, inputs: Iterable[Any]) -> None:
        """Remember the tensors that ``autograd.grad`` differentiates by."""
        if len(self._inputs) > _MOST_ITEMS:
            self._inputs = {key: ref for key, ref in self._inputs.items() if ref() is not None}
        for one in inputs:
            if is_plain(self._scene.torch, one) and one.is_leaf and len(self._inputs) <= _MOST_ITEMS:
                self._inputs[id(one)] = Ref(one)

    def places(self) -> dict[Place, Any]:
        """Return the memory of each of them; the caller must not keep the tensors."""
        found: dict[Place, Any] = {}
        refs = [*self._inputs.values(), *(held.ref for held in list(self._scene.ledger.by_id.values()))]
        for ref in refs:
            leaf: Any = ref()
            if is_plain(self._scene.torch, leaf) and leaf.requires_grad and leaf.is_leaf:
                found[place(leaf)] = leaf
        return found


def is_plain(torch: Any, held: Any) -> bool:
    """Return True for a tensor of torch's own classes, with numbers that can be trained, and memory to compare."""
    kind = type(held)
    if kind is not torch.Tensor and kind is not torch.nn.Parameter:
        return False
    if torch._C._functorch.is_functorch_wrapped_tensor(held):
        return False
    return bool(held.is_floating_point() and has_values(held) and held.numel())


def place(tensor: Any) -> Place:
    """Return the memory of a tensor, equal for another one that consists of the same elements."""
    return int(tensor.untyped_storage()._cdata), int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride()


def tensors_in(torch: Any, held: Any, deep: int = _DEEP) -> Iterator[Any]:
    """Yield the tensors of a variable: itself, or those in lists, tuples and dicts."""
    kind = type(held)
    if is_plain(torch, held):
        yield held
    elif deep:
        inside: Iterable[Any] = ()
        if kind is list or kind is dict:
            inside = held if kind is list else list(held.values())
        elif issubclass(kind, tuple):
            inside = tuple.__iter__(held)
        for count, one in enumerate(inside):
            if count == _MOST_ITEMS:
                return
            yield from tensors_in(torch, one, deep - 1)


def values_mark(tensor: Any, leaf: Any) -> tuple[object, ...]:
    """Return some values of a tensor on the CPU, else its versions: to know later whether it has changed."""
    return (*fingerprint(tensor),) if tensor.is_cpu else (version(tensor), version(leaf))


def held_at(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of a variable, an attribute of ``self``, or an entry with a constant key; None for others.

    No code of the program runs: only own dictionaries, and Python's own containers, are read.
    """
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return (own_dict(names.get("self")) or {}).get(name)
        case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
            held = held_at(owner, names)
            if type(held) is dict and type(key) in (str, int):
                return held.get(key)
            if type(held) in (list, tuple) and type(key) is int and key < len(held):
                return held[key]
    return None
