"""Faults planted in internals: functions and methods that raise, under every name by which they were imported."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterable
from types import FunctionType
from typing import Any

import pytest

MOST_AT_ONCE = 20
"""As many internal errors are recorded."""


class Planted(Exception):
    """The fault."""


def plant(patch: pytest.MonkeyPatch, name: str, modules: Iterable[Any], calls: list[str], once: bool = False) -> None:
    """Make an internal, "module:function" or "module:Class.method", raise always or at its first call.

    Args:
        patch: undoes it.
        name: the internal.
        modules: where a function may have been imported.
        calls: gets the name at each error.
        once: True for the first call alone.
    """

    def raising(*args: Any, **kwargs: Any) -> Any:
        if once and name in calls:
            return original(*args, **kwargs)
        calls.append(name)
        raise Planted(name)

    place, _, path = name.partition(":")
    owner: Any = importlib.import_module(place)
    first, _, method = path.partition(".")
    if method:
        owner = getattr(owner, first)
        written = vars(owner)[method]
        bound = isinstance(written, staticmethod | classmethod)
        original: Any = written.__get__(None, owner) if bound else written
        patch.setattr(owner, method, staticmethod(raising) if bound else raising)
        return
    original = getattr(owner, first)
    for module in modules:
        for known, value in list(vars(module).items()):
            if value is original:
                patch.setattr(module, known, raising)


def reached(names: Iterable[str], run: Callable[[], object]) -> frozenset[str]:
    """Return the internals that are called when nothing raises; the others cannot fail in this run."""
    called: set[object] = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)
    return frozenset(name for name in names if _body(name).__code__ in called)


def _body(name: str) -> FunctionType:
    place, _, path = name.partition(":")
    owner: Any = importlib.import_module(place)
    first, _, method = path.partition(".")
    found = vars(getattr(owner, first))[method] if method else getattr(owner, first)
    return inspect.unwrap(getattr(found, "__func__", found))  # type: ignore[no-any-return]


def in_turns(names: Iterable[str], fail: Callable[[Collection[str]], Iterable[str]]) -> None:
    """Let internals fail together; those that were not reached because an earlier one raised have a later turn.

    Args:
        names: the internals.
        fail: runs a program while internals raise once, and returns those that were called.
    """
    left = sorted(names)
    while left:
        turn, left = left[:MOST_AT_ONCE], left[MOST_AT_ONCE:]
        called = set(fail(turn))
        if called:  # else they are called only when a session starts
            left += [name for name in turn if name not in called]
