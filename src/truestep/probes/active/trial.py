"""Runs of a copied model, with the same seed and with copied arguments, which the other probes do not observe."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from truestep.probes.active import restored_states
from truestep.probes.context.scene import Scene
from truestep.probes.copies.call import Call
from truestep.probes.copies.objects import Refused, mind

_DEEP = 4
_MOST_RESULTS = 16


class Trial:
    """A copy of a model in eval mode, with the arguments of a call by the program."""

    def __init__(self, scene: Scene, copy: Any, call: Call) -> None:
        self.scene = scene
        self.copy = copy
        self.call = call
        for part in copy.modules():
            part.training = False  # not by `eval`, which a class can override

    def run(self, seed: int, call: Call | None = None, mode: Any = None) -> list[Any]:
        """Call the copy, and return the floating-point tensors in its result.

        Args:
            seed: seed for all generators.
            call: other arguments; None for those of the call.
            mode: torch function mode during the call.

        Raises:
            Refused: the copy raises an error, returns no floating-point tensor, or no time is left.
        """
        torch, given = self.scene.torch, self.call if call is None else call
        mind(self.scene)
        with torch.no_grad():
            args, kwargs = own(given.args, torch), own(given.kwargs, torch)
            restored_states.seed(torch, seed)
            try:
                with contextlib.nullcontext() if mode is None else mode:
                    result = self.copy(*args, **kwargs)
            except Refused:
                raise
            except Exception as error:
                raise Refused(f"a copy of it raised {type(error).__name__}") from None
            found = results(result, torch)
        if not found:
            raise Refused("its result has no floating-point tensor")
        return found


def operations(torch: Any, handle: Callable[[Any, Any, dict[str, Any]], Any]) -> Any:
    """Return a torch function mode in which a function runs each operation.

    Args:
        torch: the module.
        handle: gets the function, its arguments and its keywords, and returns the result.
    """

    class Operations(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            return handle(function, args, kwargs or {})

    return Operations()


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
    if isinstance(value, tuple) and hasattr(value, "_fields") and depth < _DEEP:
        return type(value)(*(own(item, torch, depth + 1) for item in value))
    if type(value) is dict and depth < _DEEP:
        return {key: own(item, torch, depth + 1) for key, item in value.items()}
    raise Refused(f"its arguments contain a {type(value).__name__}")


def results(value: Any, torch: Any, depth: int = 0) -> list[Any]:
    """Return copies of the floating-point tensors in a result."""
    if isinstance(value, torch.Tensor):
        return [value.detach().clone()] if value.is_floating_point() and value.numel() else []
    if depth >= _DEEP:
        return []
    if isinstance(value, dict):
        value = list(value.values())
    elif not isinstance(value, list | tuple):
        value = list(getattr(value, "__dict__", {}).values())
    found: list[Any] = []
    for item in value[:_MOST_RESULTS]:
        found += results(item, torch, depth + 1)
    return found[:_MOST_RESULTS]
