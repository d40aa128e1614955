"""Supervise a variant with the probes and rules of `truestep run`."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep.config import Options
from truestep.experiments.changes.parts.aimed import aim_of
from truestep.experiments.instruments.instrument import Instrument
from truestep.findings import Finding


class Watched(Instrument):
    """Findings and report of a supervised run.

    Args:
        folder: folder for its files.
        script: path or name of the script.
        width: width of the report in characters.
    """

    name = "watched"

    def __init__(self, folder: Path, script: str, width: int = 80) -> None:
        super().__init__(folder, script)
        self._width = width
        self._began = os.getcwd()
        self._session: Any = None

    def install(self, stack: ExitStack) -> None:
        from truestep.supervision.session import Session

        self._session = Session(Options(), script=self.script)
        self._session.start()

    def crashed(self, error: BaseException) -> None:
        self._session.examine(error)

    def results(self, how: str) -> dict[str, Any]:
        from truestep.report import render

        summary = self._session.stop(how)
        shown = summary.shown()
        aims: dict[str, list[Any]] = {}
        for finding in shown:
            aims.setdefault(finding.rule, []).append(self._aim(finding))
        report = render(summary, width=self._width)
        return {"findings": [finding.rule for finding in shown], "aims": aims, "report": report}

    def _aim(self, finding: Finding) -> dict[str, Any]:
        sites = [mark.site for mark in (finding.primary, *finding.related)]
        lines = [(site.path, site.line) for site in sites if site is not None]
        return aim_of(lines, finding.help, self._began)
