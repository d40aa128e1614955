"""Callback after the program's own ``import torch``, without a trace in the program.

Importing torch before the program would change its number of threads, and so its sums, if it sets ``OMP_NUM_THREADS``
first. A wrapped loader would appear in the traceback of a failed import. So the finder returns the module's own spec,
with its class replaced by one that detects when importlib sets the module to initialised.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class FirstImport(MetaPathFinder):
    """Calls a function once, right after the first import of a module; `install` it before the program runs."""

    def __init__(self, name: str, imported: Callable[[], None]) -> None:
        self.name = name
        self._imported = imported
        self._spec_class = _noticing(self)

    def install(self) -> None:
        """Start to wait for the module; call the function at once if it is already imported."""
        if self.name in sys.modules:
            self._imported()
        else:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(fullname, path, target)
            if spec is not None:
                if type(spec) is ModuleSpec:
                    spec.__class__ = self._spec_class
                return spec
        return None

    def done(self, spec: ModuleSpec) -> None:
        """Handle the end of the module's import, successful or not."""
        spec.__class__ = ModuleSpec
        module = sys.modules.get(self.name)
        if module is not None and module.__spec__ is spec and self in sys.meta_path:
            self.remove()
            self._imported()


def _noticing(hook: FirstImport) -> type[ModuleSpec]:
    class Noticing(ModuleSpec):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "_initializing" and not value:
                hook.done(self)

    Noticing.__name__ = Noticing.__qualname__ = "ModuleSpec"
    return Noticing
