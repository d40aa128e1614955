"""The remedy for attributes that were meant to freeze parameters: they freeze them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.probes.gradients.ineffective_freezes import MISSPELT, minds
from truestep.seams.refs import tensor_keys

_COMPILERS = ("torch._", "torch.fx")
"""Packages that read attributes of modules by `dir`, and fail if a listed one is missing."""


class FreezeInEarnest(Change):
    """`requires_grad = False` on a module, and a misspelled one on a parameter, freezes the module or parameter.

    A class that defines the attribute is left alone.
    """

    name = "freeze-in-earnest"
    remedies = ("freeze-without-effect",)
    silences = True

    def __init__(self) -> None:
        super().__init__()
        self._frozen: Any = tensor_keys()
        """Parameters frozen here, which the same attribute can unfreeze."""

    def install(self, stack: ExitStack) -> None:
        import torch

        self._put(stack, torch.nn.Module, "requires_grad")
        for word in MISSPELT:
            self._put(stack, torch.nn.Parameter, word)

    def _put(self, stack: ExitStack, owner: Any, name: str) -> None:
        setattr(owner, name, _Freezing(self, name))
        stack.callback(delattr, owner, name)

    def set(self, parameters: list[Any], value: Any) -> None:
        """Freeze trainable parameters, or unfreeze those that were frozen here."""
        for parameter in parameters:
            if value is False and parameter.requires_grad:
                self._frozen[parameter] = True
                parameter.requires_grad_(False)
                self.applied += 1
            elif value is True and self._frozen.pop(parameter, False):
                parameter.requires_grad_(True)


class _Freezing:
    """An attribute that is stored as usual, and freezes when it is set to False."""

    def __init__(self, change: FreezeInEarnest, name: str) -> None:
        self._change = change
        self._name = name

    def __get__(self, holder: Any, kind: Any = None) -> Any:
        if holder is not None and type(holder).__module__.startswith(_COMPILERS):
            return None
        if holder is None or self._name not in vars(holder):
            raise AttributeError(f"{(kind or type(holder)).__name__!r} object has no attribute {self._name!r}")
        return vars(holder)[self._name]

    def __set__(self, holder: Any, value: Any) -> None:
        vars(holder)[self._name] = value
        if hasattr(holder, "parameters"):
            parameters = [] if minds(type(holder)) else list(holder.parameters())
        else:
            parameters = [holder]
        self._change.set(parameters, value)

    def __delete__(self, holder: Any) -> None:
        vars(holder).pop(self._name, None)
