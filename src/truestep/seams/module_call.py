"""Calls of modules: ``nn.Module.__call__``, woven so that compiled functions and tracebacks stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep.seams.code.weaving import weave
from truestep.seams.patch import patch


class Observing:
    """State that sends every outermost call through `enter` and `leave`; see `probes/context/repetition.py`."""

    inside = False
    on = False


def wrap(
    stack: ExitStack,
    *,
    enter: Callable[..., Any],
    leave: Callable[..., None],
    depth: Any,
    coast: Any = Observing,
) -> bool:
    """Call functions around calls of modules until the stack unwinds.

    Args:
        stack: restores the call.
        enter: gets the module and its positional arguments before the call, and returns a token.
        leave: gets the token and the result after it, None after an exception.
        depth: an object with the attribute ``inside``: while it is 1, calls pass by.
        coast: an object with the attributes ``inside``, which lets every call pass by, and ``on``, which lets none.

    Returns:
        True if the calls are woven, False if torch's source is not the expected one.
    """
    import torch

    names = {
        "_truestep_compiling": torch.compiler.is_dynamo_compiling,
        "_truestep_depth": depth,
        "_truestep_coast": coast,
        "_truestep_enter": enter,
        "_truestep_leave": leave,
    }
    woven = weave(torch.nn.Module._wrapped_call_impl, names)
    if woven is None:
        return False
    replace(stack, woven)
    return True


def replace(stack: ExitStack, call: Callable[..., Any]) -> Callable[..., Any]:
    """Replace the call of modules until the stack unwinds, and return the one before it."""
    import torch

    before: Callable[..., Any] = patch(stack, torch.nn.Module, "_wrapped_call_impl", call)
    patch(stack, torch.nn.Module, "__call__", call)
    return before
