"""Modules that are imported, and are not in `sys.modules` before the program imports them."""

from __future__ import annotations

import atexit
import functools
import gc
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence, Set
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from types import FunctionType, ModuleType
from typing import Any


class Hidden(MetaPathFinder):
    """Hides the modules of some imports; an import brings a module back with the modules that it uses.

    Args:
        kept: names of the modules that stay: those of a Python that has imported nothing.
    """

    def __init__(self, kept: set[str]) -> None:
        self._kept = kept
        self._stages: dict[str, int] = {}
        self._filters: dict[str, list[Any]] = {}
        self._modules: dict[str, ModuleType] = {}
        self._order: dict[str, int] = {}
        self._uses: dict[str, set[str]] = {}
        self._at_exit: list[tuple[str, Callable[[], object]]] = []

    def stage(self, name: str) -> None:
        """Import a module, and remember it with everything that came with it."""
        import warnings

        before, register = list(warnings.filters), atexit.register
        atexit.register = self._register_later  # type: ignore[assignment]
        __import__(name)
        atexit.register = register
        self._filters[name] = [entry for entry in warnings.filters if entry not in before]
        new = sys.modules.keys() - self._kept - self._stages.keys()
        self._stages |= dict.fromkeys(new, len(self._filters))
        self._uses[name] = new

    def close(self) -> None:
        """Find out which module uses which: by the names in it of modules imported by then."""
        self._modules = {name: module for name, module in sys.modules.items() if name in self._stages}
        self._order = {name: number for number, name in enumerate(self._modules)}
        for name in self._modules:
            self._uses.setdefault(name, set()).update(self._used(name))
        for info in vars(weakref.finalize)["_registry"].values():  # of torch's libraries, which a process leaves alone
            info.atexit = False

    def take_out(self) -> None:
        """Take the modules out of `sys.modules`."""
        for name in self._modules:
            sys.modules.pop(name, None)

    def hide(self) -> None:
        """Bring each module back when it is imported.

        After the last function that was registered with `atexit` they are taken out again: the interpreter does not
        tear down modules that the program did not import.
        """
        atexit.register(self.take_out)
        sys.meta_path.insert(0, self)
        self._register(self._kept)

    def leave(self) -> None:
        """Run the functions that are registered with `atexit`, and forget the modules of the program."""
        atexit.unregister(self.take_out)
        vars(atexit)["_run_exitfuncs"]()
        names = [
            name for name in sys.modules if name == "__main__" or not (name in self._modules or name in self._kept)
        ]
        mine = [weakref.ref(sys.modules[name]) for name in names if issubclass(type(sys.modules[name]), ModuleType)]
        for name in names:
            sys.modules[name] = None  # type: ignore[assignment]
        gc.collect()
        for module in reversed(mine):
            _clear(module())
        gc.collect()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the spec of a hidden module where the usual search finds the same file, else None."""
        module = self._modules.get(name)
        spec = getattr(module, "__spec__", None)
        if module is None or spec is None or not self._is_found(name, spec, path):
            return None
        spec.loader = _Back(self, module, spec.loader)
        return spec

    def back(self, name: str) -> None:
        """Add the modules used by a module to `sys.modules`, first ones of stages by an import, which others notice."""
        import warnings

        used = self._closure(name) - sys.modules.keys()
        for root in self._filters if used else ():
            if root in used:
                __import__(root)
        rest = used - sys.modules.keys()
        for one in sorted(rest & self._modules.keys(), key=self._order.__getitem__):
            sys.modules[one] = self._modules[one]
        self._register(rest | {name})
        if self._filters.get(name):
            warnings.filters[:0] = self._filters[name]
            vars(warnings)["_filters_mutated"]()

    def _register_later(self, call: Any, *arguments: Any, **named: Any) -> Any:
        self._at_exit.append((sys._getframe(1).f_globals["__name__"], functools.partial(call, *arguments, **named)))
        return call

    def _register(self, names: Set[str]) -> None:
        """Register the exit functions of the modules that are imported by now."""
        for name, call in self._at_exit:
            if name in names:
                atexit.register(call)

    def _closure(self, name: str) -> set[str]:
        """Return the modules that a module uses, without those behind modules that are back: these are back too."""
        met, rest = {name}, [name]
        while rest:
            new = self._uses[rest.pop()] - met
            met |= new
            rest += [one for one in new if sys.modules.get(one) is not self._modules.get(one)]
        return met - {name}

    def _used(self, name: str) -> Iterator[str]:
        stage, of_python = self._stages[name], _is_of_python(name)
        for value in list(vars(self._modules[name]).values()):
            if issubclass(type(value), ModuleType):
                used = value.__name__
            else:
                used = _home(value)
            if isinstance(used, str) and self._stages.get(used, sys.maxsize) <= stage:
                if not of_python or _is_of_python(used):  # others may have put something into it
                    yield used
        while "." in name:
            name = name.rpartition(".")[0]
            yield name

    def _is_found(self, name: str, spec: ModuleSpec, path: Sequence[str] | None) -> bool:
        package = self._modules.get(name.rpartition(".")[0])
        if package is not None and path is vars(package).get("__path__") and spec.origin not in ("built-in", "frozen"):
            return True  # the package was found where it is: its modules are beside it
        for finder in (BuiltinImporter, FrozenImporter, PathFinder):
            found = finder.find_spec(name, path)
            if found is not None:
                return found.origin == spec.origin
        return any(
            (found := finder.find_spec(name, path, None)) is not None and found.origin == spec.origin
            for finder in sys.meta_path
            if finder not in (self, BuiltinImporter, FrozenImporter, PathFinder)
        )


def _clear(module: ModuleType | None) -> None:
    """Remove the names of a module that others still hold, in the order in which Python does."""
    names = {} if module is None else vars(module)
    for name in list(names):
        if name.startswith("_") and not name.startswith("__"):
            names[name] = None
    for name in list(names):
        if name != "__builtins__":
            names[name] = None


def _home(value: object) -> object:
    """Return the name of the module where a function, a class or the class of an object was written."""
    kind = type(value)
    if issubclass(kind, FunctionType | type(functools.cache(_is_of_python))):
        return value.__module__
    return vars(value if issubclass(kind, type) else kind).get("__module__")


def _is_of_python(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


class _Back(Loader):
    """Loads a module that is there already."""

    def __init__(self, hidden: Hidden, module: ModuleType, loader: Any) -> None:
        self._hidden, self._module, self._loader = hidden, module, loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        spec.loader = self._loader
        self._hidden.back(spec.name)
