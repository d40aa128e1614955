"""Every fix by its rule, found by listing the families."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from truestep.fixes import families
from truestep.fixes.fix import Fix


@functools.cache
def all_fixes() -> dict[str, type[Fix]]:
    """Return the fix of each rule that has one, sorted by rule.

    >>> all_fixes()["forward-called-directly"].does
    'calls the module instead of its `forward`'
    """
    found: dict[str, type[Fix]] = {}
    for info in pkgutil.iter_modules(families.__path__):
        module = importlib.import_module(f"{families.__name__}.{info.name}")
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Fix) and kind.__module__ == module.__name__:
                for rule in kind.rules:
                    if rule in found:
                        raise TypeError(f"two fixes for {rule!r}: {found[rule].__name__} and {kind.__name__}")
                    found[rule] = kind
    return dict(sorted(found.items()))
