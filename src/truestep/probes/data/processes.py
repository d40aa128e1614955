"""Processes that the program starts by multiprocessing. Seam: ``BaseProcess.start``, which joblib's processes inherit.

Code in these processes is not supervised, and the report must say so if the training may run there.
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


class ProcessProbe(Probe):
    """Emits `ProcessStarted`."""

    def install(self, stack: ExitStack) -> None:
        scene = self.scene

        @functools.wraps(BaseProcess.start)
        def start(process: Any) -> None:
            target = getattr(process, "_target", None)  # which ``start`` deletes
            original(process)
            if scene.active:
                self.started(target)

        original = patch(stack, BaseProcess, "start", start)

    @sees
    def started(self, target: Any) -> None:
        """Emit the start of a process that calls ``target``."""
        if not str(getattr(target, "__module__", "")).startswith(_HELPERS):
            self.scene.tell(ProcessStarted, site=self.scene.site())
