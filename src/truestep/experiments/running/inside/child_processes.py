"""Detect child processes in which a script trains: experiments do not supervise these."""

from __future__ import annotations

import multiprocessing.process
import os
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch

_OF_LIBRARIES = ("torch.utils.data", "torch._inductor", "multiprocessing", "concurrent", "joblib", "truestep")
"""Modules with process functions that read data, compile or manage, and do not train."""


class Children:
    """Watches for processes that run code of the script.

    Attributes:
        started: the function that started one: "torch.multiprocessing.spawn" or "multiprocessing.Process"; "" for none.
    """

    def __init__(self) -> None:
        self.started = ""
        self._process = os.getpid()

    def listen(self, stack: ExitStack) -> None:
        """Watch until the stack unwinds. torch must be imported."""

        def start(process: Any) -> None:
            target = vars(process).get("_target")
            where = getattr(target, "__module__", None) or type(process).__module__
            if os.getpid() == self._process and not where.startswith(_OF_LIBRARIES):
                spawned = where.startswith("torch.multiprocessing")
                self.started = "torch.multiprocessing.spawn" if spawned else "multiprocessing.Process"
            start_of_python(process)

        start_of_python = patch(stack, multiprocessing.process.BaseProcess, "start", start)
