"""Base class of accounts: facts about one subject, counted from events, with a line in the ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, ClassVar, Generic, TypeVar

from truestep.accounts.run_objects import Objects
from truestep.accounts.tally import Tally
from truestep.events import Event, Site

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Entry:
    """An account at the end of a run."""

    text: str
    """Facts for one line of a report: at most about 64 characters, lower case, no full stop."""
    facts: dict[str, Any] = field(default_factory=dict)
    """All facts in types of JSON, with sites from `line_of`."""


class Account(ABC, Generic[Key]):
    """Facts about one subject of a run.

    Counts are kept in `tally`, whose changes are added again for each step that is only counted and not shown. Other
    attributes hold the state between events, and facts for which it is enough that they were shown once.

    Args:
        objects: models, optimizers and parameters of the run; must be up to date when `note` is called.
    """

    name: ClassVar[str]
    """Name in the ledger, one word; rules name their account by it."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.tally: Tally[Key] = Tally()

    @abstractmethod
    def note(self, event: Event) -> None:
        """Enter an event."""

    @abstractmethod
    def entry(self) -> Entry | None:
        """Return the facts for the ledger; None if the run has none."""


def place(site: Site | None) -> str:
    """Return file name and line of a site, for a line of the ledger; empty for None.

    >>> place(Site("/home/me/train.py", 32, 8))
    'train.py:32'
    """
    return "" if site is None else f"{PurePath(site.path).name}:{site.line}"


def line_of(site: Site | None) -> dict[str, Any] | None:
    """Return a site in types of JSON."""
    return None if site is None else {"path": site.path, "line": site.line, "function": site.function}


def amount(count: int, noun: str) -> str:
    """Return a count with its noun, which gets an s in the plural.

    >>> amount(1, "pass"), amount(4400, "step")
    ('1 pass', '4,400 steps')
    """
    plural = noun if count == 1 else noun + ("es" if noun.endswith(("s", "ch")) else "s")
    return f"{count:,} {plural}"
