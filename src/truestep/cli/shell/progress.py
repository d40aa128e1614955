"""Progress of a command in stages, on standard error."""

from __future__ import annotations

import contextlib
import sys
import time
from textwrap import wrap

from truestep.experiments.reports.text import WIDTH


class StageProgress:
    """Prints a line on standard error for each stage, with the time passed."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def __call__(self, said: str) -> None:
        passed = int(time.monotonic() - self._begun)
        with contextlib.suppress(OSError):
            lines = wrap(f"{passed // 60}:{passed % 60:02} {said}", WIDTH, subsequent_indent="  ")
            sys.stderr.write("\n".join(lines) + "\n")
            sys.stderr.flush()

    def end(self) -> None:
        """Print an empty line between the progress and the report."""
        with contextlib.suppress(OSError):
            sys.stderr.write("\n")
