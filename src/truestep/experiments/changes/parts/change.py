"""What a change is: something that torch does otherwise until a stack unwinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import ClassVar


class Change(ABC):
    """One thing that is otherwise in a variant of a run.

    Attributes:
        remedies: ids of the rules whose failure it mends from outside.
        silences: whether the failure is no longer found where the remedy has mended it.
        applied: how often it changed something; 0 where the script does nothing that it applies to.
    """

    name: ClassVar[str]
    remedies: ClassVar[tuple[str, ...]] = ()
    silences: ClassVar[bool] = False

    def __init__(self) -> None:
        self.applied = 0

    @abstractmethod
    def install(self, stack: ExitStack) -> None:
        """Make the change; the stack undoes it exactly. torch is imported."""

    def counts(self) -> dict[str, int]:
        """Return what it counted: its attributes that are whole numbers."""
        return {name: value for name, value in vars(self).items() if isinstance(value, int) and name[0] != "_"}
