"""`GradScaler`: the methods that scale a loss and step an optimizer."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch
from truestep.seams.refs import tensor_keys


def wrap(stack: ExitStack, name: str, wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Replace a method of `GradScaler` until the stack unwinds, and return the method before it."""
    from torch.amp.grad_scaler import GradScaler

    method: Callable[..., Any] = patch(stack, GradScaler, name, wrapper)
    return method


def watch(stack: ExitStack, scaled: Callable[[Any, Any, Any], object]) -> None:
    """Call a function after each ``scale()`` until the stack unwinds.

    Args:
        stack: restores the method.
        scaled: gets the scaler, also a disabled one, its argument, and the result.
    """

    def scale(scaler: Any, outputs: Any) -> Any:
        result = original(scaler, outputs)
        scaled(scaler, outputs, result)
        return result

    original = wrap(stack, "scale", scale)


def scales(stack: ExitStack) -> MutableMapping[Any, float]:
    """Return a mapping that holds, until the stack unwinds, each scaled loss that is alive and its scale."""
    import torch

    found: MutableMapping[Any, float] = tensor_keys()

    def scaled(scaler: Any, outputs: Any, result: Any) -> None:
        if isinstance(result, torch.Tensor) and scaler.is_enabled():
            found[result] = float(scaler.get_scale())

    watch(stack, scaled)
    return found
