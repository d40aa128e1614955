"""Processes that the program starts by multiprocessing. Seam: ``BaseProcess.start``, which joblib's processes inherit.

What runs in them is not watched, and a report has to say so where the training may be there.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack
from multiprocessing.process import BaseProcess
from typing import Any

from truestep.events import ProcessStarted, Site
from truestep.probes.context.probe import Probe
from truestep.seams.patch import patch

_HELPERS = ("torch.utils.data.", "torch._inductor.", "multiprocessing.managers")
"""Modules whose processes train nothing: workers of loaders, compilers, servers of shared objects."""


class ProcessProbe(Probe):
    """Tells `ProcessStarted`."""

    def install(self, stack: ExitStack) -> None:
        self._events: dict[Site | None, ProcessStarted] = {}
        scene = self.scene

        @functools.wraps(BaseProcess.start)
        def start(process: Any) -> None:
            target = getattr(process, "_target", None)  # which ``start`` deletes
            original(process)
            if scene.active:
                self.told(target)

        original = patch(stack, BaseProcess, "start", start)

    def told(self, target: Any) -> None:
        """Tell that a process was started that calls ``target``."""
        try:
            if str(getattr(target, "__module__", "")).startswith(_HELPERS):
                return
            site = self.scene.site()
            event = self._events.get(site)
            if event is None:
                event = self._events[site] = ProcessStarted(site=site)
            self.scene.emit(event)
        except Exception:
            self.scene.fail()
