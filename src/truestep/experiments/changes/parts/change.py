"""Base class of changes: modifications of torch's behavior that last until a stack unwinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import ClassVar


class Change(ABC):
    """One modification applied to a run of the script.

    Attributes:
        name: name of the change.
        remedies: ids of the rules with failures that it fixes from outside.
        alters_loss: True if it changes the loss function, so that losses with and without it cannot be compared.
        silences: True if the rule no longer finds the failure once the remedy is applied.
        applied: number of times that it changed something; 0 if it does not apply to the script.
    """

    name: ClassVar[str]
    remedies: ClassVar[tuple[str, ...]] = ()
    alters_loss: ClassVar[bool] = False
    silences: ClassVar[bool] = False

    def __init__(self) -> None:
        self.applied = 0

    @abstractmethod
    def install(self, stack: ExitStack) -> None:
        """Apply the change; the stack undoes it exactly. torch must be imported."""

    def counts(self) -> dict[str, int]:
        """Return its counts: its public integer attributes."""
        return {name: value for name, value in vars(self).items() if isinstance(value, int) and name[0] != "_"}
