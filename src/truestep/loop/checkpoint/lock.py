"""A lock on the folder of a run: two runs that write into one folder would destroy each other's checkpoints."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
import weakref
from pathlib import Path

from truestep.errors import FolderInUse
from truestep.loop.checkpoint.files import unwritable

_PATIENCE_S = 0.5
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class FolderLock:
    """Holds a folder for this process until `release()`, or until the process ends in whatever way.

    The lock is `flock` on `<folder>/.lock`. It belongs to an open file, and forked children share open files: a worker
    that outlives a killed run would go on holding it. So children close theirs as they are forked. Where the file
    system knows no such lock, or the platform (Windows), nothing is held.

    Args:
        folder: the folder, which is made if it is missing.

    Raises:
        FolderInUse: another process, or this one, holds it; says which, by process number and host.
        UnwritableFolder: the folder cannot be made or written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name, FolderLock(Path(name)):
        ...     FolderLock(Path(name))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        truestep.errors.FolderInUse: ...
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor = -1
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise unwritable(folder, error) from error
        try:
            self._take()
        except BaseException:
            self.release()
            raise
        _held.add(self)

    def _try_for(self, seconds: float) -> None:
        """Take the lock; wait a little for what a killed run left, such as a worker that was just being forked."""
        import fcntl

        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
            else:
                return

    def _take(self) -> None:
        try:
            self._try_for(_PATIENCE_S)
        except ModuleNotFoundError:
            return  # no such lock on this platform
        except BlockingIOError:
            holder = self._holder()
            ours = holder == f"process {os.getpid()} on {socket.gethostname()}"
            raise FolderInUse(
                f"the folder {self.folder} is in use by another run: {holder}{', this process' if ours else ''}",
                expected="one run at a time writes into a folder",
                remedy="end that one by its close(), or make it in a `with` statement"
                if ours
                else "wait for it or end it, or give this run another folder",
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
                raise
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a name in it
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)

    def _holder(self) -> str:
        """Who wrote into the lock; it is written just after it is taken, so it can still be empty."""
        try:
            written = json.loads(os.pread(self._descriptor, 4096, 0))
            return f"process {written['pid']} on {written['host']}"
        except (ValueError, KeyError, TypeError):
            return "a process that is just starting"

    def release(self) -> None:
        """Let others have the folder; doing it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        _held.discard(self)

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _close_in_child() -> None:
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
