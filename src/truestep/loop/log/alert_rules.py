"""Rules for alerts: each reads a series, one value after another, and returns a message or None.

In doubt, a rule raises no alert. The normal range is learned from the series itself, by medians and by the largest
value of a window. So noise, heavy tails and mixtures of easy and hard batches become part of it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import Any, Protocol

_WINDOW = 200
"""Number of last values that define the normal range."""
_LEAST = 100
"""Number of values before the first alert: the start of a series is not typical."""
_RENEWED = 20
"""Number of values between two computations of the bound."""
_FIRST = 20
"""Number of first values, with the initial level as their median."""
_PAUSE = 400
"""Number of values after a spike without another alert."""
_NORMAL = 1.4826
"""Ratio of the standard deviation to the median of absolute deviations in a normal distribution."""


class AlertRule(Protocol):
    """One reason for an alert, for one series."""

    kind: str

    def check(self, value: float) -> str | None:
        """Read the next value; return a message without its subject, the name of the value, or None."""

    def pause(self) -> None:
        """Suppress alerts for a while after a jump of the learning rate, if it can explain them."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state, from which a resumed run raises the same alerts."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of another run."""


class _Kept:
    """Base class of rules with a state of plain attributes, lists and windows."""

    def pause(self) -> None:
        """Do nothing: a jump of the learning rate does not explain these alerts."""

    def state_dict(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, deque) else value for key, value in vars(self).items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for key, value in state.items():
            own = getattr(self, key, None)
            setattr(self, key, deque(value, own.maxlen) if isinstance(own, deque) else value)


class NotFiniteValue(_Kept):
    """NaN or infinity; alerts again after a hundred finite values.

    Example:
        >>> rule = NotFiniteValue()
        >>> [rule.check(value) for value in (1.0, math.nan, math.nan)]
        [None, 'is nan', None]
    """

    kind = "not-finite"

    def __init__(self) -> None:
        self.quiet = 0

    def check(self, value: float) -> str | None:
        if math.isfinite(value):
            self.quiet = max(0, self.quiet - 1)
            return None
        quiet, self.quiet = self.quiet, 100
        return None if quiet else f"is {value}"


class Spike(_Kept):
    """A loss that jumps and stays up: three of the last five values are far above the normal range.

    A value is far above if its distance from the median of the last 200 values is larger than each of these: three
    times the distance of their largest value, ten standard deviations (from the median of absolute deviations), a
    quarter of the median, and a tenth of the decrease of the loss since the start.

    Args:
        fallen: raise alerts only for a loss that has decreased by a tenth; before, no progress can be lost.
    """

    kind = "spike"

    def __init__(self, *, fallen: bool = False) -> None:
        self.fallen = fallen
        self.count = 0
        self.first: list[float] = []
        self.window: deque[float] = deque(maxlen=_WINDOW)
        self.recent: deque[float] = deque()
        self.bound = math.inf
        self.usual = 0.0
        self.over = 0
        self.quiet = 0

    def pause(self) -> None:
        """Suppress alerts for a while after a jump of the learning rate."""
        self.quiet = _PAUSE

    def check(self, value: float) -> str | None:
        if not math.isfinite(value):
            return None
        self.count += 1
        if len(self.first) < _FIRST:
            self.first.append(value)
        self.recent.append(value)
        if len(self.recent) > 5:
            self.window.append(self.recent.popleft())
        if self.count % _RENEWED == 0 and len(self.window) >= _LEAST:
            self._renew()
        self.quiet = max(0, self.quiet - 1)
        above = value > self.bound
        self.over = (self.over << 1 | above) & 31
        if not above or self.over.bit_count() < 3 or self.quiet:
            return None
        self.quiet = _PAUSE
        return f"jumped to {value:.4g} and stays up; it was {self.usual:.4g} over the last {len(self.window)} values"

    def _renew(self) -> None:
        usual, scatter = _usual(self.window)
        begun = median(self.first)
        self.usual = usual
        lost = max(0.0, begun - usual)
        if self.fallen and lost <= 0.1 * abs(begun):
            self.bound = math.inf
            return
        self.bound = usual + max(3 * (max(self.window) - usual), 10 * scatter, 0.25 * abs(usual), 0.1 * lost)


class NormSpike(_Kept):
    """A single gradient norm far above the normal range.

    A norm is far above if it is larger than each of these: twenty times the median of the last 200 norms, the median
    plus eight standard deviations on a logarithmic scale, a tenth of the first norms, and three times the largest
    multiple of the median so far. The standard deviation is that of the larger half, since norms of learned batches
    approach zero. Norms that are zero or not finite are ignored.
    """

    kind = "norm-spike"

    def __init__(self) -> None:
        self.count = 0
        self.first: list[float] = []
        self.window: deque[float] = deque(maxlen=_WINDOW)
        self.bound = math.inf
        self.usual = 0.0
        self.worst = 0.0
        self.quiet = 0

    def pause(self) -> None:
        """Suppress alerts for a while after a jump of the learning rate."""
        self.quiet = _PAUSE

    def check(self, value: float) -> str | None:
        if not 0 < value < math.inf:
            return None
        self.count += 1
        if len(self.first) < _FIRST:
            self.first.append(value)
        if self.count % _RENEWED == 0 and len(self.window) >= _LEAST:
            self._renew()
        self.quiet = max(0, self.quiet - 1)
        self.window.append(value)
        if value <= self.bound:
            return None
        times = value / self.usual
        self._renew()  # this value is now the largest multiple
        if self.quiet:
            return None
        self.quiet = _PAUSE
        return f"is {value:.4g}, {times:.0f} times the median of the last {len(self.window) - 1} values"

    def _renew(self) -> None:
        logarithms = sorted(map(math.log, self.window))
        usual = median(logarithms)
        scatter = _NORMAL * median(value - usual for value in logarithms[len(logarithms) // 2 :])
        self.usual = math.exp(usual)
        self.worst = max(self.worst, max(self.window) / self.usual)
        self.bound = max(
            max(20.0, 3 * self.worst) * self.usual,
            math.exp(min(usual + 8 * scatter, 700.0)),
            0.1 * median(self.first),
        )


class Rising(_Kept):
    """A value that gets worse several times in a row, by more than its noise.

    The last value must be worse than the five values before the series, and more than five standard deviations from its
    first value. The standard deviation is computed from second differences, which are not affected by a trend. Alerts
    again after a new best value.

    Args:
        times: number of times in a row.
        falling: True if smaller is worse, as for an accuracy.

    Example:
        >>> rule = Rising(3)
        >>> [rule.check(value) for value in (0.9, 0.5, 0.4, 0.5, 0.6, 0.7)][-1]
        'rose 3 times in a row, from 0.4 to 0.7'
    """

    kind = "rising"

    def __init__(self, times: int, *, falling: bool = False) -> None:
        self.times = times
        self.sign = -1 if falling else 1
        self.window: deque[float] = deque(maxlen=max(40, 2 * times))
        self.row = 0
        self.best = math.inf
        self.reported = False

    def check(self, value: float) -> str | None:
        if not math.isfinite(value):
            return None
        window, value = self.window, self.sign * value
        self.row = self.row + 1 if window and value > window[-1] else 0
        window.append(value)
        if value < self.best:
            self.best, self.reported = value, False
        if self.row < self.times or self.reported:
            return None
        row = min(self.row, len(window) - 1)
        begun, before = window[-1 - row], list(window)[-6 - row : -1 - row]
        if len(before) == 5 and (value <= max(before) or value - begun <= 5 * _scatter_of_steps(window)):
            return None
        self.reported = True
        verb = "rose" if self.sign > 0 else "fell"
        return f"{verb} {row} times in a row, from {self.sign * begun:.4g} to {self.sign * value:.4g}"


class Bound(_Kept):
    """A value beyond a bound; alerts again after it was within the bound."""

    kind = "bound"

    def __init__(self, limit: float, *, below: bool = False) -> None:
        self.limit = limit
        self.below = below
        self.out = False

    def check(self, value: float) -> str | None:
        was, self.out = self.out, value < self.limit if self.below else value > self.limit
        if was or not self.out:
            return None
        return f"is {value:.4g}, {'below' if self.below else 'above'} {self.limit:g}"


def _usual(values: Iterable[float]) -> tuple[float, float]:
    """Return the median, and the standard deviation estimated from the median of absolute deviations."""
    ordered = sorted(values)
    middle = median(ordered)
    return middle, _NORMAL * median(sorted(abs(value - middle) for value in ordered))


def _scatter_of_steps(values: deque[float]) -> float:
    """Return the standard deviation of noise around a smooth curve, from second differences."""
    kept = list(values)
    seconds = [abs(a - 2 * b + c) for a, b, c in zip(kept, kept[1:], kept[2:], strict=False)]
    return _NORMAL * median(seconds) / math.sqrt(6) if seconds else 0.0
