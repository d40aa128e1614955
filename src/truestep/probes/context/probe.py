"""Base class of probes: each observes one seam of torch, is installed on an exit stack, and emits events."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Concatenate, ParamSpec, TypeVar

from truestep.events import Event
from truestep.probes.context.scene import Scene

P = ParamSpec("P")
R = TypeVar("R")
Self = TypeVar("Self", bound="Probe")


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


def sees(method: Callable[Concatenate[Self, P], R]) -> Callable[Concatenate[Self, P], R | None]:
    """Return a method of a probe that can be called from the code of torch, without an effect on the script.

    Modes and tensor classes of the script do not observe its calls of torch. If it raises an error, the error is
    recorded, and it returns None. It has one more frame on the stack.
    """

    @functools.wraps(method)
    def seeing(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> R | None:
        scene = self.scene
        aside = scene.unseen.begin()
        try:
            return method(self, *args, **kwargs)
        except Exception:
            scene.fail()
            return None
        finally:
            if aside:
                aside.close()

    return seeing
