"""What a probe is: one seam of torch, installed on an exit stack, telling events to the scene."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import ExitStack

from truestep.events import Event
from truestep.probes.context.scene import Scene


class Probe(ABC):
    """Watches one seam. Draws no random number, forces no synchronisation, keeps no tensor."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    @abstractmethod
    def install(self, stack: ExitStack) -> None:
        """Patch the seam; the stack undoes it exactly."""

    def last(self) -> Iterable[Event]:
        """Return what can only be told when watching ends."""
        return ()
