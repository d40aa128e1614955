"""Base class of events, and sites: places in a user's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

RepeatKind = Literal["never", "by call", "by value"]
"""How coasting recognizes a repeated event."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a user's file: the whole expression that was running, as a traceback would underline it.

    Lines count from 1, columns from 0 in bytes of UTF-8 (as in `ast`). ``column``, ``end_line`` and ``end_column`` are
    -1 if unknown.
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
    """Base class of all events. Compared by identity: the watching session interns equal events."""

    absent: ClassVar[str] = "not seen"
    """Reason that a report gives for a run without any event of this kind."""
    repeats: ClassVar[RepeatKind] = "never"
    """How coasting recognizes an event of a repeated step: by the key of its call, if it depends on the state of
    gradients, or by comparing it. A step with an event that never repeats is observed in full."""
    costly: ClassVar[bool] = False
    """True if its close reading stops once supervision exceeds its budget."""
