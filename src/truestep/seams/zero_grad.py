"""``zero_grad()`` of optimizers and of modules."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch
from truestep.seams.tracing import untraced

ZeroGrad = Callable[..., None]


def wrap_optimizer(stack: ExitStack, wrapper: ZeroGrad) -> ZeroGrad:
    """Replace ``Optimizer.zero_grad`` until the stack unwinds, and return the method before it.

    torch wraps the method, which keeps TorchDynamo out of it. The wrapper goes inside the same wrapping, and the method
    is returned without it.
    """
    from torch.optim import Optimizer

    method = vars(Optimizer)["zero_grad"]
    patch(stack, Optimizer, "zero_grad", untraced(wrapper))
    inner: ZeroGrad = getattr(method, "__wrapped__", method)
    return inner


def wrap_module(stack: ExitStack, wrapper: ZeroGrad) -> ZeroGrad:
    """Replace ``Module.zero_grad`` until the stack unwinds, and return the method before it."""
    from torch.nn import Module

    method: ZeroGrad = patch(stack, Module, "zero_grad", wrapper)
    return method


def watch(
    stack: ExitStack,
    *,
    optimizer: Callable[[Any, bool], object] | None = None,
    module: Callable[[Any, bool], object] | None = None,
) -> None:
    """Call functions before gradients are cleared, until the stack unwinds.

    Args:
        stack: restores the methods.
        optimizer: gets the optimizer, and ``set_to_none``.
        module: gets the module, and ``set_to_none``.
    """
    if optimizer is not None:

        def optimizer_zero_grad(owner: Any, set_to_none: bool = True) -> None:
            optimizer(owner, set_to_none)
            zero_optimizer(owner, set_to_none)

        zero_optimizer = wrap_optimizer(stack, optimizer_zero_grad)
    if module is not None:

        def module_zero_grad(owner: Any, set_to_none: bool = True) -> None:
            module(owner, set_to_none)
            zero_module(owner, set_to_none)

        zero_module = wrap_module(stack, module_zero_grad)
