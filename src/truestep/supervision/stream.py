"""Divide events into chunks, one per step, and pass only new ones to the rules.

A chunk is all events between two optimizer steps. Repeated steps are equal chunks, since events are interned. A chunk
after the same previous chunk is passed to the rules three times; from then on it is only counted. So a million equal
steps are one line of the record, and cost one dictionary look-up each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from truestep.events import Event, OptimizerStepped
from truestep.supervision.judge import Judge, Key

SHOWINGS = 3
_LONGEST = 512
_MOST_CHUNKS = 4000
_MOST_TRANSITIONS = 20_000
_LONGEST_ROUND = 16
_REPEATS = 64
_REPEATS_AGAIN = 8
"""Consecutive repetitions of a cycle before steps are skipped: the first time, and after it was skipped before."""


class Log(Protocol):
    """Interface of the record, which chunks are written to."""

    def show(self, number: int, events: tuple[Event, ...], key: Key, *, fired: bool) -> None: ...

    def again(self, key: Key, times: int) -> None: ...

    def forget(self) -> None: ...


class Logs:
    """Several logs as one."""

    def __init__(self, *logs: Log) -> None:
        self._logs = logs

    def show(self, number: int, events: tuple[Event, ...], key: Key, *, fired: bool) -> None:
        for log in self._logs:
            log.show(number, events, key, fired=fired)

    def again(self, key: Key, times: int) -> None:
        for log in self._logs:
            log.again(key, times)

    def forget(self) -> None:
        for log in self._logs:
            log.forget()


class EventStream:
    """Takes events one by one, and closes a chunk at each step."""

    def __init__(self, judge: Judge, log: Log | None = None) -> None:
        self._judge = judge
        self._log = log
        self._buffer: list[Event] = []
        self._numbers: dict[tuple[Event, ...], int] = {}
        self._chunks: dict[int, tuple[Event, ...]] = {}
        self._shown: dict[Key, int] = {}
        self._pending: dict[Key, int] = {}
        self._previous = 0
        self._latest: deque[Key] = deque(maxlen=_LONGEST_ROUND)
        self._period = self._repeats = 0
        self._proven: set[Key] = set()
        self.take = self._buffer.append
        """Add one event."""

    def relieve(self) -> None:
        """Close the current chunk if it is long, without a step (in an evaluation)."""
        if len(self._buffer) >= _LONGEST:
            self.close()

    def step(self, event: Event) -> None:
        """Add the event that closes a step."""
        self._buffer.append(event)
        self.close()

    def close(self) -> None:
        """Close the current chunk: pass it to the rules, or only count it."""
        if not self._buffer:
            return
        chunk = tuple(self._buffer)
        self._buffer.clear()
        number = self._numbers.get(chunk)
        if number is None:
            number = self._number(chunk)
        key = (self._previous, number)
        self._previous = number
        shown = self._shown.get(key, 0)
        if shown >= SHOWINGS:
            self._pending[key] = self._pending.get(key, 0) + 1
            self._compare(key)
            return
        self._latest.clear()
        self._period = self._repeats = 0
        if not shown and len(self._shown) >= _MOST_TRANSITIONS:
            self._forget()
            number = self._previous = self._number(chunk)
            key = (0, number)
        self._shown[key] = shown + 1
        self.settle()
        fired = self._judge.show(chunk, key)
        if self._log is not None:
            self._log.show(number, chunk, key, fired=fired)

    def _compare(self, key: Key) -> None:
        """Compare a transition with the one a cycle earlier, and update the cycle."""
        latest, period = self._latest, self._period
        if period and latest[-period] == key:
            self._repeats += 1
        else:
            self._repeats = 0
            self._period = next((n for n in range(1, len(latest) + 1) if latest[-n] == key), 0)
        latest.append(key)

    def repeating(self) -> int:
        """Return the number of chunks in the repeating cycle, each of one optimizer step; 0 without a cycle."""
        period, latest = self._period, self._latest
        if not period or self._repeats < (_REPEATS_AGAIN if latest[-1] in self._proven else _REPEATS):
            return 0
        steps = [latest[-n] for n in range(1, period + 1)]
        if self._repeats < period or self._buffer or not all(self._is_step(key) for key in steps):
            return 0
        self._proven.update(steps)
        return period

    def _is_step(self, key: Key) -> bool:
        return isinstance(self._chunks[key[1]][-1], OptimizerStepped)

    def passed(self, steps: int, begun: Sequence[Event]) -> None:
        """Count steps of the repeating cycle that were skipped, then add the first events of the next step."""
        for _ in range(steps):
            key = self._latest[-self._period]
            self._pending[key] = self._pending.get(key, 0) + 1
            self._previous = key[1]
            self._latest.append(key)
        self._repeats += steps
        self._buffer.extend(begun)

    def settle(self) -> None:
        """Pass the counts of repeated chunks to the judge and the record."""
        for key, times in self._pending.items():
            self._judge.again(self._chunks[key[1]], key, times)
            if self._log is not None:
                self._log.again(key, times)
        self._pending.clear()

    def _number(self, chunk: tuple[Event, ...]) -> int:
        if len(self._numbers) >= _MOST_CHUNKS:
            self._forget()
        number = self._numbers[chunk] = len(self._numbers) + 1
        self._chunks[number] = chunk
        return number

    def _forget(self) -> None:
        """Restart the numbers of chunks, in a run with too many different steps."""
        self.settle()
        self._judge.forget()
        if self._log is not None:
            self._log.forget()
        self._numbers.clear()
        self._chunks.clear()
        self._shown.clear()
        self._proven.clear()
        self._latest.clear()
        self._period = self._repeats = 0
        self._previous = 0
