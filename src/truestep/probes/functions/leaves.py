"""Trained tensors that a call of a function can use: in its arguments, its object, and variables around it."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

from truestep.probes.context.local_variables import own_dict

_DEEP = 3
_MOST_ITEMS = 64


def has_leaves(torch: Any, value: object, depth: int = _DEEP) -> bool:
    """Return True if a value is a tensor that is trained, or a container or an object of the program with one."""
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return bool(value.requires_grad and value.is_leaf)  # type: ignore[attr-defined]
    return depth > 0 and any(has_leaves(torch, one, depth - 1) for one in _items(value))


def around(torch: Any, function: FunctionType) -> bool:
    """Return True if a function uses trained tensors of an enclosing function or of its file."""
    return any(has_leaves(torch, value) for value in _variables(function).values())


def leaves_of(torch: Any, function: FunctionType, given: dict[str, Any]) -> dict[str, Any]:
    """Return the trained tensors that a call can use, by their places, such as "weights['w0']".

    Args:
        torch: the module.
        function: the function.
        given: the arguments of the call by their names.
    """
    held = given | _variables(function)
    return {place: leaf for name, value in held.items() for place, leaf in _placed(torch, value, name, _DEEP)}


def _variables(function: FunctionType) -> dict[str, Any]:
    """Return the variables of enclosing functions and of its file that a function uses, without functions."""
    code = function.__code__
    held: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            held[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    held |= {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    return {name: value for name, value in held.items() if not isinstance(value, FunctionType)}


def _placed(torch: Any, value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        if value.requires_grad and value.is_leaf:
            yield name, value
    elif depth and issubclass(kind, dict):
        for key, one in list(dict.items(value))[:_MOST_ITEMS]:
            yield from _placed(torch, one, f"{name}[{key!r}]", depth - 1)
    elif depth:
        for place, one in enumerate(_items(value)):
            yield from _placed(torch, one, f"{name}[{place}]", depth - 1)


def _items(value: Any) -> Iterator[object]:
    kind = type(value)
    if kind in (list, tuple) or (issubclass(kind, tuple) and "_fields" in vars(kind)):
        yield from tuple.__iter__(value) if issubclass(kind, tuple) else value[:_MOST_ITEMS]
    elif issubclass(kind, dict):
        yield from list(dict.values(value))[:_MOST_ITEMS]
    else:
        yield from list((own_dict(value) or {}).values())[:_MOST_ITEMS]
