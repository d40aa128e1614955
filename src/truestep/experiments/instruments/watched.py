"""The probes and rules of `truestep run`: what they find in a variant."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep.config import Options
from truestep.experiments.instruments._instrument import Instrument


class Watched(Instrument):
    """Findings and report of a supervised run.

    Args:
        folder: to write into.
        script: what is run.
        width: of the report, in characters.
    """

    name = "watched"

    def __init__(self, folder: Path, script: str, width: int = 80) -> None:
        super().__init__(folder, script)
        self._width = width
        self._session: Any = None

    def install(self, stack: ExitStack) -> None:
        from truestep.watch.session import Session

        self._session = Session(Options(), script=self.script)
        self._session.start()

    def crashed(self, error: BaseException) -> None:
        self._session.examine(error)

    def told(self, how: str) -> dict[str, Any]:
        from truestep.report import render

        summary = self._session.stop(how)
        shown = [finding.rule for finding in summary.shown()]
        return {"findings": shown, "report": render(summary, width=self._width)}
