"""When a script has taken a step: one of an optimizer of torch; where it has made none, a backward pass."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch


def on_steps(stack: ExitStack, stepped: Callable[[Any], None]) -> None:
    """Call a function after each step until the stack unwinds. torch is imported.

    Args:
        stack: undoes it.
        stepped: gets the optimizer; None in a script that updates its weights by itself.
    """
    import torch
    from torch.optim import optimizer as module

    made = optimizers_made(stack)

    def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        result = backward(*args, **kwargs)
        if not made() and is_own_step(kwargs):
            stepped(None)
        return result

    backward = patch(stack, torch.autograd, "_engine_run_backward", _engine_run_backward)
    hook = module.register_optimizer_step_post_hook(lambda optimizer, *_: stepped(optimizer))
    stack.callback(hook.remove)


def optimizers_made(stack: ExitStack) -> Callable[[], bool]:
    """Return what tells whether the script has made an optimizer of torch, now or later."""
    from torch.optim import Optimizer

    def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        found.append(True)
        init(optimizer, *args, **kwargs)

    found = [True] if is_any_alive() else []
    init = patch(stack, Optimizer, "__init__", __init__)
    return lambda: bool(found)


def is_any_alive() -> bool:
    """Whether there is an optimizer already: a block of a program is looked at, and not a script from its beginning."""
    from torch.optim import Optimizer

    return any(issubclass(type(thing), Optimizer) for thing in gc.get_objects())


def is_own_step(kwargs: dict[str, Any]) -> bool:
    """Whether a pass of the engine that is over was one of `backward()`, and not within another one."""
    import torch

    return bool(kwargs.get("accumulate_grad", False)) and torch._C._current_graph_task_id() == -1


def device_of(optimizer: Any) -> str:
    """Return the type of device that an optimizer's parameters are on; without one, that torch computes on."""
    import torch

    if optimizer is None:
        return "cuda" if torch.cuda.is_available() and torch.cuda.memory_allocated() else "cpu"
    return next((str(p.device.type) for group in optimizer.param_groups for p in group["params"]), "cpu")
