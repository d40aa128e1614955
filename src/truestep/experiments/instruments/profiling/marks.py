"""Name the modules of a script, and put a mark of torch's profiler around each of their calls."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from truestep.debugging._visible import joined, kind, visible
from truestep.debugging.timings import DATA, MODULE
from truestep.experiments.instruments.model_names import model_of, unused
from truestep.probes.context.sites import Sites
from truestep.seams.wrappers import uncompiled_name


class Marks:
    """Marks calls of modules while it is the listener of the clock (`PhaseClock.calls`).

    A model gets the name of its variable in the script: `model`, `self.net`. Its modules get this name as a prefix.

    Attributes:
        kinds: class of each module, by mark.
        at: path and line of the user's code with the first call of a module, by mark.
        own: marks of modules with a `forward` in the user's code.
        hidden: parts of models that hooks cannot see, by name, with the reason.
        models: models that were called outermost, by name.
    """

    def __init__(self, sites: Sites) -> None:
        self.kinds: dict[str, str] = {}
        self.at: dict[str, tuple[str, int]] = {}
        self.own: set[str] = set()
        self.hidden: dict[str, str] = {}
        self.models: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._sites = sites
        self._marks: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

    def enter(self, module: Any, depth_of_caller: int) -> Callable[[], None]:
        """Mark the beginning of a call; return a function that marks its end."""
        from torch.profiler import record_function

        mark = self._marks.get(module)
        if mark is None:
            self._meet(module, sys._getframe(depth_of_caller))
            mark = self._marks[module]
        if mark not in self.at:
            frame = self._sites.frame(2)
            self.at[mark] = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
            if self._sites.kind(getattr(type(module).forward, "__code__", _NO_CODE)) == 0:
                self.own.add(mark)
        around = record_function(mark)
        around.__enter__()  # type: ignore[no-untyped-call]
        return lambda: around.__exit__(None, None, None)

    def data(self) -> Callable[[], None]:
        """Mark the beginning of data loading; return a function that marks its end."""
        from torch.profiler import record_function

        around = record_function(DATA)
        around.__enter__()  # type: ignore[no-untyped-call]
        return lambda: around.__exit__(None, None, None)

    def _meet(self, module: Any, frame: FrameType | None) -> None:
        """Name a module that is called outermost, and all of its submodules."""
        root, name = model_of(module, frame, self._sites)
        title = unused(name, self.models)
        self.models[title] = root
        if hasattr(module, "dynamo_ctx"):
            self.hidden[title] = "torch.compile"
        found = visible(root, exact=False)
        for border in found.hidden:
            self.hidden[joined(title, uncompiled_name(border.name))] = border.why
        for inner, part in found.names.items():
            self._mark(part, joined(title, uncompiled_name(inner)))
        if module not in self._marks:
            self._mark(module, title)

    def _mark(self, module: Any, name: str) -> None:
        mark = self._marks[module] = f"{MODULE}{name}"
        self.kinds[mark] = kind(module)


_NO_CODE = compile("", "<frozen>", "exec")
