"""When a run is over, and how often it saves: in epochs, in steps and by the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass

from truestep.errors import BadSettings


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run is over, and how often it saves.

    Attributes:
        max_epochs: passes of `run.epochs()`; None for no limit.
        max_steps: steps; None for no limit.
        save_every_n_steps: a checkpoint after every so many steps; None for none of these.
        save_every_n_minutes: a checkpoint whenever the last one is so old; None for none of these.
        max_seconds: time of this process; None for no limit.
    """

    max_epochs: int | None = None
    max_steps: int | None = None
    save_every_n_steps: int | None = None
    save_every_n_minutes: float | None = None
    max_seconds: float | None = None


class Clock:
    """The time of a process, by which it saves and ends.

    Args:
        limits: of the run.
    """

    def __init__(self, limits: Limits) -> None:
        self._begun = self._saved = time.monotonic()
        self._every = None if limits.save_every_n_minutes is None else 60 * limits.save_every_n_minutes
        self._most = limits.max_seconds

    def saved(self) -> None:
        """Note that a checkpoint was written."""
        self._saved = time.monotonic()

    @property
    def is_save_due(self) -> bool:
        """Return True if the last checkpoint is as old as one may be."""
        return self._every is not None and time.monotonic() - self._saved >= self._every

    @property
    def is_over(self) -> bool:
        """Return True if the time of this process is over."""
        return self._most is not None and time.monotonic() - self._begun >= self._most


def seconds(duration: str | float, name: str) -> float:
    """Return a duration in seconds.

    Args:
        duration: seconds, or days, hours, minutes and seconds with colons, of which the first may be left out.
        name: the setting, for the message.

    Raises:
        BadSettings: it is neither, or not above 0.

    Example:
        >>> seconds("00:12:00:00", "max_time"), seconds("1:30", "max_time"), seconds(90, "max_time")
        (43200.0, 90.0, 90.0)
    """
    total = 0.0
    try:
        if isinstance(duration, bool):
            raise ValueError
        parts = [float(part) for part in str(duration).split(":")]
        units = (1, 60, 3600, 86400)[: len(parts)]
        total = sum(part * unit for part, unit in zip(reversed(parts), units, strict=True))
        total = total if min(parts) >= 0 else 0.0
    except ValueError:
        pass
    if not 0 < total < float("inf"):
        raise BadSettings(
            f"{name} is {duration!r}",
            expected='a number of seconds above 0, or a text as "00:12:00:00" (days, hours, minutes, seconds)',
            remedy=f'pass {name}="12:00:00" for twelve hours',
        )
    return total
