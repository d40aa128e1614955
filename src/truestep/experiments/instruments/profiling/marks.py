"""Name the modules of a script, and put a mark of torch's profiler around each of their calls."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

from truestep.debugging._visible import joined, kind, visible
from truestep.debugging.timings import DATA, MODULE
from truestep.probes.context.local_variables import variables
from truestep.probes.context.sites import Sites
from truestep.seams.wrappers import uncompiled_name, unwrapped


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
        from torch import nn

        own = root = unwrapped(module)
        name = ""
        above = frame
        while above is not None:  # a method of the model that calls a part of it
            owner = variables(above).get("self") if self._sites.kind(above.f_code) == 0 else None
            if isinstance(owner, nn.Module) and any(part is root for part in owner.modules()):
                root, frame = owner, above
            above = above.f_back
        while frame is not None and not name:
            if self._sites.kind(frame.f_code) == 0:
                name = _named(root, frame) or (_named(module, frame) if root is own else "")
            frame = frame.f_back
        name = name or kind(root).lower()
        title, number = name, 1
        while title in self.models:
            number += 1
            title = f"{name}_{number}"
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


def _named(module: Any, frame: FrameType) -> str:
    """Return the name of the variable or attribute of `self` that holds a module in a frame; "" for none."""
    local = variables(frame)
    for names in (local, dict(frame.f_globals)):
        for name, value in names.items():
            if value is module and not name.startswith("__") and name != "self":
                return name
    owner = local.get("self")
    for names in (getattr(owner, "__dict__", {}), getattr(owner, "_modules", {})):
        for name, value in list(names.items()):
            if value is module:
                return f"self.{name}"
    return ""


_NO_CODE = compile("", "<frozen>", "exec")
