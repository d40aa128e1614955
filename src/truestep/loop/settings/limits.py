"""Limits on epochs, steps and time, and the interval between checkpoints."""

from __future__ import annotations

import time
from dataclasses import dataclass

from truestep.errors import BadSettings


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a run, and the interval between its checkpoints.

    Attributes:
        max_epochs: largest number of epochs; None for no limit.
        max_steps: largest number of steps; None for no limit.
        save_every_n_steps: steps from one checkpoint to the next; None for no checkpoints by steps.
        save_every_n_minutes: minutes from one checkpoint to the next; None for no checkpoints by time.
        max_seconds: largest duration of this process, in seconds; None for no limit.
    """

    max_epochs: int | None = None
    max_steps: int | None = None
    save_every_n_steps: int | None = None
    save_every_n_minutes: float | None = None
    max_seconds: float | None = None


class Clock:
    """Elapsed time of this process and since its last checkpoint, compared with the limits."""

    def __init__(self, limits: Limits) -> None:
        self._begun = self._saved = time.monotonic()
        self._every = None if limits.save_every_n_minutes is None else 60 * limits.save_every_n_minutes
        self._most = limits.max_seconds

    def saved(self) -> None:
        """Restart the time since the last checkpoint."""
        self._saved = time.monotonic()

    @property
    def is_save_due(self) -> bool:
        """Return True if `save_every_n_minutes` have passed since the last checkpoint."""
        return self._every is not None and time.monotonic() - self._saved >= self._every

    @property
    def is_over(self) -> bool:
        """Return True if this process has run for `max_seconds`."""
        return self._most is not None and time.monotonic() - self._begun >= self._most


def seconds(duration: str | float, name: str) -> float:
    """Return a duration in seconds.

    Args:
        duration: a number of seconds, or "days:hours:minutes:seconds", where leading parts may be left out.
        name: name of the setting, for the message.

    Raises:
        BadSettings: the duration has neither form, or is not positive.

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
            f'{name} must be a positive number of seconds, or "days:hours:minutes:seconds", got {duration!r}',
            remedy=f'pass {name}="12:00:00" for twelve hours',
        )
    return total
