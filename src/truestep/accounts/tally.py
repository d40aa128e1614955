"""Counts that can be repeated: steps that were seen before are not shown again, only their number is known."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Tally(Generic[Key]):
    """Counts by key.

    >>> tally: Tally[str] = Tally()
    >>> tally.add("made")
    >>> changes = tally.cut()
    >>> tally.repeat(changes, 3)
    >>> tally["made"]
    4
    """

    __slots__ = ("_changes", "_counts")

    def __init__(self) -> None:
        self._counts: dict[Key, int] = {}
        self._changes: dict[Key, int] = {}

    def add(self, key: Key, times: int = 1) -> None:
        """Add to the count of a key."""
        self._counts[key] = self._counts.get(key, 0) + times
        self._changes[key] = self._changes.get(key, 0) + times

    def cut(self) -> tuple[tuple[Key, int], ...]:
        """Return the counts added since the last call."""
        changes, self._changes = tuple(self._changes.items()), {}
        return changes

    def repeat(self, changes: Iterable[tuple[Key, int]], times: int) -> None:
        """Add changes ``times`` more times."""
        for key, count in changes:
            self._counts[key] = self._counts.get(key, 0) + count * times

    def __getitem__(self, key: Key) -> int:
        return self._counts.get(key, 0)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._counts)
