"""Choice of the device, and the move of batches to it."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections import UserDict
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Any, cast

import torch

from truestep.errors import UnknownDevice


def pick(name: str | torch.device = "auto") -> torch.device:
    """Return the device of a name.

    Args:
        name: "auto" for this machine's accelerator (cuda, mps, ...) if there is one, else the CPU; or "cpu", "cuda",
            "cuda:1", "mps", in torch's notation.

    Raises:
        UnknownDevice: the name is unknown, or this machine has no such device.

    >>> pick("cpu")
    device(type='cpu')
    """
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    best = "cpu" if accelerator is None else accelerator.type
    if name == "auto":
        return torch.device(best)
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type == "meta":
        raise UnknownDevice(
            f'"{name}" is not a device to train on',
            expected='expected "auto", "cpu", "cuda", "cuda:0" or "mps"',
            remedy=f'use "{best}" on this machine',
        )
    if device.type != "cpu" and (accelerator is None or device.type != best):
        raise UnknownDevice(
            f'"{name}" is not available: {_why(device.type)}',
            expected=f'expected "auto" or "{best}"' if best == "cpu" else f'expected "auto", "cpu" or "{best}"',
            remedy=f'use "{best}" on this machine',
        )
    count = 1 if device.type == "cpu" else torch.accelerator.device_count()
    if device.index is not None and device.index >= count:
        raise UnknownDevice(
            f'"{name}" is not available: the last {device.type} device is number {count - 1}',
            expected=f'expected "{device.type}" or "{device.type}:0" to "{device.type}:{count - 1}"',
            remedy=f'use "{device.type}"',
        )
    return device


def to_device(batch: Any, device: torch.device, non_blocking: bool = False) -> Any:
    """Return a batch with all its tensors on a device.

    Moves tensors and other objects with a method `to(device)` (packed sequences, Transformers' `BatchEncoding`,
    graphs), in any nesting of tuples, named tuples, lists, mappings and dataclasses. Their types stay, except that a
    mapping other than a `dict` or `UserDict` becomes a `dict`. Other values (strings, numbers, numpy arrays, None) are
    unchanged. The batch itself is not modified; if nothing has to move, it is returned.

    Args:
        batch: a batch of a loader.
        device: the device.
        non_blocking: let copies from pinned memory overlap with computation; ignored for the CPU, where values could be
            read before they have arrived.

    >>> to_device({"x": torch.ones(2), "name": "a"}, torch.device("meta"))
    {'x': tensor(..., device='meta', size=(2,)), 'name': 'a'}
    """
    return _moved(batch, device, non_blocking and device.type != "cpu")


def _moved(value: Any, device: torch.device, non_blocking: bool) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device, non_blocking=non_blocking)
    if isinstance(value, str | bytes | int | float | type) or value is None:
        return value
    if callable(getattr(value, "to", None)):
        if non_blocking and _takes_non_blocking(getattr(type(value), "to", None)):
            return value.to(device, non_blocking=True)
        return value.to(device)
    if isinstance(value, tuple | list):
        return _sequence(value, [_moved(item, device, non_blocking) for item in value])
    if isinstance(value, Mapping):
        return _mapping(value, {key: _moved(item, device, non_blocking) for key, item in value.items()})
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if hasattr(value, field.name)]
        return _attributes(value, {name: _moved(getattr(value, name), device, non_blocking) for name in fields})
    return value


def _sequence(old: Any, items: list[Any]) -> Any:
    if all(new is item for new, item in zip(items, old, strict=True)):
        return old
    kind = type(old)
    if hasattr(old, "_fields"):
        return kind._make(items)
    if kind is list or isinstance(old, tuple):
        return kind(items)
    new = copy.copy(old)
    new[:] = items
    return new


def _mapping(old: Any, items: dict[Any, Any]) -> Any:
    if all(new is old[key] for key, new in items.items()):
        return old
    if type(old) is dict or not isinstance(old, dict | UserDict):
        return items
    new = copy.copy(old)  # keeps the attributes of the mapping, such as a default factory
    for key, item in items.items():
        new[key] = item
    return new


def _attributes(old: Any, values: dict[str, Any]) -> Any:
    changed = {name: new for name, new in values.items() if new is not getattr(old, name)}
    if not changed:
        return old
    new = copy.copy(old)
    for name, value in changed.items():
        object.__setattr__(new, name, value)  # setattr fails for a frozen dataclass
    return new


@lru_cache(maxsize=128)
def _takes_non_blocking(move: Hashable) -> bool:
    """Return True if a method accepts `non_blocking`."""
    try:
        parameters = inspect.signature(cast(Callable[..., Any], move)).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(parameter.name == "non_blocking" or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _why(kind: str) -> str:
    if kind == "cuda" and torch.version.cuda is None and torch.version.hip is None:
        return f"torch {torch.__version__} was built without it"
    return f"torch finds no {kind} device here"
