"""A command in a child process, with a limit of its time: it is interrupted, then killed, and its output is kept."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process

GRACE_S = 5.0
"""Seconds from the interrupt to the kill, in which a command writes its report."""
_KEPT_BYTES = 4_000_000
"""Most bytes that are kept of one stream: its last ones."""
_LAST_OUTPUT_S = 1.0
"""Seconds in which the output of a process that has ended must end too; its children may hold the pipe open."""
_ENVIRONMENT = {"PYTHONUNBUFFERED": "1", "COLUMNS": "100", "NO_COLOR": "1"}
"""Unbuffered, so that the output of a killed script is complete."""
_live: set[int] = set()
"""Process groups that run now."""


@dataclass(slots=True)
class Ended:
    """A command that has ended."""

    code: int
    """Its exit code; negative for a signal."""
    out: str
    """Its standard output, or the end of it."""
    err: str
    seconds: float
    in_time: bool
    """False if it was interrupted at its limit."""
    interrupted: bool = False
    """Whether it ended after the interrupt, without being killed."""


class _Tail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    async def read(self, stream: ByteReceiveStream | None) -> None:
        if stream is not None:
            async for chunk in stream:
                self._bytes += chunk
                del self._bytes[:-_KEPT_BYTES]

    def __str__(self) -> str:
        return self._bytes.decode("utf-8", errors="replace")


async def run(arguments: Sequence[str], *, folder: Path, seconds: float) -> Ended:
    """Run a command of TrueStep in this Python, in its own process group, and return its end.

    It gets no input, and its output goes to pipes. All processes of its group are killed at the end, also if the call
    is cancelled.

    Args:
        arguments: arguments of `truestep`.
        folder: working directory.
        seconds: limit; the command may need `GRACE_S` more to end.
    """
    begun = time.monotonic()
    command = [sys.executable, "-m", "truestep", *arguments]
    out, err = _Tail(), _Tail()
    in_time = interrupted = True
    async with await anyio.open_process(
        command,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env=os.environ | _ENVIRONMENT,
        start_new_session=True,
    ) as process:
        with _group(process.pid):
            async with anyio.create_task_group() as readers:
                readers.start_soon(out.read, process.stdout)
                readers.start_soon(err.read, process.stderr)
                in_time = await _waited(process, seconds)
                if not in_time:
                    with contextlib.suppress(ProcessLookupError):
                        process.send_signal(signal.SIGINT)
                    interrupted = await _waited(process, GRACE_S)
                    if not interrupted:
                        _kill(process.pid)
                        await process.wait()
                readers.cancel_scope.deadline = anyio.current_time() + _LAST_OUTPUT_S
    code = process.returncode
    assert code is not None
    return Ended(code, str(out), str(err), time.monotonic() - begun, in_time, not in_time and interrupted)


async def _waited(process: Process, seconds: float) -> bool:
    """Wait for the end of a process; return False if it did not come in time."""
    with anyio.move_on_after(seconds):
        await process.wait()
    return process.returncode is not None


@contextlib.contextmanager
def _group(number: int) -> Iterator[None]:
    """Context manager: kill the rest of a process group at the end."""
    _live.add(number)
    try:
        yield
    finally:
        _kill(number)
        _live.discard(number)


def _kill(number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, signal.SIGKILL)


def end_all(*_: Any) -> None:
    """Kill all commands and exit; a handler of SIGTERM."""
    for number in list(_live):
        _kill(number)
    os._exit(128 + signal.SIGTERM)
