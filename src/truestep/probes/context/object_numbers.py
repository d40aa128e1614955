"""Numbers of objects: events name a model or an optimizer by the number that it got when it was met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truestep.seams.refs import Ref

MOST = {"optimizer": 5000, "scheduler": 5000, "loader": 10_000, "trained model": 5000}
"""Largest number of objects of a family to distinguish: rules remember each of them, and memory must be bounded."""


class Known:
    """A numbered object: its weak reference keeps an address from being taken for another object's."""

    __slots__ = ("number", "ref")

    def __init__(self, number: int, thing: Any) -> None:
        self.number = number
        self.ref = Ref(thing)


class Numbers:
    """The numbers of the objects of each family, from 1 on.

    Args:
        full: called with the reason when a family has more objects than `MOST` allows.
    """

    def __init__(self, full: Callable[[str], None]) -> None:
        self._full = full
        self._known: dict[str, dict[int, Known]] = {}
        self._last: dict[str, int] = {}

    def of(self, family: str, thing: Any) -> tuple[int, bool]:
        """Return the number of an object in its family, and True if it is new."""
        known = self._known.setdefault(family, {})
        entry = known.get(id(thing))
        if entry is not None and entry.ref() is thing:
            return entry.number, False
        self._last[family] = number = self._last.get(family, 0) + 1
        if number > MOST.get(family, number):
            self._full(f"more than {MOST[family]:,} {family}s came and went")
        known[id(thing)] = Known(number, thing)
        if number % 256 == 0:
            for key in [key for key, old in known.items() if old.ref() is None]:
                del known[key]
        return number, True

    def known(self, family: str, thing: Any) -> int | None:
        """Return the number of an object that was met before, None for any other."""
        entry = self._known.get(family, {}).get(id(thing))
        return entry.number if entry is not None and entry.ref() is thing else None

    def count(self, family: str) -> int:
        """Return the number of objects of a family so far."""
        return self._last.get(family, 0)

    def alive(self, family: str) -> list[Any]:
        """Return the objects of a family that are still alive."""
        things = [entry.ref() for entry in list(self._known.get(family, {}).values())]
        return [thing for thing in things if thing is not None]

    def forget(self) -> None:
        """Forget every object: observation has ended."""
        self._known.clear()
