"""The window of gradient accumulation: the divisor of a loss, and the correction at the window's end.

A window holds the micro-steps between two updates. Every loss is divided before its backward pass, so that sums stay
small in fp16: by `accumulate` if losses are means, by the first weight times `accumulate` if they are sums. If the
window closes with another total (a partial last window, uneven weights), its gradients are multiplied once by the ratio
of divisor and total. A full window with equal weights needs no correction: it equals, bit for bit, a loop that divides
every loss by `accumulate`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf, nan
from typing import TYPE_CHECKING

from truestep.errors import BadLoss, SplitWindow
from truestep.loop.process.stacklevel import outside

if TYPE_CHECKING:
    import torch

    Number = int | float | torch.Tensor
    Divided = float | torch.Tensor


def _alone(value: Divided) -> Divided:
    return value


class Window:
    """Counts the micro-steps of one update and their weights.

    Args:
        accumulate: micro-steps in a full window, at least 1.
        mean: returns the mean of a number over ranks.

    Example:
        >>> window = Window(4)
        >>> [window.divisor(None) for _ in range(2)]
        [4, 4]
        >>> window.correction()  # two of four: every loss was divided by twice too much
        2.0
        >>> window.close()
        >>> window.is_open
        False
    """

    __slots__ = (
        "_before_body",
        "_mean",
        "_typical",
        "accumulate",
        "averaged",
        "closed_early",
        "each_body",
        "micro_steps",
        "micro_steps_ever",
        "reference",
        "total",
    )

    def __init__(self, accumulate: int = 1, mean: Callable[[Divided], Divided] = _alone) -> None:
        self.accumulate = accumulate
        self.averaged = False
        """True if a backward pass averaged the gradients over ranks."""
        self._mean = mean
        self._typical: Divided | None = None
        """Mean weight of a micro-step in the last window, the same on all ranks; None before its end."""
        self.micro_steps = 0
        """Backward passes since the window opened."""
        self.micro_steps_ever = 0
        """Backward passes in this process."""
        self.each_body = 0
        """Micro-steps in each body of the loops so far; 0 before the first micro-step, -1 if bodies differ."""
        self.closed_early = False
        """True if it was closed at the presumed last micro-step of its loop."""
        self._before_body = 0
        self.reference: Divided | None = None
        """Divisor of weighted losses; None while the losses are means."""
        self.total: Divided = 0.0

    @property
    def is_open(self) -> bool:
        """True if gradients wait for an update."""
        return self.micro_steps > 0

    @property
    def is_full(self) -> bool:
        """True if it has `accumulate` micro-steps."""
        return self.micro_steps >= self.accumulate

    @property
    def ends_body(self) -> bool:
        """Return True if the body has made as many micro-steps as each body before it."""
        return self.micro_steps_ever - self._before_body == self.each_body

    def begin_body(self) -> None:
        """Count the micro-steps of the first body of a loop from here."""
        self._before_body = self.micro_steps_ever
        self.closed_early = False

    def end_body(self) -> None:
        """Compare the micro-steps of a body with those of earlier bodies; a body without micro-steps is ignored."""
        made = self.micro_steps_ever - self._before_body
        if made and made != self.each_body:
            self.each_body = -1 if self.each_body else made
        self._before_body = self.micro_steps_ever

    def warn_of_rest(self) -> None:
        """Warn of micro-steps after the presumed last one of the loop."""
        if self.closed_early:
            warnings.warn(
                "the last body of the loop made more micro-steps than those before it, so its window was split into "
                "two updates; make as many in each body, or call both: run.backward(loss), run.optimizer_step()",
                SplitWindow,
                stacklevel=outside(),
            )

    def divisor(self, weight: Number | None) -> Divided | int:
        """Count a micro-step, and return the divisor of its loss.

        Args:
            weight: content of a summed loss (tokens, samples), a number or a tensor of no dimension; None for a mean.

        Raises:
            BadLoss: weighted and unweighted losses in one window, or a weight that is negative or not finite. A
                weight on an accelerator is not read.
        """
        if self.micro_steps and (weight is None) != (self.reference is None):
            raise BadLoss(
                "one window holds losses with weight= and without: their sum has no mean",
                expected="expected all losses of a window with weight=, or all without",
                remedy="pass weight= with every loss",
            )
        if weight is not None and getattr(weight, "is_cpu", True):
            weight = _number(weight)
        self.micro_steps += 1
        self.micro_steps_ever += 1
        self.averaged = False
        if weight is None:
            return self.accumulate
        if self.reference is None:  # any number does, if all ranks have the same
            first = self._first(weight)
            self.reference = _at_least_one(first) * self.accumulate
            self.total = 0.0
        self.total = self.total + weight
        return self.reference

    def follow(self, leader: Window) -> None:
        """Copy the counts of the window of the first optimizer of the same losses."""
        self.micro_steps_ever += 1
        self.micro_steps, self.reference, self.total = leader.micro_steps, leader.reference, leader.total

    def correction(self) -> Divided | None:
        """Return the factor that turns the gradients of the window into those of its mean; None if they are already.

        A window without weight (every token masked) has gradients of zero, which stay zero.
        """
        if self.reference is None:
            if self.micro_steps >= self.accumulate:
                return None
            return self.accumulate / self.micro_steps
        total = self._mean(self.total)  # gradients are means over ranks, and so divided by the number of ranks already
        if self._mean is not _alone:
            self._typical = total / self.micro_steps
        if isinstance(total, float) and isinstance(self.reference, float):
            return None if total == self.reference else self.reference / (total or 1.0)
        return self.reference / _at_least_one(total)

    def close(self) -> None:
        """Reset to the initial state."""
        self.micro_steps = 0
        self.reference = None
        self.averaged = False

    def _first(self, weight: Divided) -> Divided:
        """Return the weight that divides the losses of the window: the first one, or one that is equal on all ranks."""
        if self._mean is _alone:
            return weight
        if self._typical is None:
            self._typical = self._mean(weight)
        return self._typical


def _number(weight: Number) -> float:
    """Return a weight as a number."""
    try:
        number = float(weight)
    except (TypeError, ValueError, RuntimeError):
        number = nan
    if not 0 <= number < inf:
        raise BadLoss(
            f"a loss was given the weight {weight!r}",
            expected="expected a finite number of at least 0",
            remedy="pass the number of summed terms: weight=mask.sum(), or weight=len(x)",
        )
    return number


def _at_least_one(weight: Divided) -> Divided:
    """Return the weight, or 1 for a weight of zero; without reading a tensor."""
    if isinstance(weight, float):
        return weight or 1.0
    return weight + (weight == 0)
