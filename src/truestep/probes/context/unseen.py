"""Hide the reads of probes from modes and tensor classes of the script that observe every call.

A mode that counts or logs calls would print other numbers under supervision, and one that changes calls change ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice
from typing import Any

_FIRST, _DEEP = 8, 3
"""Number of items of a batch, or of a model's outputs, and levels that are searched for such a tensor class."""


class Unseen:
    """Suspends observers of torch calls while a probe reads, for the calling thread; may be nested."""

    def __init__(self, torch: Any, fail: Callable[[], None]) -> None:
        self._fail = fail
        self._functions = torch._C._len_torch_function_stack
        self._dispatches = torch._C._len_torch_dispatch_stack
        self._without_functions = torch._C.DisableTorchFunction
        self._plain = (torch.Tensor, torch.nn.Parameter)
        self._usual = (torch.Tensor.__torch_function__.__func__, torch._C._disabled_torch_function_impl)
        self._overridden = False
        """True if a tensor class was met that observes its own calls."""

    def met(self, *things: Any) -> None:
        """Record the classes of tensors among arguments or results of the script that will be examined."""
        try:
            for thing in things:
                if type(thing) not in self._plain:
                    self._search(thing, _DEEP, _FIRST)
        except Exception:
            self._fail()

    def _search(self, thing: Any, depth: int, most: int) -> None:
        """Record the class of a tensor, or those of the first tensors in a list, tuple or dict."""
        kind = type(thing)
        if kind in self._plain or self._overridden:
            return
        inside: Iterable[Any] = ()
        if kind is tuple or kind is list:
            inside = thing
        elif issubclass(kind, self._plain[0]):
            function = kind.__torch_function__
            self._overridden = getattr(function, "__func__", function) not in self._usual
        elif issubclass(kind, dict):  # by the methods of Python's own classes: those of the script are not called
            inside = dict.values(thing)
        elif issubclass(kind, tuple):
            inside = tuple.__iter__(thing)
        for item in islice(inside, most) if depth else ():
            self._search(item, depth - 1, most // 2)  # 8, then 4, then 2 of each: nested arguments cost as little

    def begin(self) -> ExitStack | None:
        """Suspend the observers; the caller must close the returned object before code of the script runs.

        Without observers it returns None.
        """
        if not (self._functions() or self._dispatches() or self._overridden):
            return None
        aside = ExitStack()
        try:
            aside.enter_context(self._without_functions())
            if self._dispatches():
                from torch.utils._python_dispatch import _disable_current_modes

                aside.enter_context(_disable_current_modes())
        except Exception:
            self._fail()
        return aside
