"""Observe the steps of a script: steps of torch optimizers, or backward passes if it has created no optimizer."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.seams.patch import patch


def on_steps(stack: ExitStack, stepped: Callable[[Any], None]) -> None:
    """Call a function after each step until the stack unwinds. torch must be imported.

    Args:
        stack: removes the hooks.
        stepped: called with the optimizer; with None in a script that updates its weights itself.
    """
    made = optimizers_made(stack)

    def passed(this: seams.backward.Pass) -> None:
        if not made():
            stepped(None)

    seams.backward.watch(stack, after=passed)
    seams.step.watch(stack, after=lambda optimizer, *_: stepped(optimizer))


def optimizers_made(stack: ExitStack) -> Callable[[], bool]:
    """Return a function that returns True once the script has created a torch optimizer."""
    from torch.optim import Optimizer

    def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        found.append(True)
        init(optimizer, *args, **kwargs)

    found = [True] if is_any_alive() else []
    init = patch(stack, Optimizer, "__init__", __init__)
    return lambda: bool(found)


def is_any_alive() -> bool:
    """Return True if an optimizer exists already, as it does when supervision begins within a program."""
    return bool(optimizers_alive())


def optimizers_alive() -> list[Any]:
    """Return the optimizers that exist."""
    from torch.optim import Optimizer

    return [thing for thing in gc.get_objects() if issubclass(type(thing), Optimizer)]


def device_of(optimizer: Any) -> str:
    """Return the device type of an optimizer's parameters; for None, of the device that torch uses."""
    import torch

    if optimizer is None:
        return "cuda" if torch.cuda.is_available() and torch.cuda.memory_allocated() else "cpu"
    return next((str(p.device.type) for group in optimizer.param_groups for p in group["params"]), "cpu")
