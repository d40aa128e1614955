"""What a tensor was computed from, for functions that a remedy takes back, and where the script calls them."""

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
    """Remembers the inputs of functions by their outputs, as long as these live, and the places of the calls.

    A place is the module that calls, for modules of torch, or the line of the script. A place is *marked* when a remedy
    has found its outputs to be wrong; from then on it gives what the remedy says.
    """

    def __init__(self) -> None:
        self._made: Any = tensor_keys()
        self._calls: dict[Hashable, int] = {}
        self._marked: set[Hashable] = set()

    def recorded(self, owner: Any, kind: str, instead: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, remembers it, and does something else at marked places.

        Args:
            owner: of the function, which takes a tensor first.
            kind: name of the function, to be told by `source`.
            instead: takes what the function takes.
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
        """Return the kind, place, input and arguments that a tensor was made by; None where that is not known.

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
        """Mark a place whose output a loss took, if all that the place gave since the latest loss was that output."""
        if self._calls.get(place) == 1:
            self._marked.add(place)
        self._calls.clear()


def place_of_call(above: int) -> Hashable | None:
    """Return where the caller of a wrapper is; None for torch's own functions that call each other.

    Args:
        above: how many frames to go up.
    """
    frame = sys._getframe(above)
    file = frame.f_code.co_filename.replace("\\", "/")
    if file.endswith(_TORCH):
        return None
    if _MODULES in file:
        return argument(frame, "self")
    return frame.f_code, frame.f_lasti


def named(function: Callable[..., Any], owner: Any, name: str) -> Callable[..., Any]:
    """Return a function that is pickled by a name of torch: a model may hold it, and be saved as a whole."""
    if isinstance(owner, ModuleType):
        function.__module__, function.__qualname__ = owner.__name__, name
    return function


def _is_in_place(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return kwargs.get("inplace") is True or bool(args and args[0] is True)
