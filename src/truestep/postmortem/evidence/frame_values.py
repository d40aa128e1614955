"""Values in frames, read without running code of the program: no properties, no repr, no comparison."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

MISSING: Any = object()
_SENTINEL = object()
_PLAIN = (torch.Tensor, nn.Parameter, nn.parameter.Buffer)
_CONTAINERS = (list, tuple, dict)
_MOST_ITEMS = 10_000


def is_tensor(value: object) -> bool:
    """Return True if a value's type is a tensor class of torch: reading its attributes runs no code of the program."""
    return type(value) in _PLAIN


def is_module(value: object) -> bool:
    return issubclass(type(value), nn.Module)


def is_optimizer(value: object) -> bool:
    return issubclass(type(value), torch.optim.Optimizer)


def attributes(value: object) -> dict[str, Any]:
    """Return the instance `__dict__` of an object; {} if its class customizes attribute storage."""
    if any(
        "__dict__" in vars(kind) and not inspect.isgetsetdescriptor(vars(kind)["__dict__"]) for kind in _kinds(value)
    ):
        return {}
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _kinds(value: object) -> tuple[type, ...]:
    return type.__dict__["__mro__"].__get__(type(value))  # type: ignore[no-any-return]


def attribute(value: Any, name: str) -> Any:
    """Return an attribute stored in an object, a module or a namespace; `MISSING` for anything computed."""
    own = attributes(value)
    if name in own:
        return own[name]
    if is_module(value):
        for family in ("_parameters", "_buffers", "_modules"):
            if type(own.get(family)) is dict and name in own[family]:
                return own[family][name]
        return MISSING
    found = inspect.getattr_static(value, name, _SENTINEL) if not isinstance(value, type) else _SENTINEL
    return MISSING if found is _SENTINEL or hasattr(type(found), "__get__") else found


def evaluate(node: ast.AST | None, names: dict[str, Any]) -> Any:
    """Return the value of a name, of its attributes, or of an item of a plain container; else `MISSING`."""
    match node:
        case ast.Name():
            return names.get(node.id, MISSING)
        case ast.Attribute():
            owner = evaluate(node.value, names)
            return MISSING if owner is MISSING else attribute(owner, node.attr)
        case ast.Subscript(slice=ast.Constant(value=int() | str() as key)):
            owner = evaluate(node.value, names)
            if type(owner) is dict:
                return owner.get(key, MISSING)
            if type(owner) in (list, tuple) and isinstance(key, int):
                return owner[key] if -len(owner) <= key < len(owner) else MISSING
            if is_module(owner) and type(owner) in (nn.Sequential, nn.ModuleList) and isinstance(key, int):
                parts = list(children(owner).values())
                return parts[key] if -len(parts) <= key < len(parts) else MISSING
            return MISSING
        case _:
            return MISSING


def children(module: Any) -> dict[str, Any]:
    """Return the direct submodules of a module."""
    return _registered(module, "_modules")


def parameters(module: Any) -> dict[str, Any]:
    """Return the direct parameters of a module."""
    return _registered(module, "_parameters")


def _registered(module: Any, table: str) -> dict[str, Any]:
    found = attributes(module).get(table)
    return {name: part for name, part in found.items() if part is not None} if type(found) is dict else {}


def tree(module: Any, name: str = "", *, most: int = 20_000) -> Iterator[tuple[str, Any]]:
    """Yield a module and all its submodules, each once, with qualified names."""
    seen = {id(module)}
    todo = [(name, module)]
    while todo and len(seen) < most:
        path, one = todo.pop()
        yield path, one
        for key, part in reversed(list(children(one).items())):
            if id(part) not in seen:
                seen.add(id(part))
                todo.append((f"{path}.{key}" if path else key, part))


def held(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the tensors in variables: directly, in plain containers, or as attributes of the program's objects."""
    for name, value in names.items():
        yield from _inside(name, value, 2)


def _inside(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if is_tensor(value):
        yield name, value
    elif depth and type(value) in _CONTAINERS:
        items = list(value.items()) if type(value) is dict else list(enumerate(value))
        for key, item in items[-_MOST_ITEMS:]:
            if type(key) in (int, str):
                yield from _inside(f"{name}[{key!r}]", item, depth - 1)
    elif depth and not isinstance(value, type) and type(value).__module__ not in ("builtins", "torch"):
        if is_module(value):
            for path, module in tree(value, name, most=2000):
                for key, item in [*attributes(module).items(), *_buffers(module).items()]:
                    if is_tensor(item) or (type(item) in _CONTAINERS and not key.startswith("_")):
                        yield from _inside(f"{path}.{key}", item, 1)
        else:
            for key, item in list(attributes(value).items())[:_MOST_ITEMS]:
                yield from _inside(f"{name}.{key}", item, depth - 1)


def _buffers(module: Any) -> dict[str, Any]:
    found = attributes(module).get("_buffers")
    return found if type(found) is dict else {}


# --- words -----------------------------------------------------------------------------------------------------------


def shape(sizes: Any) -> str:
    """Return a shape as text.

    >>> shape((64, 3)), shape((7,)), shape(())
    ('(64, 3)', '(7)', 'a single number')
    """
    return f"({', '.join(str(int(size)) for size in sizes)})" if len(sizes) else "a single number"


def dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def count(number: int, word: str) -> str:
    """Return a count with its noun.

    >>> count(1, "weight"), count(1200, "weight")
    ('1 weight', '1,200 weights')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"
