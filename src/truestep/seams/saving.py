"""Files of state: the functions inside ``torch.serialization`` that ``torch.save`` and ``torch.load`` call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Literal

from truestep.seams.patch import patch

Function = Literal["_save", "_legacy_save", "_open_zipfile_writer", "_load", "_legacy_load"]


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
