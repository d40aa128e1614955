"""Base class of probes: each observes one seam of torch, is installed on an exit stack, and emits events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import ExitStack

from truestep.events import Event
from truestep.probes.context.scene import Scene


class Probe(ABC):
    """Observes one seam. It draws no random number, forces no synchronization, and keeps no tensor."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    @abstractmethod
    def install(self, stack: ExitStack) -> None:
        """Patch the seam; the stack undoes it exactly."""

    def last(self) -> Iterable[Event]:
        """Return the events that are only known when observation ends."""
        return ()
