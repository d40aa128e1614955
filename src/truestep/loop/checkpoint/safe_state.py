"""Conversion of state to types that load with `torch.load(weights_only=True)`, and back to an equal value.

`torch.save` writes nearly everything. `weights_only=True`, which runs no code from the file, then refuses numpy
scalars and arrays, paths, deques, default dictionaries, enumerations and more (measured on torch 2.13). Such a value is
replaced by a simpler equal one (`numpy.float64(0.5)` by `0.5`), or by a description from which it is rebuilt. Any other
type is an error at the save, not at the load when the state is needed.
"""

from __future__ import annotations

import enum
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

import torch
from torch import nn

from truestep.errors import UnsavableState

_TAG = "__truestep__"
_SIMPLER: tuple[type, ...] = (bool, int, float, complex, str, bytes, bytearray)
"""Types that replace their subclasses, with equal values."""
_EXACT = {type(None), *_SIMPLER, torch.Size, torch.dtype, torch.device, torch.layout}
_FACTORIES = {kind.__name__: kind for kind in (int, float, str, bool, list, dict, set, tuple)}
_REMEDIES = (
    (torch.Generator, "save its get_state()"),
    (enum.Enum, "save its .value or .name"),
    (type, "save its name"),
    (nn.Module, "save its state_dict()"),
    (torch.optim.Optimizer, "save its state_dict()"),
    (torch.Tensor, "save a plain tensor with values, such as its full_tensor()"),
)

Take = Callable[[torch.Tensor], torch.Tensor]


def plain(value: Any, take: Take = torch.Tensor.detach, where: str = "state") -> Any:
    """Return a form of a value that loads with `weights_only=True`; `restored` turns it into an equal value again.

    Args:
        value: nested containers of numbers, text, tensors and arrays.
        take: called with every tensor; returns it on the CPU, detached.
        where: name of the value in errors.

    Raises:
        UnsavableState: an object in it has no such form; the message gives its place.

    Example:
        >>> import numpy as np
        >>> state = plain({"loss": np.float64(0.5), "last": deque([1, 2], maxlen=2)})
        >>> state["loss"], restored(state)["last"]
        (0.5, deque([1, 2], maxlen=2))
        >>> plain({"sampler": {"key": len}})
        Traceback (most recent call last):
        ...
        truestep.errors.UnsavableState: state['sampler']['key'] cannot be saved: a builtin_function_or_method
          expected numbers, text, tensors, arrays, and containers of these
          leave it out of the state, and create it again when the run resumes
    """
    return _Conversion(take).value(value, where)


class _Conversion:
    def __init__(self, take: Take) -> None:
        self._take = take
        self._above: set[int] = set()

    def value(self, value: Any, where: str) -> Any:
        if type(value) in _EXACT:
            return value
        if isinstance(value, torch.Tensor):
            return self._tensor(value, where)
        if isinstance(value, (list, tuple, set, frozenset, deque, Mapping)):
            if id(value) in self._above:
                raise _unsavable(where, "it contains itself", value)
            self._above.add(id(value))
            try:
                return self._mapping(value, where) if isinstance(value, Mapping) else self._sequence(value, where)
            finally:
                self._above.discard(id(value))
        return self._other(value, where)

    def _tensor(self, tensor: torch.Tensor, where: str) -> Any:
        if type(tensor) not in (torch.Tensor, nn.Parameter):
            raise _unsavable(where, f"a {type(tensor).__name__}, which is more than a tensor", tensor)
        if tensor.is_meta:
            raise _unsavable(where, "a tensor on the meta device, which has no values", tensor)
        taken = self._take(tensor)
        parameter, grad = isinstance(tensor, nn.Parameter), tensor.requires_grad and tensor.is_leaf
        if tensor.device.type == "cpu" and not parameter and not grad:
            return taken
        return {_TAG: "tensor", "value": taken, "device": tensor.device.type, "parameter": parameter, "grad": grad}

    def _sequence(self, values: Any, where: str) -> Any:
        items = [self.value(item, f"{where}[{place}]") for place, item in enumerate(values)]
        if isinstance(values, deque):
            return {_TAG: "deque", "items": items, "maxlen": values.maxlen}
        if isinstance(values, (set, frozenset)):
            return {_TAG: "frozenset" if isinstance(values, frozenset) else "set", "items": items}
        return tuple(items) if isinstance(values, tuple) else items

    def _mapping(self, mapping: Mapping[Any, Any], where: str) -> Any:
        if not isinstance(mapping, dict):
            raise _unsavable(where, f"a {type(mapping).__name__}", mapping)
        items = {_key(key, where): self.value(item, f"{where}[{key!r}]") for key, item in mapping.items()}
        if isinstance(mapping, defaultdict) and mapping.default_factory is not None:
            factory = mapping.default_factory
            name = getattr(factory, "__name__", "")
            if _FACTORIES.get(name) is not factory:
                raise _unsavable(where, f"a defaultdict of {name or repr(factory)}", mapping)
            return {_TAG: "defaultdict", "items": items, "factory": name}
        if type(mapping) in (OrderedDict, Counter):
            return type(mapping)(items)
        return {_TAG: "dict", "items": items} if _TAG in items else items

    def _other(self, value: Any, where: str) -> Any:
        if isinstance(value, PurePath):
            return {_TAG: "path", "value": str(value)}
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            number = value.item()
            if type(number) in _EXACT:
                return number
        if numpy is not None and type(value) is numpy.ndarray:
            try:
                return {_TAG: "ndarray", "value": self._take(torch.from_numpy(value.copy()))}
            except (TypeError, ValueError):
                raise _unsavable(where, f"an array of {value.dtype}", value) from None
        return _simpler(value, where)


def _simpler(value: Any, where: str) -> Any:
    """Return the number or text that equals an object of one of their subclasses."""
    for kind in _SIMPLER:
        if isinstance(value, kind):
            return kind.__new__(kind, value) if kind is not str else str.__str__(value)
    raise _unsavable(where, f"a {type(value).__name__}", value)


def _key(key: Any, where: str) -> Any:
    if type(key) in _EXACT:
        return key
    if isinstance(key, tuple):
        return tuple(_key(part, where) for part in key)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(key, numpy.generic) and type(key.item()) in _EXACT:
        return key.item()
    return _simpler(key, f"the key {key!r} of {where}")


def _unsavable(where: str, what: str, value: Any) -> UnsavableState:
    remedy = next((remedy for kind, remedy in _REMEDIES if isinstance(value, kind)), "")
    return UnsavableState(
        f"{where} cannot be saved: {what}",
        expected="expected numbers, text, tensors, arrays, and containers of these",
        remedy=remedy or "leave it out of the state, and create it again when the run resumes",
    )


def restored(value: Any, device: torch.device | None = None) -> Any:
    """Return the original value of a form that `plain` returned.

    Args:
        value: return value of `plain`, read from a file.
        device: device for tensors that were on an accelerator; None for the accelerator of the same type if there is
            one, else the CPU.

    Example:
        >>> restored(plain({"seen": frozenset({1, 2})}))
        {'seen': frozenset({1, 2})}
    """
    if isinstance(value, dict):
        if _TAG in value:
            return _made_again(value, device)
        items = {key: restored(item, device) for key, item in value.items()}
        return type(value)(items) if type(value) is not dict else items
    if type(value) is list:
        return [restored(item, device) for item in value]
    if type(value) is tuple:
        return tuple(restored(item, device) for item in value)
    return value


def _made_again(tagged: dict[str, Any], device: torch.device | None) -> Any:
    kind = tagged[_TAG]
    if kind == "tensor":
        return _tensor(tagged, device)
    if kind == "ndarray":
        return tagged["value"].numpy()
    if kind == "path":
        return Path(tagged["value"])
    if kind == "deque":
        return deque([restored(item, device) for item in tagged["items"]], tagged["maxlen"])
    if kind in ("set", "frozenset"):
        return {"set": set, "frozenset": frozenset}[kind](restored(item, device) for item in tagged["items"])
    items = {key: restored(item, device) for key, item in tagged["items"].items()}
    return defaultdict(_FACTORIES[tagged["factory"]], items) if kind == "defaultdict" else items


def _tensor(tagged: dict[str, Any], device: torch.device | None) -> torch.Tensor:
    tensor: torch.Tensor = tagged["value"]
    if tagged["device"] != "cpu":
        there = torch.accelerator.current_accelerator(check_available=True)
        if device is not None:
            tensor = tensor.to(device)
        elif there is not None and there.type == tagged["device"]:
            tensor = tensor.to(there.type)
    if tagged["parameter"]:
        return nn.Parameter(tensor, requires_grad=tagged["grad"])
    return tensor.requires_grad_() if tagged["grad"] else tensor
