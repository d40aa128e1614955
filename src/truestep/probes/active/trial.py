"""Runs of a copied model, with the same seed and with copied arguments, which the other probes do not observe."""

from __future__ import annotations

import contextlib
from typing import Any

from truestep.probes.active import restored_states
from truestep.probes.active.copies import Refused
from truestep.probes.context.scene import Scene

_DEEP = 4


class Trial:
    """A copy of a model, with the arguments of a call by the program.

    Args:
        scene: the scene.
        copy: the copied model.
        args: positional arguments of the call.
        kwargs: keyword arguments of the call.
    """

    def __init__(self, scene: Scene, copy: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.scene = scene
        self.copy = copy
        self.args = args
        self.kwargs = kwargs

    def run(self, seed: int, args: tuple[Any, ...] | None = None, mode: Any = None) -> Any:
        """Call the copy, and return the first floating-point tensor in its result.

        Args:
            seed: seed for all generators.
            args: positional arguments; None for those of the call.
            mode: torch function mode during the call.

        Raises:
            Refused: the copy raises an error, or returns no floating-point tensor.
        """
        torch, given = self.scene.torch, self.args if args is None else args
        with torch.no_grad():
            given, named = own(given, torch), own(self.kwargs, torch)
            restored_states.seed(torch, seed)
            try:
                with contextlib.nullcontext() if mode is None else mode:
                    result = self.copy(*given, **named)
            except Exception as error:
                raise Refused(f"a copy of it raised {type(error).__name__}") from None
            found = first(result, torch)
        if found is None:
            raise Refused("its result has no floating-point tensor")
        return found


def own(value: Any, torch: Any, depth: int = 0) -> Any:
    """Return copies of arguments, which the model can modify.

    Raises:
        Refused: the arguments contain other objects than tensors, numbers and strings.
    """
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return value.detach().clone()
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device):
        return value
    if type(value) in (tuple, list) and depth < _DEEP:
        return type(value)(own(item, torch, depth + 1) for item in value)
    if type(value) is dict and depth < _DEEP:
        return {key: own(item, torch, depth + 1) for key, item in value.items()}
    raise Refused(f"its arguments contain a {type(value).__name__}")


def first(value: Any, torch: Any, depth: int = 0) -> Any:
    """Return the first floating-point tensor in a result, or None."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone() if value.is_floating_point() and value.numel() else None
    if depth >= _DEEP:
        return None
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value[:16]:
            found = first(item, torch, depth + 1)
            if found is not None:
                return found
    return None
