"""Record the inputs that tensors were computed from, and the calling places, for functions that a remedy undoes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from types import ModuleType
from typing import Any

from truestep.probes.context.local_variables import argument
from truestep.seams.refs import tensor_keys

_TORCH = ("/torch/nn/functional.py", "/torch/_tensor.py")
_MODULES = "/torch/nn/modules/"


class Sources:
    """Remembers the inputs of functions by their outputs, while these live, and the places of the calls.

    A place is the calling module of torch, or the line of the script. A remedy *marks* a place when it has found its
    outputs to be wrong; from then on the place returns the output of the remedy.
    """

    def __init__(self) -> None:
        self._made: Any = tensor_keys()
        self._calls: dict[Hashable, int] = {}
        self._marked: set[Hashable] = set()

    def recorded(self, owner: Any, kind: str, instead: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper that records the calls of a function, and calls another one at marked places.

        Args:
            owner: module or class that holds the function; its first argument is a tensor.
            kind: name of the function, which `source` returns.
            instead: function for marked places, with the same arguments.
        """
        import torch

        function = getattr(owner, kind)
        compiling = torch.compiler.is_compiling

        def call(input: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling() or not isinstance(input, torch.Tensor):
                return function(input, *args, **kwargs)
            place = place_of_call(2)
            if place is None:
                return function(input, *args, **kwargs)
            if place in self._marked:
                return instead(input, *args, **kwargs)
            kept = input.clone() if _is_in_place(args, kwargs) else input
            result = function(input, *args, **kwargs)
            if result.requires_grad:
                self._calls[place] = self._calls.get(place, 0) + 1
                self._made[result] = kind, place, kept, args, kwargs
            return result

        return named(call, owner, kind)

    def source(self, output: Any) -> tuple[str, Hashable, Any, tuple[Any, ...], dict[str, Any]] | None:
        """Return the kind, place, input and arguments of the call that made a tensor; None if unknown.

        A tensor of the same values in another shape counts as the same, and its input has that shape.
        """
        found: Any = self._made.get(output)
        base = output._base
        if found is None and base is not None and base.numel() == output.numel():
            found = self._made.get(base)
            if found is not None and output.is_contiguous() and base.is_contiguous():
                kind, place, input, args, kwargs = found
                return kind, place, input.reshape(output.shape), args, kwargs
            return None
        return found  # type: ignore[no-any-return]

    def consumed(self, place: Hashable) -> None:
        """Mark the place of a loss's input, if this input is the only output of the place since the previous loss."""
        if self._calls.get(place) == 1:
            self._marked.add(place)
        self._calls.clear()


def place_of_call(above: int) -> Hashable | None:
    """Return the place of the caller of a wrapper; None for calls between torch's own functions.

    Args:
        above: number of frames to go up.
    """
    frame = sys._getframe(above)
    file = frame.f_code.co_filename.replace("\\", "/")
    if file.endswith(_TORCH):
        return None
    if _MODULES in file:
        return argument(frame, "self")
    return frame.f_code, frame.f_lasti


def named(function: Callable[..., Any], owner: Any, name: str) -> Callable[..., Any]:
    """Return the function with a name in torch, so that it can be pickled: a model may hold it and be saved whole."""
    if isinstance(owner, ModuleType):
        function.__module__, function.__qualname__ = owner.__name__, name
    return function


def _is_in_place(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return kwargs.get("inplace") is True or bool(args and args[0] is True)
