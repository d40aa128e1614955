"""Time two variants of a script against each other: both processes are alive, and take their steps in turns.

Turns are short, so that background load affects both alike, and each variant starts only once for all its turns. Both
take the same steps of the training in a turn: an evaluation in these steps is in both.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from truestep.experiments.running.bench import Bench
from truestep.experiments.running.message_pipe import MessagePipe
from truestep.experiments.running.outcome import RunOutcome, Variant

Message = dict[str, Any]
"""Message of a run about a turn: see `truestep.experiments.instruments.timing.turns`."""

_LOOK_S = 0.1
_LEAD = 2
"""Untimed steps at the beginning of a turn: caches are cold. Batches that workers hold ready are added."""


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """Number and length of the turns.

    Attributes:
        warm_up: steps before the first turn.
        steps: timed steps per turn.
        turns: turns of each variant.
    """

    warm_up: int
    steps: int
    turns: int


@dataclass(frozen=True, slots=True)
class Pair:
    """Times of two variants, per turn.

    Attributes:
        seconds: seconds of the first and of the second variant, for each turn that both had. If both compute in one
            thread of one process, time in which the thread waited for a processor is left out.
        outcomes: outcomes of both variants.
    """

    seconds: tuple[tuple[float, float], ...]
    outcomes: tuple[RunOutcome, RunOutcome]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Speed-up of the second variant over the first, per turn."""
        return tuple(first / second for first, second in self.seconds if first > 0 and second > 0)


def take_turns(bench: Bench, plain: Variant, changed: Variant, plan: TurnPlan) -> Pair:
    """Run two variants at the same time; one waits while the other takes its steps.

    Args:
        bench: the script; its number of steps is ignored.
        plain: the variant to compare with.
        changed: the variant to judge.
        plan: number and length of the turns.
    """
    bench = replace(bench, steps=None, cache=None)
    sides = [_Side(variant, plan) for variant in (plain, changed)]
    seconds: list[tuple[float, float]] = []
    with ThreadPoolExecutor(len(sides)) as pool:
        try:
            for side in sides:
                side.outcome = pool.submit(bench.run, side.variant)
            if all(side.is_ready() for side in sides):
                seconds = _turns(sides, plan)
        except BaseException:
            bench.cancelled.set()
            raise
        finally:
            for side in sides:
                side.close()
    bench.cancelled.clear()
    first, second = (side.result() for side in sides)
    return Pair(tuple(seconds), (first, second))


def _turns(sides: Sequence[_Side], plan: TurnPlan) -> list[tuple[float, float]]:
    lead = _LEAD + max(side.ahead for side in sides)
    both: list[tuple[Message, Message]] = []
    for turn in range(plan.turns):
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        taken: dict[int, Message] = {}
        for side in order:
            message = sides[side].take({"lead": lead, "steps": plan.steps})
            if message is None:
                return _seconds(both)
            taken[side] = message
        both.append((taken[0], taken[1]))
    return _seconds(both)


def _seconds(both: Sequence[tuple[Message, Message]]) -> list[tuple[float, float]]:
    alone = all(turn["alone"] for turns in both for turn in turns)
    return [
        (
            first["seconds"] - (first["waited"] if alone else 0.0),
            second["seconds"] - (second["waited"] if alone else 0.0),
        )
        for first, second in both
    ]


class _Side:
    """One of the two variants, and the connection to its process."""

    def __init__(self, variant: Variant, plan: TurnPlan) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(_LOOK_S)
        self._key = secrets.token_hex(16)
        settings = {"port": self._server.getsockname()[1], "key": self._key, "warm_up": plan.warm_up}
        self.variant = replace(variant, instruments=(("turns", settings),))
        self.outcome: Future[RunOutcome] | None = None
        self.ahead = 0
        self._line: MessagePipe | None = None

    @property
    def _is_over(self) -> bool:
        return self.outcome is not None and self.outcome.done()

    def is_ready(self) -> bool:
        """Wait for its first steps; return False if it ended before."""
        while not self._is_over:
            try:
                line = MessagePipe(self._server.accept()[0])
            except TimeoutError:
                continue
            message = line.receive()
            if isinstance(message, dict) and message.get("key") == self._key:
                self._line, self.ahead = line, message["ahead"]
                return True
            line.close()
        return False

    def take(self, turn: dict[str, int]) -> Message | None:
        """Let it take its turn, and return its message; None if it has ended."""
        assert self._line is not None
        try:
            self._line.send(turn)
        except OSError:
            return None
        while not self._line.waits(_LOOK_S):
            if self._is_over:
                return None
        message: Message | None = self._line.receive()
        return message

    def close(self) -> None:
        """Close the connection: the process ends after its current step."""
        self._server.close()
        if self._line is not None:
            self._line.close()

    def result(self) -> RunOutcome:
        """Return its outcome."""
        assert self.outcome is not None
        return self.outcome.result()
