"""Processes that a script starts to train in: an experiment does not follow them."""

from __future__ import annotations

import multiprocessing.process
import os
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch

_OF_LIBRARIES = ("torch.utils.data", "torch._inductor", "multiprocessing", "concurrent", "joblib", "truestep")
"""Where the function of a process lies that reads data, compiles or manages, and trains nothing."""


class Children:
    """Notes what starts processes that run code of the script.

    Attributes:
        started: "torch.multiprocessing.spawn" or "multiprocessing.Process"; "" for nothing.
    """

    def __init__(self) -> None:
        self.started = ""
        self._process = os.getpid()

    def listen(self, stack: ExitStack) -> None:
        """Listen until the stack unwinds. torch is imported."""

        def start(process: Any) -> None:
            target = vars(process).get("_target")
            where = getattr(target, "__module__", None) or type(process).__module__
            if os.getpid() == self._process and not where.startswith(_OF_LIBRARIES):
                spawned = where.startswith("torch.multiprocessing")
                self.started = "torch.multiprocessing.spawn" if spawned else "multiprocessing.Process"
            start_of_python(process)

        start_of_python = patch(stack, multiprocessing.process.BaseProcess, "start", start)
