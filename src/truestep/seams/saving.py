"""Files of state, and exported models.

These are the functions inside ``torch.serialization`` that ``torch.save`` and ``torch.load`` call, and the functions of
``torch.export`` and ``torch.jit`` that a program calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Literal

from truestep.seams.patch import patch

Function = Literal["_save", "_legacy_save", "_open_zipfile_writer", "_load", "_legacy_load"]
Exporting = Literal["torch.export.export", "torch.export.save", "torch.jit.trace", "torch.jit.save"]


def wrap(stack: ExitStack, name: Function, wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """Replace a function of ``torch.serialization`` until the stack unwinds, and return the function before it.

    The wrapper is called without a frame in between.

    Args:
        stack: restores the function.
        name: "_save" and "_load" get each zip file, the "_legacy" ones each file in the format before it, and
            "_open_zipfile_writer" the path or buffer that a zip file is written to.
        wrapper: takes the arguments of the function; the first of "_save" and "_legacy_save" is the saved object.
    """
    from torch import serialization

    function: Callable[..., Any] = patch(stack, serialization, name, wrapper)
    return function


def wrap_export(stack: ExitStack, name: Exporting, wrapper: Callable[..., Any]) -> Callable[..., Any] | None:
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
