"""Nested values with tensors: tuples, lists, dicts and dataclasses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import torch

DEEPEST = 16
"""Most levels of nesting: a value that contains itself has no end."""


def parts(value: Any) -> list[tuple[str, Any]]:
    """Return the items of a container, each with its path; [] for a value that is not a container."""
    if isinstance(value, Mapping):
        return [(f".{key}" if isinstance(key, str) else f"[{key!r}]", item) for key, item in value.items()]
    if is_dataclass(value) and not isinstance(value, type):
        return [(f".{field.name}", getattr(value, field.name, None)) for field in fields(value)]
    if isinstance(value, tuple | list):
        names = getattr(value, "_fields", None)
        return [(f".{names[i]}" if names else f"[{i}]", item) for i, item in enumerate(value)]
    return []


def tensors(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every tensor in a value, with its path: "" for the value itself, "[0].logits" further inside."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif depth < DEEPEST:
        for step, item in parts(value):
            yield from tensors(item, path + step, depth + 1)


def mapped(value: Any, function: Callable[[torch.Tensor], torch.Tensor], depth: int = 0) -> Any:
    """Return a value of the same structure with every tensor replaced; other values are returned unchanged."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if depth >= DEEPEST:
        return value
    if isinstance(value, dict):
        new = copy.copy(value)
        for key, item in value.items():
            new[key] = mapped(item, function, depth + 1)
        return new
    if is_dataclass(value) and not isinstance(value, type):
        other: Any = copy.copy(value)
        for field in fields(value):
            if hasattr(value, field.name):
                object.__setattr__(other, field.name, mapped(getattr(value, field.name), function, depth + 1))
        return other
    if isinstance(value, tuple | list):
        items = [mapped(item, function, depth + 1) for item in value]
        if hasattr(value, "_make"):
            return value._make(items)
        if type(value) in (list, tuple):
            return type(value)(items)
        try:
            return type(value)(items)
        except TypeError:  # a class with another constructor
            return items if isinstance(value, list) else tuple(items)
    return value


def shape(value: Any, depth: int = 0) -> str:
    """Return the shapes in a value: "(32, 10)", "((32, 8), (2, 32, 8))", "{logits: (32, 10)}"; "-" for none.

    >>> shape((torch.zeros(2, 3), {"state": torch.zeros(4)}))
    '((2, 3), {state: (4)})'
    """
    if isinstance(value, torch.Tensor):
        return _size(value)
    if depth >= DEEPEST:
        return "-"
    held = parts(value)
    if not held:
        return "-"
    if isinstance(value, tuple | list):
        return f"({', '.join(shape(item, depth + 1) for _, item in held)})"
    shown = [f"{path.lstrip('.')}: {shape(item, depth + 1)}" for path, item in held]
    return "{" + ", ".join(text for text in shown if not text.endswith(": -")) + "}"


def _size(tensor: torch.Tensor) -> str:
    if tensor.is_nested:
        return f"({len(tensor.unbind())} nested)"
    return f"({', '.join(map(str, tensor.shape))})"
