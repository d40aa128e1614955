"""Processes that the program starts by multiprocessing. Seam: ``BaseProcess.start``, which joblib's processes inherit.

Most of them get a session; the report must say so if the training may run in another one.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack
from multiprocessing.process import BaseProcess
from typing import Any

from truestep.events import ProcessStarted
from truestep.probes.context.probe import Probe, sees
from truestep.seams.patch import patch

_HELPERS = ("torch.utils.data.", "torch._inductor.", "multiprocessing.managers")
"""Modules with processes that do not train: workers of loaders, compilers, servers of shared objects."""
_POOLS = ("multiprocessing.pool", "concurrent.futures.", "joblib.")
"""Modules with processes that work for a pool, which may end them at any time."""


class ProcessProbe(Probe):
    """Emits `ProcessStarted`."""

    def install(self, stack: ExitStack) -> None:
        scene = self.scene

        @functools.wraps(BaseProcess.start)
        def start(process: Any) -> None:
            if not scene.active:
                original(process)
                return
            supervised = self.starts(process)
            try:
                original(process)
            finally:
                vars(process).pop("_bootstrap", None)  # the child has it now
            if supervised is False:
                self.started()

        original = patch(stack, BaseProcess, "start", start)

    @sees
    def starts(self, process: Any) -> bool:
        """Return False if a process that is about to start may train and is not supervised; prepare it otherwise."""
        module = str(getattr(getattr(process, "_target", None), "__module__", ""))
        if module.startswith(_HELPERS):
            return True
        return not module.startswith(_POOLS) and self.scene.listener.starts(process, self.scene.site())

    @sees
    def started(self) -> None:
        """Emit the start of a process."""
        self.scene.tell(ProcessStarted, site=self.scene.site())
