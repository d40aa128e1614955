"""One piece of advice: its level, its subject and its text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

KIB, MIB, GIB = 2**10, 2**20, 2**30


class Level(StrEnum):
    """The severity of advice."""

    PROBLEM = "problem"
    """Training does not work here."""
    WARNING = "warning"
    """Training works, but is slower than possible, or will fail later."""
    HINT = "hint"
    """Something that not every training needs is unused or does not work."""


@dataclass(frozen=True, slots=True)
class Advice:
    """An action, and the fact it follows from."""

    level: Level
    slug: str
    """Stable identifier across versions."""
    about: str
    """Name of the sheet's line with the fact, such as "threads"."""
    text: str
    """The fact and the action; one or two clauses without a full stop."""
    command: str = ""
    """A command that carries out the action; "" if there is none."""


def size(count: float) -> str:
    """Return a number of bytes as text.

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
