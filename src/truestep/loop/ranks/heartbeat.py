"""Signs of life of the ranks: dead ones differ from waiting ones after an operation over all ranks has failed.

Each rank writes a count twice a second into the store of the process group, from a thread with a separate connection:
also while its script computes or waits. A process that was killed or stopped writes nothing.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

REGULAR = "its run"
_EVERY_S = 0.5
_SILENCE_S = 2.5
"""Time without a sign of life after which a rank counts as dead, once an operation has failed."""
_NUMBERS = itertools.count()
"""Numbers of the runs of this process, which are the same on all ranks."""
_PATIENCE_S = 5.0
"""Longest wait for the store, which may be in a process that was stopped."""
_PACKAGES = tuple(str(Path(module.__file__ or "").parent) + os.sep for module in (sys.modules["truestep"], torch))


class Sign(NamedTuple):
    """Last sign of life of a rank.

    Attributes:
        beats: number of signs.
        operations: number of operations over all ranks that it has begun.
        place: line of the script at the last of them.
        ended: how its run has ended; empty while it is under way.
    """

    beats: int
    operations: int
    place: str
    ended: str


class Heartbeat:
    """The signs of life of this rank, and those of the others.

    Args:
        rank: number of this process.
        world_size: number of processes.
    """

    def __init__(self, rank: int, world_size: int) -> None:
        distributed: Any = torch.distributed
        self._rank, self._world_size = rank, world_size
        store = distributed.distributed_c10d._get_default_store()
        connection = store.clone() if hasattr(store, "clone") else store  # a wait of the program does not delay signs
        self._store = distributed.PrefixStore(f"truestep/{next(_NUMBERS)}", connection)
        self._beats = self._operations = 0
        self._line: tuple[str, int] = ("", 0)
        self._ended, self._is_closed = "", False
        self._stop = threading.Event()
        self._write()
        self._thread = threading.Thread(target=self._beat, name="truestep-heartbeat", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        """Count an operation over all ranks, and note the line of the script."""
        self._operations += 1
        self._line = _line_of_script()

    @property
    def place(self) -> str:
        """The line of the script at the last operation over all ranks."""
        return _shown(*self._line) if self._line[0] else "the start of the run"

    def end(self, how: str) -> None:
        """Write that the run of this rank has ended; no sign follows.

        Args:
            how: as in "rank 1 has ended <how>".
        """
        if not self._ended:
            self._ended = how
            self._stop.set()
            self._thread.join(_PATIENCE_S)
            if how == REGULAR and self._rank == 0 and not _is_of_launcher():
                self._wait_for_others()

    def signs(self) -> list[Sign | None]:
        """Return the current signs of all ranks; None for those that have stopped writing."""
        seen: list[list[Sign | None]] = []
        # in another thread, since a connection to a process that was stopped blocks
        reading = threading.Thread(target=self._read_twice, args=(seen,), name="truestep-signs", daemon=True)
        reading.start()
        reading.join(_SILENCE_S + _PATIENCE_S)
        own = Sign(self._beats, self._operations, self.place, "")
        unknown: list[Sign | None] = [None] * self._world_size
        first, signs = seen if len(seen) == 2 else (unknown, unknown)
        holders = _ranks_at_the_store()
        if self._rank not in holders and not any(sign for rank, sign in enumerate(signs) if rank != self._rank):
            return [
                None if rank in holders else own for rank in range(self._world_size)
            ]  # of the others nothing is known
        found = [sign if _lives(before, sign) else None for before, sign in zip(first, signs, strict=True)]
        found[self._rank] = own
        return found

    def _wait_for_others(self) -> None:
        """Wait a moment until the other ranks have written their last signs into the store of this process."""
        until = time.monotonic() + _PATIENCE_S
        others = set(range(self._world_size)) - {self._rank}
        while others and time.monotonic() < until:
            others = {rank for rank in others if (sign := self._read(rank)) is None or not sign.ended}
            time.sleep(0.005 if others else 0)

    def _read_twice(self, seen: list[list[Sign | None]]) -> None:
        seen.append([self._read(rank) for rank in range(self._world_size)])
        if not self._is_closed:
            time.sleep(_SILENCE_S)
            seen.append([self._read(rank) for rank in range(self._world_size)])

    def _beat(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._stop.wait(_EVERY_S)
            if not self._write():
                return

    def _write(self) -> bool:
        """Write a sign of life; return False if the store is closed, because the process that holds it has ended."""
        self._beats += 1
        sign = Sign(self._beats, self._operations, self.place, self._ended)
        try:
            self._store.set(f"sign-{self._rank}", json.dumps(sign))
        except (RuntimeError, OSError):
            return False
        return True

    def _read(self, rank: int) -> Sign | None:
        key = f"sign-{rank}"
        if self._is_closed:
            return None
        try:
            return Sign(*json.loads(self._store.get(key))) if self._store.check([key]) else None
        except (RuntimeError, OSError, ValueError):
            self._is_closed = True
            return None


def _lives(before: Sign | None, sign: Sign | None) -> bool:
    """Return True if a rank has written between two readings, or has ended in order."""
    return sign is not None and (bool(sign.ended) or before is None or sign.beats > before.beats)


def _ranks_at_the_store() -> range:
    """Return the ranks that are out of reach when the store is.

    Rank 0 if it holds the store itself. The launcher of the first host holds it for all its ranks; hosts are taken to
    have equally many, since each knows its own number only. A rank of the first host can say nothing of the others.
    """
    return range(int(os.environ.get("LOCAL_WORLD_SIZE", "1"))) if _is_of_launcher() else range(1)


def _is_of_launcher() -> bool:
    """Return True if the store is in the launcher, False if it is in rank 0."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def line_of(error: BaseException) -> str:
    """Return the line of the script that an error went through; empty if it did not come so far."""
    trace, found = error.__traceback__, ""
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not path.startswith(_PACKAGES):
            found = _shown(path, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _shown(path: str, line: int) -> str:
    return f"{os.path.relpath(path)}:{line}"


def _line_of_script() -> tuple[str, int]:
    """Return file and line of the nearest frame outside of truestep and torch."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
