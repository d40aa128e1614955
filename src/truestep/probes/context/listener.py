"""The functions of a session that the probes call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from truestep.events import Event, Site


def _ignored(event: Event) -> None:
    pass


def _nothing() -> None:
    pass


def left_alone(process: Any, site: Site | None) -> bool:
    """Return False: the process is not supervised."""
    return False


@dataclass(frozen=True, slots=True)
class Listener:
    """Gets the events of the probes; ignores them by default.

    Attributes:
        take: called with every event, except for those that close a step.
        step: called with the event that closes a step.
        relieve: called outside of steps now and then, so that the events of a long evaluation do not pile up.
        stop: called where it is safe to end the script.
        starts: called before the program starts a process, with its line; returns True if the process is supervised.
    """

    take: Callable[[Event], None] = _ignored
    step: Callable[[Event], None] = _ignored
    relieve: Callable[[], None] = _nothing
    stop: Callable[[], None] = _nothing
    starts: Callable[[Any, Site | None], bool] = left_alone
