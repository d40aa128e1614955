"""Detect that any module is called during a period, without any cost outside of it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams


class _Depth:
    """Depth of calls for the woven method: every call counts until one was seen."""

    inside = False
    on = False


class Called:
    """Notices calls of modules between `look` and `stop`.

    Example:
        >>> import torch
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

    def look(self) -> None:
        """Start; if torch's source differs from the expected one, a call is assumed."""
        self.seen = self._depth.inside = False
        if self._stack is not None:
            return
        self._stack = ExitStack()
        woven = seams.module_call.wrap(
            self._stack, enter=self._enter, leave=_leave, depth=self._depth, coast=self._depth
        )
        self.seen = not woven

    def stop(self) -> None:
        """Stop; `seen` keeps its value."""
        if self._stack is not None:
            self._stack.close()
            self._stack = None

    def _enter(self, module: Any, args: tuple[Any, ...], depth: int = 2) -> None:
        self.seen = self._depth.inside = True


def _leave(token: Any, result: Any, depth: int = 2) -> None:
    """Do nothing: the call was noticed at its beginning."""
