"""When a series of values is alarming: each rule reads one value after another and says what happened, or nothing.

Rules are silent in doubt. What is usual is learned from the series itself, by medians and by the largest value of a
window, so that noise, heavy tails and mixtures of easy and hard batches are usual where they have been seen.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from statistics import median
from typing import Any, Protocol

_WINDOW = 200
"""Values that say what is usual."""
_LEAST = 100
"""Values before the first judgement: a beginning is not usual."""
_RENEWED = 20
"""Values after which the bound is computed anew."""
_FIRST = 20
"""Values whose median is where the series began."""
_PAUSE = 400
"""Values after a spike in which no other one is told."""
_NORMAL = 1.4826
"""From the median of absolute deviations to the standard deviation of a normal distribution."""


class AlertRule(Protocol):
    """One reason for an alert, for one series."""

    kind: str

    def look(self, value: float) -> str | None:
        """Read the next value; return what happened, as the end of a sentence that begins with the name."""

    def pause(self) -> None:
        """Tell nothing for a while that a jump of the learning rate explains."""

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to go on judging as this one would."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up where another run was."""


class _Kept:
    """A rule whose state is plain attributes, lists and windows."""

    def pause(self) -> None:
        """Go on: what a jump of the learning rate explains is no matter here."""

    def state_dict(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, deque) else value for key, value in vars(self).items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for key, value in state.items():
            own = getattr(self, key, None)
            setattr(self, key, deque(value, own.maxlen) if isinstance(own, deque) else value)


class NotFinite(_Kept):
    """NaN or infinity; told again after a hundred finite values.

    Example:
        >>> rule = NotFinite()
        >>> [rule.look(value) for value in (1.0, math.nan, math.nan)]
        [None, 'is nan', None]
    """

    kind = "not-finite"

    def __init__(self) -> None:
        self.quiet = 0

    def look(self, value: float) -> str | None:
        if math.isfinite(value):
            self.quiet = max(0, self.quiet - 1)
            return None
        told, self.quiet = self.quiet, 100
        return None if told else f"is {value}"


class Spike(_Kept):
    """A loss that jumps and stays up: three of the last five values far above what was usual.

    Far is above the median of the last 200 values by more than three times what their largest value was, ten standard
    deviations (from the median of absolute deviations), a quarter of the median, and a tenth of what the loss had
    fallen by.

    Args:
        fallen: judge only a loss that has fallen by a tenth: before, there is nothing to lose.
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
        """Tell nothing for a while: the learning rate jumped."""
        self.quiet = _PAUSE

    def look(self, value: float) -> str | None:
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
    """A gradient norm far above what was usual, once.

    Far is twenty times the median of the last 200 norms, eight standard deviations of their logarithms, a tenth of
    the first norms, and three times what was ever seen, as a multiple of the median of its time. The deviation is that
    of the larger half: norms of batches that are learnt go down to nothing. Norms that are zero or not finite are left
    out.
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
        """Tell nothing for a while: the learning rate jumped."""
        self.quiet = _PAUSE

    def look(self, value: float) -> str | None:
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
        self._renew()  # with the largest multiple, which is this one
        if self.quiet:
            return None
        self.quiet = _PAUSE
        return f"is {value:.4g}, {times:.0f} times what it was over the last {len(self.window) - 1} values"

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
    """A value that gets worse so many times in a row, by more than it scatters.

    It ends worse than the five values before it began, and five standard deviations from where it began; these are read
    from second differences, in which a trend does not show. Told again after a new best value.

    Args:
        times: how many times in a row.
        falling: whether to fall is to get worse, as for an accuracy.

    Example:
        >>> rule = Rising(3)
        >>> [rule.look(value) for value in (0.9, 0.5, 0.4, 0.5, 0.6, 0.7)][-1]
        'rose 3 times in a row, from 0.4 to 0.7'
    """

    kind = "rising"

    def __init__(self, times: int, *, falling: bool = False) -> None:
        self.times = times
        self.sign = -1 if falling else 1
        self.window: deque[float] = deque(maxlen=max(40, 2 * times))
        self.row = 0
        self.best = math.inf
        self.told = False

    def look(self, value: float) -> str | None:
        if not math.isfinite(value):
            return None
        window, value = self.window, self.sign * value
        self.row = self.row + 1 if window and value > window[-1] else 0
        window.append(value)
        if value < self.best:
            self.best, self.told = value, False
        if self.row < self.times or self.told:
            return None
        row = min(self.row, len(window) - 1)
        begun, before = window[-1 - row], list(window)[-6 - row : -1 - row]
        if len(before) == 5 and (value <= max(before) or value - begun <= 5 * _scatter_of_steps(window)):
            return None
        self.told = True
        verb = "rose" if self.sign > 0 else "fell"
        return f"{verb} {row} times in a row, from {self.sign * begun:.4g} to {self.sign * value:.4g}"


class Bound(_Kept):
    """A value beyond a bound; told again after it was back.

    Args:
        limit: the bound.
        below: whether the value is to stay above it.
    """

    kind = "bound"

    def __init__(self, limit: float, *, below: bool = False) -> None:
        self.limit = limit
        self.below = below
        self.out = False

    def look(self, value: float) -> str | None:
        was, self.out = self.out, value < self.limit if self.below else value > self.limit
        if was or not self.out:
            return None
        return f"is {value:.4g}, {'below' if self.below else 'above'} {self.limit:g}"


def _usual(values: Iterable[float]) -> tuple[float, float]:
    """Return the median, and the standard deviation as the median of absolute deviations tells it."""
    ordered = sorted(values)
    middle = median(ordered)
    return middle, _NORMAL * median(sorted(abs(value - middle) for value in ordered))


def _scatter_of_steps(values: deque[float]) -> float:
    """Return the standard deviation of noise around a smooth curve, from second differences."""
    kept = list(values)
    seconds = [abs(a - 2 * b + c) for a, b, c in zip(kept, kept[1:], kept[2:], strict=False)]
    return _NORMAL * median(seconds) / math.sqrt(6) if seconds else 0.0
