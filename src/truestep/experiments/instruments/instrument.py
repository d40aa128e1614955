"""Base class of instruments, which measure a variant of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar


class Instrument(ABC):
    """One measurement of a variant of a run. It changes no result of the script.

    Attributes:
        name: name of the instrument.
        alone: code that runs inside the script's calls of modules, and calls no code of the script.

    Args:
        folder: folder for its files, one per run and process.
        script: path or name of the script.
    """

    name: ClassVar[str]
    alone: ClassVar[tuple[CodeType, ...]] = ()

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        self.script = script

    @abstractmethod
    def install(self, stack: ExitStack) -> None:
        """Install the instrument until the stack unwinds, after torch was imported and the changes were installed."""

    def crashed(self, error: BaseException) -> None:
        """Examine the exception that ended the script."""

    def played(self) -> None:
        """Measure once the code of the script is over, while torch is still complete."""

    def results(self, how: str) -> dict[str, Any]:
        """Stop, and return the results as values for JSON.

        Args:
            how: end of the script (see `RunOutcome`).
        """
        return {}
