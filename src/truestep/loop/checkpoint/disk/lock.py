"""Lock on the folder of a run: two runs that write into one folder would destroy each other's checkpoints."""

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
from truestep.loop.checkpoint.disk.files import unwritable

_PATIENCE_S = 0.5
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class FolderLock:
    """Exclusive lock of this process on a folder, until `release()` or the end of the process, also by a crash.

    The lock is `flock` on `<folder>/.lock`. It belongs to an open file, which forked children share: a worker that
    outlives a killed run would keep the lock. So a forked child closes the file at once. If the file system or the
    platform (Windows) has no `flock`, the folder is not locked.

    Args:
        folder: the folder, which is created if it is missing.

    Raises:
        FolderInUse: the folder is locked already; gives the process number and the host of the owner.
        UnwritableFolder: the folder cannot be created or written.

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
        """Acquire the lock; wait a little for remains of a killed run, such as a worker in the middle of a fork."""
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
            return  # the platform has no flock
        except BlockingIOError:
            holder = self._holder()
            ours = holder == f"process {os.getpid()} on {socket.gethostname()}"
            raise FolderInUse(
                f"the folder {self.folder} is in use by another run: {holder}{', this process' if ours else ''}",
                expected="expected one run at a time in a folder",
                remedy="end that run with its close(), or create it in a `with` statement"
                if ours
                else "wait for it or end it, or pass another folder to this run",
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL):
                raise
        with contextlib.suppress(OSError):  # on a full disk, the lock works without the name of its owner
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)

    def _holder(self) -> str:
        """Return the owner's name from the lock file, which is written after locking and so can still be empty."""
        try:
            written = json.loads(os.pread(self._descriptor, 4096, 0))
            return f"process {written['pid']} on {written['host']}"
        except (ValueError, KeyError, TypeError):
            return "a process that is starting"

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
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
