"""Set attributes and restore them exactly: the only module that changes torch, `random` and NumPy."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

UNCOUNTED = "<truestep, beside importlib._bootstrap>"
"""File name of our wrappers' code. ``warnings.warn(stacklevel=n)`` does not count frames with both of these words in
their file name, so that a warning of torch names the user's file and line although one of our frames is in between."""

_PACKAGE = Path(__file__).parents[1]
_OURS = tuple(os.path.join(_PACKAGE, folder, "") for folder in ("probes", "seams"))
_ABSENT = object()


class _Layer:
    """One replacement of one attribute: the new value, and the value to restore."""

    __slots__ = ("below", "owner", "put")

    def __init__(self, owner: Any, put: Any, below: Any) -> None:
        self.owner = owner
        self.put = put
        self.below = below


_layers: dict[tuple[int, str], list[_Layer]] = {}
"""Replacements by patched attribute, the latest last: sessions may end in any order."""


def uncounted(function: Any) -> Any:
    """Return a function of this package, after its code was changed: warnings and logs do not count its frames."""
    function.__code__ = function.__code__.replace(co_filename=UNCOUNTED)
    return function


def patched_codes() -> list[CodeType]:
    """Return the code of every wrapper that is in place."""
    wrappers = [layer.put for layers in _layers.values() for layer in layers]
    return [put.__code__ for put in wrappers if getattr(getattr(put, "__code__", None), "co_filename", "") == UNCOUNTED]


def patch(stack: ExitStack, owner: Any, name: str, new: Any) -> Any:
    """Set ``owner.name`` until the stack unwinds, and return the value before it.

    The attribute is restored exactly: an inherited one is inherited again. A replacement below another one of ours is
    only removed from the chain: the one above restores the value below both. A later patch by other code stays.
    """
    below = vars(owner).get(name, _ABSENT)
    before = getattr(owner, name)
    if isinstance(new, FunctionType) and new.__code__.co_filename.startswith(_OURS):
        uncounted(new)
    setattr(owner, name, new)
    layer = _Layer(owner, vars(owner)[name], below)
    key = (id(owner), name)
    layers = _layers.setdefault(key, [])
    layers.append(layer)

    def restore() -> None:
        above = layers[layers.index(layer) + 1 :]
        layers.remove(layer)
        if not layers:
            _layers.pop(key, None)
        if above and above[0].below is layer.put:
            above[0].below = layer.below
        elif vars(owner).get(name, _ABSENT) is not layer.put:
            return
        elif layer.below is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, layer.below)

    stack.callback(restore)
    return before
