"""Runs of a copied model: the same seed each time, arguments of their own, nothing seen by the other probes."""

from __future__ import annotations

import contextlib
from typing import Any

from truestep.probes.active import restored_states
from truestep.probes.active.copies import Refused
from truestep.probes.context.scene import Scene

_DEEP = 4


class Trial:
    """A copy of a model with the arguments of a call that the program made.

    Args:
        scene: the scene.
        copy: the copied model.
        args: positional arguments of the call.
        kwargs: its keyword arguments.
    """

    def __init__(self, scene: Scene, copy: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.scene = scene
        self.copy = copy
        self.args = args
        self.kwargs = kwargs

    def run(self, seed: int, args: tuple[Any, ...] | None = None, mode: Any = None) -> Any:
        """Call the copy and return the first tensor of floating point in its result.

        Args:
            seed: for all generators.
            args: other positional arguments than those of the call.
            mode: what watches the functions of torch during the call.

        Raises:
            Refused: the copy raises, or returns no such tensor.
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
            raise Refused("its result holds no tensor of floating point")
        return found


def own(value: Any, torch: Any, depth: int = 0) -> Any:
    """Return arguments that the copy may write into.

    Raises:
        Refused: there is something else in them than tensors, numbers and words.
    """
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return value.detach().clone()
    if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.device):
        return value
    if type(value) in (tuple, list) and depth < _DEEP:
        return type(value)(own(item, torch, depth + 1) for item in value)
    if type(value) is dict and depth < _DEEP:
        return {key: own(item, torch, depth + 1) for key, item in value.items()}
    raise Refused(f"it is given a {type(value).__name__}")


def first(value: Any, torch: Any, depth: int = 0) -> Any:
    """Return the first tensor of floating point in a result, None where there is none."""
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
