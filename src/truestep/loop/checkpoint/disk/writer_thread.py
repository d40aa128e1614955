"""One job at a time in another thread; its error is raised in the training thread."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from threading import Thread


class Background:
    """Runs jobs in a thread, one after another; the process ends only after the last one.

    A forked child does not have the thread: there `wait()` returns at once.

    Example:
        >>> background = Background("writer")
        >>> done = []
        >>> background.start(lambda: done.append("written"))
        >>> background.wait()
        >>> done
        ['written']
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: Thread | None = None
        self._failure: list[BaseException] = []
        self._process = os.getpid()
        weakref.finalize(self, _raise, self._failure, self._process)  # at exit, when `wait` is not called any more

    def start(self, job: Callable[[], None]) -> None:
        """Wait for the previous job, then start a job.

        Raises:
            BaseException: error of the previous job.
        """
        self.wait()

        def run() -> None:
            try:
                job()
            except BaseException as error:
                self._failure.append(error)

        self._thread = Thread(target=run, name=self._name, daemon=False)
        self._thread.start()

    def wait(self) -> None:
        """Wait until no job is running.

        Raises:
            BaseException: error of the job; raised once.
        """
        if self._thread is not None and self._process == os.getpid():
            self._thread.join()
        self._thread = None
        _raise(self._failure, self._process)


def _raise(failure: list[BaseException], process: int) -> None:
    if failure and process == os.getpid():
        raise failure.pop()
