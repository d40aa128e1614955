"""Run steps in turns with another process, so that the load of the machine affects both alike."""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.instruments.timing.waiting import waiting
from truestep.experiments.running.inside.one_time import aside
from truestep.experiments.running.inside.steps import device_of, on_steps
from truestep.experiments.running.message_pipe import MessagePipe
from truestep.seams.patch import patch
from truestep.supervision.session import Stop


class Turns(Instrument):
    """After its first steps, the run waits at the end of a step for its turn. The steps of each turn are timed.

    The time of a turn leaves out one-time work (`experiments.running.inside.one_time`). The device is synchronized at
    its beginning and end. The message about a turn also holds the time that its thread waited for a processor, and
    whether the run computes in a single thread and process. Only rank 0 asks; the other ranks wait for it in
    their collectives.

    Args:
        folder: folder for its files.
        script: path or name of the script.
        port: local port that gives turns; 0 for none.
        key: secret that identifies this run.
        warm_up: steps before the first turn.
    """

    name = "turns"

    def __init__(self, folder: Path, script: str, port: int = 0, key: str = "", warm_up: int = 5) -> None:
        super().__init__(folder, script)
        self._port = port
        self._key = key
        self._warm_up = warm_up
        self._ahead = 0
        self._steps = 0
        self._turns = 0
        self._left = 0
        self._timed = 0
        self._begun = self._aside = self._waited = self._ready_s = 0.0
        self._wait: Any = None
        self._line: MessagePipe | None = None
        self._origin = time.perf_counter()

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

        self._torch = torch
        if os.environ.get("RANK", "0") != "0" or not self._port:
            return

        def __init__(iterator: Any, loader: Any) -> None:
            begin(iterator, loader)
            self._ahead = max(self._ahead, iterator._num_workers * iterator._prefetch_factor)

        begin = patch(stack, _MultiProcessingDataLoaderIter, "__init__", __init__)
        on_steps(stack, self._stepped)

    def _stepped(self, optimizer: Any) -> None:
        if self._torch._C._current_graph_task_id() != -1:
            return
        self._steps += 1
        if self._steps < self._warm_up:
            return
        if self._steps == self._warm_up:
            self._wait = waiting(device_of(optimizer))
            self._ready_s = self._now() - self._origin
            try:
                self._line = MessagePipe(socket.create_connection(("127.0.0.1", self._port)))
            except OSError:  # the other run has failed, and the port is closed
                raise Stop from None
            self._next(self._line, {"key": self._key, "ahead": self._ahead})
            return
        self._left -= 1
        if self._left == self._timed:
            self._aside = aside.seconds
            self._begun = self._now()
            self._waited = _waited_s()
        elif not self._left and self._line is not None:
            seconds = self._now() - self._begun - (aside.seconds - self._aside)
            waited = _waited_s() - self._waited
            self._turns += 1
            alone = self._torch.get_num_threads() == 1 and not multiprocessing.active_children()
            self._next(self._line, {"seconds": seconds, "waited": waited, "alone": alone})

    def _next(self, line: MessagePipe, result: dict[str, Any]) -> None:
        """Send the result of a turn, and wait for the next one; stop the script if there is none."""
        try:
            line.send(result)
            turn = line.receive()
        except OSError:
            turn = None
        if turn is None:
            raise Stop
        self._timed = turn["steps"]
        self._left = self._timed + turn["lead"]

    def _now(self) -> float:
        if self._wait is not None:
            self._wait()
        return time.perf_counter()

    def results(self, how: str) -> dict[str, Any]:
        """Return the number of turns, the seconds before the first one, and the seconds of one-time work."""
        if self._line is not None:
            self._line.close()
        return {"turns": self._turns, "ready_s": round(self._ready_s, 3), "aside_s": round(aside.seconds, 3)}


def _waited_s() -> float:
    """Return the seconds that this thread waited for a busy processor; 0 if the system does not count them."""
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as stats:
            return int(stats.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
