"""Sampled steps: which steps are read closely, and the time that this takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from truestep.events import Site
from truestep.probes.context.values import has_values

_FIRST = (0, 1, 2, 3, 10, 20, 50, 51, 100, 200, 201, 500)
"""Even and odd, since two optimizers or two losses may alternate."""
_EVERY = 1009
"""A prime number, so that each step of a repeating round has its turn."""
_MOST_CHANGES = 16
_APART = 10
"""Least number of steps between two evaluations."""
_MOST_READS = 3
_MOST_LINES = 32
_READS = 4
"""Steps of each optimizer that are sampled early."""
_FREE_S = 1.0
"""Seconds of observation that are free of the budget, since the first steps are slow anyway (compiling, loading)."""


class Sampling:
    """The current step, and the choice of the steps that are read closely.

    Attributes:
        step: number of the current step.
        on: True in a sampled step.
        cost_s: time spent on close reading, in seconds.
        given_up: reason for giving it up; "" if it was not.
        budget: largest share of the time of the run that it may cost.
        checks: the time spent on checks of copies, without close reading within them.
    """

    def __init__(self, torch: Any) -> None:
        self.step = 0
        self.on = True
        self.cost_s = 0.0
        self.given_up = ""
        self.budget = 0.01
        self.checks = Clock(self)
        self._begun = time.perf_counter()
        self._torch = torch
        self._plan = set(_FIRST)
        self._changes = 0
        self._followed = 0
        self._evaluated = 0
        self._optimizers: dict[int, tuple[int, int]] = {}
        """Optimizer to its latest step, and the number of its sampled steps, up to `_READS`."""

    def advance(self, optimizer: int | None = None) -> None:
        """Begin the next step, after one of this optimizer, or by hand."""
        if optimizer is not None:
            self._plan_next(optimizer)
        self.step += 1
        self.on = self.is_sampled(self.step)

    def _plan_next(self, optimizer: int) -> None:
        """Sample the next step of an optimizer with few sampled ones, at the distance of its latest two steps."""
        latest, reads = self._optimizers.get(optimizer, (self.step, 0))
        if reads == _READS or (len(self._optimizers) == _MOST_CHANGES and optimizer not in self._optimizers):
            return
        reads += self.on
        self._optimizers[optimizer] = self.step, reads
        if reads < _READS and latest < self.step:
            self._plan.add(2 * self.step - latest)

    def is_sampled(self, step: int) -> bool:
        """Return True if a step is read closely: by its number, never by the clock, so that verdicts repeat."""
        return (step in self._plan or step % _EVERY == 0) and not self.given_up

    def extend(self) -> None:
        """Sample the next steps too: there is another optimizer, or other parameters."""
        self._changes += 1
        if self._changes <= _MOST_CHANGES:
            self._plan.update(self.step + offset for offset in _FIRST)

    def follow(self) -> None:
        """Sample the next step too, at the end of an evaluation: the training may go on with other samples.

        Calls without gradients in almost every step, as of a teacher or in a rollout, do not count.
        """
        gap, self._evaluated = self.step - self._evaluated, self.step
        if gap >= _APART and self._followed < _MOST_CHANGES:
            self._followed += 1
            self._plan.add(self.step + 1)

    def follow_closely(self, steps: int) -> None:
        """Sample each of the next steps too."""
        self._plan.update(range(self.step + 1, self.step + 1 + steps))

    def give_up(self, reason: str) -> None:
        """Read nothing closely from the next step on."""
        self.given_up = reason

    def begin(self) -> None:
        """Start the clock of the run, of which the budget is a share."""
        self._begun = time.perf_counter()

    def mind_budget(self) -> None:
        """Give up close reading if it has used more than its share of the time."""
        if self.cost_s > _FREE_S and not self.given_up and self.cost_s > self._allowed_s():
            self.give_up(f"close reading given up at step {self.step}, over the budget of {self.budget:.0%}")

    def has_time(self) -> bool:
        """Return True if close reading and checks of copies together are within the budget."""
        return self.cost_s + self.checks.total_s() < self._allowed_s()

    def _allowed_s(self) -> float:
        return self.budget * (time.perf_counter() - self._begun) + _FREE_S

    def timed(self, tensor: Any) -> Timed:
        """Return a context manager for close reading, which adds its time to the cost.

        The time begins when the device of the tensor (None for the CPU) has finished its queued work: the wait of the
        first read is for work of the program. For tensors on the CPU it is the processor time of the thread: a wait for
        a busy processor does not count as a cost of reading, and a run on a busy machine reads as much as another one.
        """
        if tensor is None or tensor.is_cpu or not has_values(tensor):
            return Timed(self, time.thread_time)
        device = tensor.device
        module: Any = getattr(self._torch, device.type, None)
        if hasattr(module, "synchronize"):
            module.synchronize(*(() if device.type == "mps" else (device,)))
        return Timed(self, time.perf_counter)


class Clock:
    """The total time of blocks, with that of the current one so far, without the close reading within them.

    It is the processor time of the thread, as in `Sampling.timed`: a busy machine checks as much as another one.

    Args:
        sampling: counts the close reading.
    """

    __slots__ = ("_begun", "_ended_s", "_sampling")

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._ended_s = 0.0
        self._begun: float | None = None

    def total_s(self) -> float:
        return self._ended_s + (0.0 if self._begun is None else max(0.0, self._now() - self._begun))

    def __enter__(self) -> None:
        self._begun = self._now()

    def __exit__(self, *_: object) -> None:
        self._ended_s, self._begun = self.total_s(), None

    def _now(self) -> float:
        return time.thread_time() - self._sampling.cost_s


class Timed:
    """Adds the time of a block to the cost of close reading."""

    # Not contextlib.contextmanager: below a graph break, TorchDynamo would compile the code of contextlib.
    __slots__ = ("_begun", "_clock", "_sampling")

    def __init__(self, sampling: Sampling, clock: Callable[[], float]) -> None:
        self._sampling, self._clock = sampling, clock
        self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = self._clock()

    def __exit__(self, *_: object) -> None:
        self._sampling.cost_s += self._clock() - self._begun


class FirstReads:
    """Counts the reads of losses by the line of their backward pass; only the first ones of each are made."""

    def __init__(self) -> None:
        self._counts: dict[Site | None, int] = {}

    def is_next(self, site: Site | None) -> bool:
        """Return True, and count the read, if a loss of this line is still to be read."""
        number = self._counts.get(site, 0)
        if number >= _MOST_READS or len(self._counts) >= _MOST_LINES:
            return False
        self._counts[site] = number + 1
        return True
