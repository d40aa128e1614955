"""Exports of models: the functions of torch.export and torch.jit that a program calls, if torch has imported them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Literal

from truestep.seams.patch import patch

Function = Literal["torch.export.export", "torch.export.save", "torch.jit.trace", "torch.jit.save"]


def wrap(stack: ExitStack, name: Function, wrapper: Callable[..., Any]) -> Callable[..., Any] | None:
    """Replace a function until the stack unwinds, and return the function before it.

    Return None if its module is not imported: ``import torch`` imports both modules, and nothing is imported here.

    Args:
        stack: restores the function.
        name: the function with its module.
        wrapper: takes the arguments of the function.
    """
    home, _, attribute = name.rpartition(".")
    module = sys.modules.get(home)
    if module is None or not hasattr(module, attribute):
        return None
    function: Callable[..., Any] = patch(stack, module, attribute, wrapper)
    return function


def wrap_method(
    stack: ExitStack, kind: Literal["ScriptModule", "RecursiveScriptModule"], wrapper: Callable[..., Any]
) -> Callable[..., Any] | None:
    """Replace ``save`` of a class of compiled modules until the stack unwinds, and return the method before it.

    Args:
        stack: restores the method.
        kind: traced modules are of the first class, scripted and loaded ones of the second, which has its own method.
        wrapper: takes the arguments of the method.
    """
    module = sys.modules.get("torch.jit")
    if module is None or not hasattr(getattr(module, kind, None), "save"):
        return None
    method: Callable[..., Any] = patch(stack, getattr(module, kind), "save", wrapper)
    return method
