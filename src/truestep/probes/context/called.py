"""Detect that any module is called during a period, without any cost outside of it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch

from truestep.seams.patch import patch
from truestep.seams.weaving import weave


class _Depth:
    """Depth of calls for the woven method: every call counts until one was seen."""

    inside = False
    on = False


class Called:
    """Notices calls of modules between `look` and `stop`.

    Example:
        >>> called = Called()
        >>> called.look()
        >>> _ = torch.nn.Identity()(1)
        >>> called.stop()
        >>> called.seen
        True
    """

    def __init__(self) -> None:
        self.seen = False
        self._stack: ExitStack | None = None
        self._depth = _Depth()

    @property
    def is_looking(self) -> bool:
        """Return True between `look` and `stop`."""
        return self._stack is not None

    def look(self) -> None:
        """Start; if torch's source differs from the expected one, a call is assumed."""
        self.seen = self._depth.inside = False
        if self._stack is not None:
            return
        names = {
            "_truestep_compiling": torch.compiler.is_dynamo_compiling,
            "_truestep_depth": self._depth,
            "_truestep_coast": self._depth,
            "_truestep_enter": self._enter,
            "_truestep_leave": _leave,
        }
        self._stack = ExitStack()
        woven = weave(torch.nn.Module._wrapped_call_impl, names)
        if woven is None:
            self.seen = True
            return
        patch(self._stack, torch.nn.Module, "_wrapped_call_impl", woven)
        patch(self._stack, torch.nn.Module, "__call__", woven)

    def stop(self) -> None:
        """Stop; `seen` keeps its value."""
        if self._stack is not None:
            self._stack.close()
            self._stack = None

    def _enter(self, module: Any, args: tuple[Any, ...], depth: int = 2) -> None:
        self.seen = self._depth.inside = True


def _leave(token: Any, result: Any, depth: int = 2) -> None:
    """Do nothing: the call was noticed at its beginning."""
