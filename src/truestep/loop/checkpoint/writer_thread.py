"""One job at a time in another thread; its failure is raised where the training can see it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from threading import Thread


class Background:
    """Runs jobs one after another in a thread; the process ends only after the last.

    A forked child has no part in a job: there `wait()` returns at once.

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
        weakref.finalize(self, _raise, self._failure, self._process)  # at exit, where nobody waits any more

    def start(self, job: Callable[[], None]) -> None:
        """Start a job, after the one before has ended.

        Raises:
            BaseException: what the job before raised.
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
        """Return when no job is under way.

        Raises:
            BaseException: what the job raised; once.
        """
        if self._thread is not None and self._process == os.getpid():
            self._thread.join()
        self._thread = None
        _raise(self._failure, self._process)


def _raise(failure: list[BaseException], process: int) -> None:
    if failure and process == os.getpid():
        raise failure.pop()
