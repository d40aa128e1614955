"""What an instrument is: something that looks at a variant of a run and says what it saw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar


class Instrument(ABC):
    """One thing that is looked at in a variant of a run. It changes no result.

    Attributes:
        alone: code that runs inside of the script's calls of modules, and calls nothing of the script's.

    Args:
        folder: to write into, one for each run and process.
        script: what is run.
    """

    name: ClassVar[str]
    alone: ClassVar[tuple[CodeType, ...]] = ()

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        self.script = script

    @abstractmethod
    def install(self, stack: ExitStack) -> None:
        """Begin to look, until the stack unwinds. torch is imported; the changes are made."""

    def crashed(self, error: BaseException) -> None:
        """Look at what is there when the script has died."""

    def told(self, how: str) -> dict[str, Any]:
        """Stop looking, and return what was seen, as JSON takes it.

        Args:
            how: the script ended (see `Outcome`).
        """
        return {}
