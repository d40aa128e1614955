"""What all events are: facts with a place in a user's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a user's file: the whole expression that was running, as the traceback would underline it.

    Lines count from 1, columns from 0 (as `ast` does). ``column`` and ``end_column`` are -1 where unknown.
    """

    path: str
    line: int
    column: int = -1
    end_line: int = -1
    end_column: int = -1
    function: str = "<module>"

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}"
        return place if self.column < 0 else f"{place}:{self.column + 1}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """The root of all events. Compared by identity: the watching session interns equal ones."""

    absent: ClassVar[str] = "not seen"
    """What a report says about a run without any event of this kind."""
