"""Find the changes of a package: every class with a name in its modules."""

from __future__ import annotations

import importlib
import pkgutil

from truestep.experiments.changes.parts.change import Change


def changes_in(package: str) -> list[type[Change]]:
    """Import the modules of a package, and return the changes that they define; base classes have no name.

    Returns:
        The classes in the order of modules by name, and in the order of definition within a module.

    >>> [kind.name for kind in changes_in("truestep.experiments.changes.harness")][:2]
    ['controlled', 'first-batches']
    """
    found: list[type[Change]] = []
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        module = importlib.import_module(f"{package}.{info.name}")
        found += [
            kind
            for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, Change) and kind.__module__ == module.__name__
        ]
    return [kind for kind in found if "name" in vars(kind)]
