"""What advice is: how bad, about what, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

KIB, MIB, GIB = 2**10, 2**20, 2**30


class Level(StrEnum):
    """How bad it is."""

    PROBLEM = "problem"
    """Training does not work here as it is."""
    WARNING = "warning"
    """Training works, and is slower than it could be or dies of it later."""
    HINT = "hint"
    """Something is not used, or does not work, that not every training needs."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do, and the fact it follows from."""

    level: Level
    slug: str
    """Stays the same between versions."""
    about: str
    """The line of the sheet that shows the fact, such as "threads"."""
    text: str
    """What is the case and what to do; one or two clauses without a full stop."""
    command: str = ""
    """What to type, where that is all there is to do."""


def size(count: float) -> str:
    """Return a number of bytes for people.

    >>> size(64 * MIB), size(8.5 * GIB), size(700), size(1200 * GIB), size(32.04 * GIB)
    ('64 MiB', '8.5 GiB', '700 bytes', '1200 GiB', '32 GiB')
    """
    if count < KIB:
        return f"{count:.0f} bytes"
    unit, name = (GIB, "GiB") if count >= GIB else (MIB, "MiB") if count >= MIB else (KIB, "KiB")
    amount = count / unit
    return f"{amount:.1f}".removesuffix(".0") + f" {name}" if amount < 100 else f"{amount:.0f} {name}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "thread"), plural(4, "processor")
    ('1 thread', '4 processors')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
