"""Allocations and releases of a step in their order, and the moments of the step that can be its peak."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

Moment = tuple[int, int, int]
"""Bytes at one time: gradients, activations (allocated before a backward pass), and everything else."""

BACKWARD, UPDATE, START = "backward", "update", "start"
"""Marks: the begin of a backward pass and of an optimizer step, and of the step that is measured."""
END = " end"
"""A mark's name with this suffix is its end."""


class StorageLog:
    """A log of allocations, releases and marks.

    Each allocation gets a number. Numbers are those of storages, also if a later one has the same address.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[int, int]] = []
        self._marks: list[tuple[int, str]] = []
        self._sizes: dict[int, int] = {}

    def allocate(self, size: int) -> int:
        """Log an allocation; return its number."""
        number = len(self._sizes)
        self._sizes[number] = size
        self._entries.append((number, size))
        return number

    def release(self, number: int) -> None:
        """Log the release of an allocation."""
        self._entries.append((number, -self._sizes[number]))

    def mark(self, name: str) -> None:
        """Mark this place of the log."""
        self._marks.append((len(self._entries), name))

    def moments(self, gradients: Collection[int], fixed: Collection[int]) -> dict[str, Any]:
        """Return the moments of the measured step that can be its peak.

        Args:
            gradients: numbers of gradients.
            fixed: numbers of parameters, buffers and optimizer state, which are left out.

        Returns:
            "passes" and "updates", moments outside and inside of optimizer steps; "activations", the most bytes kept at
            the begin of a backward pass; "before", bytes at the begin of the step.
        """
        marks = [*self._marks, (len(self._entries), "")]
        open_: dict[str, int] = {BACKWARD: 0, UPDATE: 0}
        kind: dict[int, int] = {}
        held = [0, 0, 0]
        seen: tuple[list[Moment], list[Moment]] = ([], [])
        activations = before = index = 0
        measured = False
        for until, mark in marks:
            for number, size in self._entries[index:until]:
                if number in fixed:
                    continue
                if number not in kind:
                    later = open_[BACKWARD] or open_[UPDATE]
                    kind[number] = 0 if number in gradients else 2 if later else 1
                held[kind[number]] += size
                if measured:
                    seen[bool(open_[UPDATE])].append((held[0], held[1], held[2]))
            index = until
            if mark == START:
                measured, before = True, sum(held)
            elif mark.removesuffix(END) in open_:
                open_[mark.removesuffix(END)] += -1 if mark.endswith(END) else 1
            if measured:
                seen[bool(open_[UPDATE])].append((held[0], held[1], held[2]))
                if mark == BACKWARD:
                    activations = max(activations, held[1])
        return {
            "passes": frontier(seen[0]),
            "updates": frontier(seen[1]),
            "activations": activations,
            "before": before,
        }


def frontier(moments: Iterable[Moment]) -> list[Moment]:
    """Return the moments that can be the peak: those without another one with as many gradients and as much else.

    >>> frontier([(0, 9, 0), (0, 5, 0), (4, 5, 1), (4, 0, 1)])
    [(4, 5, 1), (0, 9, 0)]
    """
    found: list[Moment] = []
    most = -1
    for moment in sorted(moments, key=lambda m: (-m[0], -m[1] - m[2])):
        if moment[1] + moment[2] > most:
            found.append(moment)
            most = moment[1] + moment[2]
    return found
